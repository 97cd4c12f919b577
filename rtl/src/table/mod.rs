//! The table of cores: random jobs through each driver, queue and core, on each port of the
//! simulated board, in calm and in hostile memory.
//!
//! [`CASES`] has a line for each core. All of them share [`jobs::run`]: it draws jobs, stops some
//! of them, compares each output with the oracle's, and has the board's counts. The binary
//! `rtl-table` prints the rows, and tests of single cores run the same functions.

pub mod digits;
mod error;
pub mod frames;
pub mod jobs;
pub mod litex;
pub mod products;
mod row;
mod setting;
pub mod words;

pub use error::TableError;
pub use row::{Row, Tally};
pub use setting::Setting;

/// A core's line in the table.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of [`Core::open`](crate::Core::open).
    pub core: &'static str,
    /// Runs so many jobs.
    pub run: fn(&Setting, u64) -> Result<Tally, TableError>,
    /// It keeps the rules. One that does not is run only where it is asked for by name.
    pub keeps: bool,
}

/// The cores of the table.
pub const CASES: &[Case] = &[
    Case {
        core: "broken32",
        run: |setting, jobs| words::copies("broken32", 0, setting, jobs),
        keeps: true,
    },
    Case {
        core: "broken512",
        run: |setting, jobs| words::copies("broken512", 0, setting, jobs),
        keeps: true,
    },
    Case { core: "gemm8", run: products::run, keeps: true },
    Case {
        core: "nngen",
        run: |setting, jobs| digits::run("nngen", setting, jobs, 0, |_| {}),
        keeps: true,
    },
    Case {
        core: "nngen_gated",
        run: |setting, jobs| digits::run("nngen_gated", setting, jobs, jobs::STOP_EVERY, |_| {}),
        keeps: true,
    },
    Case { core: "litex", run: litex::alone, keeps: true },
    Case { core: "litex_gated", run: litex::gated, keeps: true },
    Case { core: "s2mm", run: |setting, jobs| frames::run(0, setting, jobs), keeps: true },
    Case { core: "gated", run: words::gated, keeps: true },
    Case { core: "ungated", run: words::ungated, keeps: false },
];

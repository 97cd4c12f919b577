//! gemm8's Verilog against its contract (`examples/gemm8/README.md`), and against its model.
//!
//! ```text
//! CONTIGO_SEEDS=10000 cargo test -p contigo-rtl --test rtl gemm8::products    # more of them
//! CONTIGO_SEED=17 cargo test -p contigo-rtl --test rtl gemm8::products        # one again
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `bench.rs` | a gemm8, the core or the model, in plain memory with a hole |
//! | `job.rs` | one product: its place, its bytes, the registers that start it |
//! | `products.rs` | random products by the core and by the model: the same memory after each |
//! | `registers.rs` | the registers, read and written |
//! | `ends.rs` | errors of the bus at any address, arguments that are refused |
//! | `aborts.rs` | ABORT at any time, in slow memory |
//! | `copies.rs` | the driver, unchanged, through the suite for drivers |
//! | `promises.rs` | `check` starts nothing; the stop program, when the program is gone |
//! | `speed.rs` | how much of the array's peak is reached |

mod aborts;
mod bench;
mod copies;
mod ends;
mod job;
mod products;
mod promises;
mod registers;
mod speed;

use crate::cores::{rig, skip, suite};
use contigo_testkit::rounds;
use std::env;

/// The seeds of a test: `CONTIGO_SEED`, as many as `CONTIGO_SEEDS` says, or those of `rounds`.
fn seeds(all: u64) -> impl Iterator<Item = u64> {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (first, count) = number("CONTIGO_SEED").map_or_else(
        || (0, number("CONTIGO_SEEDS").unwrap_or_else(|| rounds(all))),
        |seed| (seed, 1),
    );
    first..first + count
}

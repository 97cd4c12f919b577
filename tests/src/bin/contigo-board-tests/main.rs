//! Board tests: Contigo on this machine's real memory and real DMA engines, in the lab's guests or
//! on a board.
//!
//! ```text
//!   machine.rs: what is here ─► plan.rs: rows ─► child.rs: each in its own process ─► row.rs: a line
//!                                                  └─ setup.rs: memory and engine ─► jobs.rs, checks/
//! ```
//!
//! A check returns a verdict (`verdict.rs`). With `--report` the rows go into one file, with what
//! is known of the machine: `report/`. `soak/` does random work for hours, and `hang` is for the
//! tests of a bench's reset.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "rows go to standard output")]

mod apart;
mod checks;
mod child;
mod gemm8;
mod jobs;
mod lab;
mod machine;
mod options;
mod pages;
mod plan;
mod raw;
mod report;
mod row;
mod setup;
mod soak;
mod verdict;
mod vfio;

use contigo_exerciser::{CountingHeap, is_counting};
use options::{Options, Task};
use report::Counts;
use std::process::ExitCode;

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

fn main() -> ExitCode {
    let options = match options::given() {
        Ok(options) => options,
        Err((help, true)) => {
            println!("{help}");
            return ExitCode::SUCCESS;
        }
        Err((wrong, false)) => {
            eprintln!("contigo-board-tests: {wrong}");
            return ExitCode::from(2);
        }
    };
    if !is_counting() {
        eprintln!("contigo-board-tests: heap allocations are not being counted");
        return ExitCode::FAILURE;
    }
    match options.task {
        Task::Hang => return child::hang(),
        Task::Soak(soak) => return soak::soak(&options, soak),
        Task::Test => {}
    }
    test(&options)
}

fn test(options: &Options) -> ExitCode {
    let planned = plan::rows(options);
    if options.list {
        planned.iter().for_each(|planned| println!("{}", planned.title()));
        return ExitCode::SUCCESS;
    }
    // Before what takes minutes.
    if let Some(Err(error)) = options.report.as_deref().map(report::ensure_writable) {
        eprintln!("contigo-board-tests: {error}");
        return ExitCode::FAILURE;
    }
    let mut rows = Vec::with_capacity(planned.len());
    for planned in &planned {
        let row = planned.run(options);
        println!("{}", if options.json { row.json() } else { row.text() });
        rows.push(row);
    }
    let counts = Counts::of(&rows);
    let Counts { passed, failed, skipped } = counts;
    if !options.json {
        println!("{passed} passed, {failed} failed, {skipped} skipped");
    }
    if let Some(Err(error)) =
        options.report.as_deref().map(|path| report::write(path, options, rows))
    {
        eprintln!("contigo-board-tests: {error}");
        return ExitCode::FAILURE;
    }
    if failed == 0 && passed + skipped > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

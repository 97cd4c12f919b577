//! Board tests: Contigo on this machine's real memory and real DMA engines, in the lab's guests or
//! on a board.
//!
//! ```text
//!   machine.rs: what is here ──► plan.rs: rows ──► child.rs: each in a process of its own ──► row.rs: a line
//!                                                     └─ setup.rs: memory and engine ──► jobs.rs, checks/
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "rows go to standard output")]

mod checks;
mod child;
mod gemm8;
mod heap;
mod jobs;
mod lab;
mod machine;
mod map;
mod options;
mod plan;
mod raw;
mod row;
mod setup;
mod vfio;

use contigo_testkit::exercise::{CountingHeap, is_counting};
use row::Status;
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
        eprintln!("contigo-board-tests: heap allocations are not being counted, so nothing can be said about them");
        return ExitCode::FAILURE;
    }
    let planned = plan::rows(&options);
    if options.list {
        planned.iter().for_each(|planned| println!("{}", planned.title()));
        return ExitCode::SUCCESS;
    }
    let mut count = [0_usize; 3];
    for planned in &planned {
        let row = planned.run(&options);
        println!("{}", if options.json { row.json() } else { row.text() });
        let [passed, failed, skipped] = &mut count;
        *match row.status {
            Status::Passed => passed,
            Status::Failed => failed,
            Status::Skipped => skipped,
        } += 1;
    }
    let [passed, failed, skipped] = count;
    if !options.json {
        println!("{passed} passed, {failed} failed, {skipped} skipped");
    }
    if failed == 0 && passed + skipped > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

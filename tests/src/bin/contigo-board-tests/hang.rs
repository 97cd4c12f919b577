#![allow(unsafe_code, reason = "scheduling, and a fork for each processor")]
//! `hang --until-reset`: a program that hangs the board, for the tests of a bench's reset. Nothing
//! but a reset ends it.

use nix::{
    libc,
    sched::{CpuSet, sched_setaffinity},
    unistd::{ForkResult, Pid, fork},
};
use std::{fs, hint, process::ExitCode, thread, time::Duration};

/// Its last word gets out before it begins.
const WORD: Duration = Duration::from_secs(1);

/// A loop on every processor that no other program and no thread of the kernel interrupts.
pub(crate) fn hang() -> ExitCode {
    // Else the kernel leaves 5 % to the others (Documentation/scheduler/sched-rt-group.rst). From
    // 6.12 on a fair server has its share as well.
    let _ = fs::write("/proc/sys/kernel/sched_rt_runtime_us", "-1");
    for entry in fs::read_dir("/sys/kernel/debug/sched/fair_server").into_iter().flatten().flatten()
    {
        let _ = fs::write(entry.path().join("runtime"), "0");
    }
    println!("hanging this board, which only a reset ends");
    thread::sleep(WORD);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    for processor in (0..processors).rev() {
        // The last one is this process itself.
        // SAFETY: this process has one thread.
        if processor > 0 && !matches!(unsafe { fork() }, Ok(ForkResult::Child)) {
            continue;
        }
        let mut set = CpuSet::new();
        let pinned = set.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
        let first = libc::sched_param { sched_priority: 99 };
        // SAFETY: the parameter lives until the call returns.
        let is_first =
            unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first) } == 0;
        if pinned.is_err() || !is_first {
            eprintln!("contigo-board-tests: hang: this wants root");
            return ExitCode::FAILURE;
        }
        loop {
            hint::spin_loop();
        }
    }
    ExitCode::FAILURE
}

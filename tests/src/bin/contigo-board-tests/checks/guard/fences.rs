#![allow(unsafe_code, reason = "a timer that interrupts a wait")]
//! The waits of an import: for the kernel's own work always, for somebody who writes by a flag. An
//! exporter that lies about its length is refused.

use super::{
    super::{Verdict, Wrong, ensure},
    subject::{Subject, file, refused, sys},
};
use crate::{
    lab::{Exporter, property},
    raw::import,
};
use nix::{errno::Errno, libc};
use std::{
    os::fd::OwnedFd,
    thread::{scope, sleep},
    time::{Duration, Instant},
};

/// How long something else is at work on the buffer.
const WORK: Duration = Duration::from_millis(150);
/// The same as the kernel counts, and longer.
const LONG_US: u32 = 5_000_000;
/// Shorter than it.
const SHORT_US: u32 = 20_000;

pub(super) fn fences(subject: &Subject) -> Verdict {
    let exporter = Exporter::open().map_err(|error| Wrong::Skipped(format!("/dev/contigo-lab: {error}")))?;
    let buffer = |properties| file("LAB_EXPORT", exporter.buffer(4, properties));
    let guard = subject.open()?;
    let take = |buffer: &OwnedFd, flags, wait_us| {
        let begun = Instant::now();
        let done = guard.import(buffer, import::CONTIGUOUS | flags, wait_us);
        done.map(|import| (import.handle, begun.elapsed()))
    };
    let give = |handle| sys("RELEASE", guard.release(handle));

    let written = buffer(property::WRITER)?;
    let (handle, _) = sys("without the flag", take(&written, 0, 0))?;
    give(handle)?;
    refused("a writer that goes on", take(&written, import::WAIT, SHORT_US), Errno::ETIMEDOUT)?;
    interrupt_me_after(Duration::from_millis(50))?;
    refused("a wait that a signal ends", take(&written, import::WAIT, LONG_US), Errno::EINTR)?;
    refused("a time without the flag", take(&written, 0, 1), Errno::EINVAL)?;
    refused("the flag without a time", take(&written, import::WAIT, 0), Errno::EINVAL)?;
    let waited = while_at_work(&exporter, || take(&written, import::WAIT, LONG_US))?;
    give(waited.0)?;

    let cleared = buffer(property::KERNEL)?;
    let kernels = while_at_work(&exporter, || take(&cleared, 0, 0))?;
    give(kernels.0)?;

    let short = buffer(property::SHORT)?;
    refused("a list that is too short", take(&short, 0, 0), Errno::ERANGE)?;
    ensure(sys("GET_INFO", guard.info())?.imports == 0, "something was kept")?;
    Ok(format!("waited {:?} for a writer, {:?} for the kernel; ETIMEDOUT, EINTR and ERANGE where they belong", waited.1, kernels.1))
}

/// Imports while something is at work for a while, which it must have waited for.
fn while_at_work(exporter: &Exporter, take: impl FnOnce() -> Result<(u32, Duration), Errno>) -> Result<(u32, Duration), Wrong> {
    let (taken, ended, over) = scope(|scope| {
        let work = scope.spawn(|| {
            sleep(WORK);
            let over = Instant::now();
            exporter.signal();
            over
        });
        // On a busy machine the import may begin late, and so be shorter than the work.
        (take(), Instant::now(), work.join())
    });
    let (handle, took) = sys("IMPORT", taken)?;
    let over = over.map_err(|_| Wrong::Failed("the work on the buffer panicked".to_owned()))?;
    ensure(ended >= over, format!("it was imported {:?} before the end of the work on it", over - ended))?;
    Ok((handle, took))
}

/// One SIGUSR1 for this process, whose handler does nothing.
fn interrupt_me_after(time: Duration) -> Result<(), Wrong> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: zeroed is valid for both; a handler without SA_RESTART that does nothing, and a timer
    // that fires once.
    let armed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        let timer =
            libc::itimerval { it_interval: std::mem::zeroed(), it_value: libc::timeval { tv_sec: 0, tv_usec: time.subsec_micros() as _ } };
        Errno::result(libc::sigaction(libc::SIGVTALRM, &raw const action, std::ptr::null_mut()))
            .and_then(|_| Errno::result(libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut())))
            .and_then(|_| Errno::result(libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut())))
    };
    sys("setitimer", armed).map(drop)
}

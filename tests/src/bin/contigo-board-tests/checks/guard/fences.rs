#![allow(unsafe_code, reason = "a timer that interrupts a wait")]
//! Fences: an import does not wait for who writes the buffer, for that is asked by poll(2). CPU
//! access that a sync begins does, until a signal. An exporter that lies about its length is
//! refused.

use super::{
    super::{Verdict, Wrong, ensure},
    subject::{Subject, file, refused, sys},
};
use crate::{
    lab::{Exporter, property},
    raw::{SYNC_FOR_CPU, info},
};
use nix::{errno::Errno, libc};
use std::{
    thread::{scope, sleep},
    time::{Duration, Instant},
};

/// How long something else is at work on the buffer.
const WORK: Duration = Duration::from_millis(150);

pub(super) fn fences(subject: &Subject) -> Verdict {
    let exporter =
        Exporter::open().map_err(|error| Wrong::Skipped(format!("/dev/contigo-lab: {error}")))?;
    let buffer = |properties| file("LAB_EXPORT", exporter.buffer(4, properties));
    let guard = subject.open()?;

    let written = buffer(property::WRITER)?;
    let import = sys("IMPORT under a writer", guard.import(&written, 0))?;
    refused("imported twice", guard.import(&written, 0), Errno::EBUSY)?;
    let is_coherent = sys("GET_INFO", guard.info())?.flags & info::COHERENT != 0;
    let seen = if is_coherent {
        "a device that snoops needs no sync".to_owned()
    } else {
        let sync = || guard.sync(import.handle, SYNC_FOR_CPU, 0, import.len_bytes);
        interrupt_me_after(Duration::from_millis(50))?;
        refused("a wait that a signal ends", sync(), Errno::EINTR)?;
        let waited = while_at_work(&exporter, sync)?;
        format!("a sync waited {waited:?} for a writer, and EINTR")
    };
    sys("RELEASE", guard.release(import.handle))?;

    let short = buffer(property::SHORT)?;
    refused("a list that is too short", guard.import(&short, 0), Errno::ERANGE)?;
    ensure(sys("GET_INFO", guard.info())?.buffers == 0, "something was kept")?;
    Ok(format!("{seen}; ERANGE for a list that is too short"))
}

/// Syncs while something is at work for a while, which it must have waited for.
fn while_at_work(
    exporter: &Exporter,
    sync: impl FnOnce() -> Result<(), Errno>,
) -> Result<Duration, Wrong> {
    let begun = Instant::now();
    let (done, ended, over) = scope(|scope| {
        let work = scope.spawn(|| {
            sleep(WORK);
            let over = Instant::now();
            exporter.signal();
            over
        });
        // On a busy machine the sync may begin late, and so be shorter than the work.
        (sync(), Instant::now(), work.join())
    });
    sys("SYNC", done)?;
    let over = over.map_err(|_| Wrong::Failed("the work on the buffer panicked".to_owned()))?;
    ensure(
        ended >= over,
        format!("it was synchronised {:?} before the end of the work on it", over - ended),
    )?;
    Ok(begun.elapsed())
}

/// One SIGUSR1 for this process, whose handler does nothing.
fn interrupt_me_after(time: Duration) -> Result<(), Wrong> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: zeroed is valid for both; a handler without SA_RESTART that does nothing, and a timer
    // that fires once.
    let armed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        let timer = libc::itimerval {
            it_interval: std::mem::zeroed(),
            it_value: libc::timeval { tv_sec: 0, tv_usec: time.subsec_micros() as _ },
        };
        Errno::result(libc::sigaction(libc::SIGVTALRM, &raw const action, std::ptr::null_mut()))
            .and_then(|_| {
                Errno::result(libc::sigaction(
                    libc::SIGALRM,
                    &raw const action,
                    std::ptr::null_mut(),
                ))
            })
            .and_then(|_| {
                Errno::result(libc::setitimer(
                    libc::ITIMER_REAL,
                    &raw const timer,
                    std::ptr::null_mut(),
                ))
            })
    };
    sys("setitimer", armed).map(drop)
}

#![allow(unsafe_code, reason = "fork")]
//! Work in a process of its own: another user's, or one that goes on beside the check, and is
//! killed with all that it holds.

use super::{Verdict, Wrong};
use crate::child::become_user;
use nix::{
    libc,
    sys::{
        prctl::set_pdeathsig,
        signal::{Signal, kill},
        wait::{WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, fork},
};
use std::{
    io::{PipeReader, PipeWriter, Read, Write},
    time::{Duration, Instant},
};

/// A process that was begun. Dropped before its end was awaited, it is killed.
#[derive(Debug)]
pub(super) struct Apart {
    process: Pid,
    said: PipeReader,
    is_over: bool,
}

/// What a process writes that is at work.
pub(super) const AT_WORK: [u8; 1] = *b"!";
/// The outcome's first byte.
const PASSED: u8 = b'+';
const SKIPPED: u8 = b'~';

impl Apart {
    /// Begins `work` in a child, as `user` where that is given. `work` may write [`AT_WORK`] to the
    /// pipe, once.
    pub(super) fn begin(
        user: Option<u32>,
        work: impl FnOnce(&mut PipeWriter) -> Verdict,
    ) -> Result<Self, Wrong> {
        let failed =
            |what: &str, error: &dyn std::fmt::Display| Wrong::Failed(format!("{what}: {error}"));
        let (said, mut pipe) = std::io::pipe().map_err(|error| failed("pipe", &error))?;
        // SAFETY: this process has one thread.
        match unsafe { fork() }.map_err(|errno| failed("fork", &errno))? {
            ForkResult::Child => {
                drop(said);
                let became =
                    user.map_or(Ok(()), become_user).and_then(|()| set_pdeathsig(Signal::SIGKILL));
                let done = match became {
                    Ok(()) => work(&mut pipe),
                    Err(errno) => Err(Wrong::Skipped(format!("cannot become a user: {errno}"))),
                };
                let (first, text) = match done {
                    Ok(seen) => (PASSED, seen),
                    Err(Wrong::Skipped(why)) => (SKIPPED, why),
                    Err(Wrong::Failed(why)) => (b'-', why),
                };
                let _ = pipe.write_all(&[&[first], text.as_bytes()].concat());
                // SAFETY: `exit_group`, and nothing before it.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => Ok(Self { process: child, said, is_over: false }),
        }
    }

    /// Waits until it has written one byte more; an error says what it said instead.
    pub(super) fn at_work(mut self) -> Result<Self, Wrong> {
        let mut byte = [0];
        match self.said.read_exact(&mut byte) {
            Ok(()) if byte == AT_WORK => Ok(self),
            _ => Err(Wrong::Failed(format!(
                "a process is not at work: {}",
                String::from_utf8_lossy(&self.ended()?.1)
            ))),
        }
    }

    /// Waits for its end, and for its files to be closed.
    pub(super) fn ended(mut self) -> Result<(WaitStatus, Vec<u8>), Wrong> {
        let mut text = Vec::new();
        let _ = self.said.read_to_end(&mut text);
        Ok((self.reap()?, text))
    }

    /// Kills it; the answer is how long its end took, with the teardown of its files.
    pub(super) fn killed(mut self) -> Result<Duration, Wrong> {
        let begun = Instant::now();
        let _ = kill(self.process, Signal::SIGKILL);
        match self.reap()? {
            WaitStatus::Signaled(_, Signal::SIGKILL, _) => Ok(begun.elapsed()),
            other => Err(Wrong::Failed(format!(
                "a process was to be killed, and ended by itself: {other:?}"
            ))),
        }
    }

    fn reap(&mut self) -> Result<WaitStatus, Wrong> {
        self.is_over = true;
        waitpid(self.process, None).map_err(|errno| Wrong::Failed(format!("waitpid: {errno}")))
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = kill(self.process, Signal::SIGKILL);
            let _ = self.reap();
        }
    }
}

/// Does `work` in a child, and waits for its end.
pub(super) fn apart(user: Option<u32>, work: impl FnOnce() -> Verdict) -> Verdict {
    let (status, said) = Apart::begin(user, |_| work())?.ended()?;
    match (status, said.split_first()) {
        (WaitStatus::Exited(_, 0), Some((&first, text))) => {
            let text = String::from_utf8_lossy(text).into_owned();
            match first {
                PASSED => Ok(text),
                SKIPPED => Err(Wrong::Skipped(text)),
                _ => Err(Wrong::Failed(text)),
            }
        }
        other => Err(Wrong::Failed(format!("a process ended as {other:?}"))),
    }
}

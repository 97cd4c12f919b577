#![allow(unsafe_code, reason = "fork")]
//! Work in a process of its own: another user's, or one that goes on beside the check and is killed
//! with all that it holds.

use crate::child::become_user;
use crate::raw::RawDevNode;
use crate::verdict::{Seen, Tried, Verdict, Wrong, fail, must, skip};
use nix::errno::Errno;
use nix::libc;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::fs::{self, Permissions};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The lab's ordinary user, and its group.
pub(crate) const USER: u32 = 1000;
/// What a process writes once it is at work.
pub(crate) const AT_WORK: [u8; 1] = *b"!";
const PASSED: u8 = b'+';
const SKIPPED: u8 = b'~';
const FAILED: u8 = b'-';

/// A child process. Dropped before its end was awaited, it is killed.
#[derive(Debug)]
pub(crate) struct Apart {
    process: Pid,
    said: PipeReader,
    is_over: bool,
}

impl Apart {
    /// Begins `work` in a child, as `user` where that is given. `work` may write [`AT_WORK`] to the
    /// pipe, once.
    pub(crate) fn begin(
        user: Option<u32>,
        work: impl FnOnce(&mut PipeWriter) -> Verdict,
    ) -> Result<Self, Wrong> {
        let (said, mut pipe) = must("pipe", std::io::pipe())?;
        // SAFETY: this process has one thread.
        match must("fork", unsafe { fork() })? {
            ForkResult::Child => {
                drop(said);
                let became =
                    user.map_or(Ok(()), become_user).and_then(|()| set_pdeathsig(Signal::SIGKILL));
                let done = match became {
                    Ok(()) => work(&mut pipe),
                    Err(errno) => skip(format!("cannot become a user: {errno}")),
                };
                let (first, text) = match done {
                    Ok(seen) => (PASSED, seen),
                    Err(Wrong::Skipped(why)) => (SKIPPED, why),
                    Err(Wrong::Failed(why)) => (FAILED, why),
                };
                let _ = pipe.write_all(&[&[first], text.as_bytes()].concat());
                // SAFETY: `exit_group`, and nothing before it.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => Ok(Self { process: child, said, is_over: false }),
        }
    }

    /// Waits until it is at work; an error has what it said instead.
    pub(crate) fn at_work(mut self) -> Result<Self, Wrong> {
        if self.comes_to_work() {
            return Ok(self);
        }
        let said = self.ended()?.1;
        fail(format!("a process is not at work: {}", String::from_utf8_lossy(&said)))
    }

    fn comes_to_work(&mut self) -> bool {
        let mut byte = [0];
        self.said.read_exact(&mut byte).is_ok() && byte == AT_WORK
    }

    /// Waits for its end, and for its files to be closed.
    pub(crate) fn ended(mut self) -> Result<(WaitStatus, Vec<u8>), Wrong> {
        let mut text = Vec::new();
        let _ = self.said.read_to_end(&mut text);
        Ok((self.reap()?, text))
    }

    /// Kills it, and returns how long its end took, with the teardown of its files.
    pub(crate) fn killed(mut self) -> Result<Duration, Wrong> {
        let begun = Instant::now();
        let _ = kill(self.process, Signal::SIGKILL);
        match self.reap()? {
            WaitStatus::Signaled(_, Signal::SIGKILL, _) => Ok(begun.elapsed()),
            other => {
                let mut said = String::new();
                let _ = self.said.read_to_string(&mut said);
                fail(format!("a process ended before it was killed: {other:?}, {said}"))
            }
        }
    }

    fn reap(&mut self) -> Result<WaitStatus, Wrong> {
        self.is_over = true;
        must("waitpid", waitpid(self.process, None))
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

pub(crate) fn apart(user: Option<u32>, work: impl FnOnce() -> Verdict) -> Verdict {
    let (status, said) = Apart::begin(user, |_| work())?.ended()?;
    let (WaitStatus::Exited(_, 0), Some((&first, text))) = (status, said.split_first()) else {
        return fail(format!("a process ended as {status:?}"));
    };
    let text = String::from_utf8_lossy(text).into_owned();
    match first {
        PASSED => Ok(text),
        SKIPPED => skip(text),
        _ => fail(text),
    }
}

/// Kills a child so long `after` it wrote [`AT_WORK`], and returns how long its end took; `None`
/// where it wrote something else.
pub(crate) fn killed_while(
    work: impl FnOnce(&mut PipeWriter) -> Verdict,
    after: Duration,
) -> Result<Option<Duration>, Wrong> {
    let mut process = Apart::begin(None, work)?;
    let is_at_work = process.comes_to_work();
    if is_at_work {
        sleep(after);
    }
    process.killed().map(|took| is_at_work.then_some(took))
}

/// A kill comes up to so many milliseconds after the device was seen at work.
const AFTER_MS: u64 = 20;

/// Kills the program of one round at work. False where it was not seen at work.
pub(crate) fn kill_one(
    round: u64,
    work: impl FnOnce(&mut PipeWriter) -> Result<(), Wrong>,
) -> Result<bool, Wrong> {
    // 7 and 20 have no common divisor: each millisecond has its turn.
    let after = Duration::from_millis(round * 7 % AFTER_MS);
    let work = |pipe: &mut PipeWriter| work(pipe).map(|()| "it was not killed".to_owned());
    killed_while(work, after).map(|killed| killed.is_some())
}

/// Kills `kills` programs while their device writes. `next_owner` counts the bytes of the next
/// owner's memory that the device still wrote.
pub(crate) fn kill_many(
    kills: u64,
    work: impl Fn(&mut PipeWriter) -> Result<(), Wrong>,
    next_owner: impl Fn() -> Result<u64, Wrong>,
) -> Tried {
    let (mut seen, mut at_work) = (Seen::default(), 0);
    for round in 0..kills {
        at_work += u64::from(kill_one(round, &work)?);
        seen.canary_hits += next_owner()?;
    }
    seen.failed = at_work != kills;
    seen.detail = format!(
        "{at_work} of {kills} processes killed at work; {} bytes of the next owners were written",
        seen.canary_hits
    );
    Ok(seen)
}

pub(crate) fn opens(dev_node: &str) -> Result<Result<(), Errno>, Wrong> {
    let errno = apart(Some(USER), || {
        let errno = RawDevNode::open(dev_node).err();
        Ok(errno.map_or(0, |errno| errno as i32).to_string())
    })?;
    match must("an errno", errno.parse())? {
        0 => Ok(Ok(())),
        errno => Ok(Err(Errno::from_raw(errno))),
    }
}

/// Hands a contigo device to the ordinary user's group, as a udev rule would.
pub(crate) fn allow(dev_node: &str) -> Result<(), Wrong> {
    let node = format!("/dev/contigo/{dev_node}");
    let shared = chown(&node, None, Some(USER))
        .and_then(|()| fs::set_permissions(&node, Permissions::from_mode(0o660)));
    must(&node, shared)
}

//! The longest sync that there is, again and again, from one process. No other caller waits for it:
//! the device's other calls, root's reset and the loss of the driver come through, and a kill ends
//! it.

use super::{
    super::{
        Verdict, Wrong,
        apart::{AT_WORK, Apart},
        ensure,
    },
    subject::{Subject, file, refused, soon, sys},
};
use crate::raw::{RawGuard, SYNC_FOR_CPU, SYNC_FOR_DEVICE, info};
use nix::errno::Errno;
use std::{
    io::Write,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

/// Of one call, at most.
const RANGES: u32 = 1024;
/// As much memory as there is in one run, or less. The loss of the driver copies it.
const LEN_BYTES: [u64; 3] = [16 << 20, 4 << 20, 1 << 20];
/// How long another one may wait.
const BOUND: Duration = Duration::from_secs(1);
/// So many calls of each kind beside it.
const CALLS: u32 = 20;

pub(super) fn long_sync(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    let is_coherent = sys("GET_INFO", guard.info())?.flags & info::COHERENT != 0;
    let (handle, len_bytes) =
        most_of(&guard, if is_coherent { &LEN_BYTES[2..] } else { &LEN_BYTES })?;
    let begin = || {
        let caller = Apart::begin(None, |pipe| {
            file("pipe", pipe.write_all(&AT_WORK))?;
            loop {
                for flags in [SYNC_FOR_DEVICE, SYNC_FOR_CPU] {
                    sys("SYNC", guard.sync_again(RANGES, handle, flags, len_bytes))?;
                }
            }
        })?;
        let caller = caller.at_work()?;
        sleep(Duration::from_millis(100));
        Ok::<_, Wrong>(caller)
    };

    // How long a call is, of which the others must see nothing. Where the device snoops, nothing is
    // done.
    let ranges = if is_coherent { RANGES } else { 1 };
    let call =
        time(|| guard.sync_again(ranges, handle, SYNC_FOR_CPU, len_bytes))? * (RANGES / ranges);
    if is_coherent {
        ensure(call < BOUND, format!("a sync that moves nothing took {call:?}"))?;
    } else {
        ensure(
            call > BOUND,
            format!("the longest sync takes {call:?}: this check can catch nothing"),
        )?;
    }
    let caller = begin()?;
    let (mut longest, mut longest_alloc) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..CALLS {
        longest = longest.max(time(|| guard.info().map(drop))?);
        longest_alloc = longest_alloc.max(time(|| guard.release(guard.alloc(4096, 0)?.handle))?);
    }
    ensure(longest < BOUND, format!("GET_INFO waited {longest:?} for a sync"))?;
    ensure(
        longest_alloc < BOUND,
        format!("ALLOC and RELEASE waited {longest_alloc:?} for a sync"),
    )?;
    let killed = caller.killed()?;
    ensure(killed < BOUND, format!("SIGKILL took {killed:?} to end it"))?;

    // Root takes the device away under it.
    let caller = begin()?;
    let begun = Instant::now();
    let (how, unbound) = match subject.reset_by_root() {
        Ok(()) => ("root's reset", None),
        Err(error) if error.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) => {
            ("unbinding", Some(subject.unbind()?))
        }
        Err(error) => return Err(Wrong::Failed(format!("reset: {error}"))),
    };
    let taken = begun.elapsed();
    ensure(taken < BOUND, format!("{how} waited {taken:?} for a sync"))?;
    refused("GET_INFO", guard.info(), Errno::ENODEV)?;
    let ended = caller.ended()?.1;
    let said = String::from_utf8_lossy(&ended).into_owned();
    ensure(said.contains("ENODEV"), format!("the caller was to see ENODEV, and said {said:?}"))?;
    drop(guard);
    if let Some(unbound) = unbound {
        unbound.bind()?;
        ensure(
            soon(|| Path::new("/dev/contigo").join(&subject.guard).exists()),
            "it did not come back",
        )?;
    }
    drop(subject.open()?);
    let what = if is_coherent { "nothing is moved: " } else { "" };
    Ok(format!(
        "{RANGES} ranges of {} MiB take {call:?}; {what}GET_INFO {longest:?}, ALLOC and RELEASE {longest_alloc:?}, {how} {taken:?}, SIGKILL {killed:?}",
        len_bytes >> 20
    ))
}

/// Memory of its own, the most that there is.
fn most_of(guard: &RawGuard, lengths: &[u64]) -> Result<(u32, u64), Wrong> {
    let most = lengths
        .iter()
        .find_map(|&len_bytes| Some((guard.alloc(len_bytes, 0).ok()?.handle, len_bytes)));
    most.ok_or_else(|| Wrong::Skipped("there is not one MiB in one run".into()))
}

fn time(call: impl FnOnce() -> Result<(), Errno>) -> Result<Duration, Wrong> {
    let begun = Instant::now();
    sys("a call beside a sync", call())?;
    Ok(begun.elapsed())
}

//! What a user can do to others by many calls: nothing. The longest sync that there is, again and
//! again, delays no other caller, and neither wrong calls nor devices that do not stop write the
//! kernel's log full.

use super::subject::Subject;
use crate::apart::{AT_WORK, Apart};
use crate::lab::KernelLog;
use crate::raw::{RawDevNode, SYNC_FOR_CPU, SYNC_FOR_DEVICE, Step, info};
use crate::verdict::{Verdict, Wrong, ensure, fail, must, refused, same};
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

const RANGES: u32 = 1024;
/// As much memory as there is in one run, or less. The loss of the driver copies it.
const LEN_BYTES: [u64; 3] = [16 << 20, 4 << 20, 1 << 20];
const BOUND: Duration = Duration::from_secs(1);
/// So many calls of each kind beside it.
const CALLS: u32 = 20;

/// Fails where `what` waited too long for a sync.
fn in_time(what: &str, took: Duration) -> Result<(), Wrong> {
    ensure(took < BOUND, format!("{what} waited {took:?} for a sync"))
}

pub(crate) fn long_sync(subject: &Subject) -> Verdict {
    let dev_node = subject.open()?;
    let is_coherent = must("GET_INFO", dev_node.info())?.flags & info::COHERENT != 0;
    let (handle, len_bytes) =
        most_of(&dev_node, if is_coherent { &LEN_BYTES[2..] } else { &LEN_BYTES })?;
    let begin = || {
        let caller = Apart::begin(None, |pipe| {
            must("pipe", pipe.write_all(&AT_WORK))?;
            loop {
                for flags in [SYNC_FOR_DEVICE, SYNC_FOR_CPU] {
                    must("SYNC", dev_node.sync_again(RANGES, handle, flags, len_bytes))?;
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
        time(|| dev_node.sync_again(ranges, handle, SYNC_FOR_CPU, len_bytes))? * (RANGES / ranges);
    let is_long = call > BOUND;
    ensure(!is_coherent || !is_long, format!("a sync that moves nothing took {call:?}"))?;
    ensure(is_coherent || is_long, format!("the longest takes {call:?}: nothing can be caught"))?;
    let caller = begin()?;
    let (mut longest, mut longest_alloc) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..CALLS {
        longest = longest.max(time(|| dev_node.info().map(drop))?);
        longest_alloc =
            longest_alloc.max(time(|| dev_node.release(dev_node.alloc(4096, 0)?.handle))?);
    }
    in_time("GET_INFO", longest)?;
    in_time("ALLOC and RELEASE", longest_alloc)?;
    let killed = caller.killed()?;
    in_time("SIGKILL", killed)?;

    // Root takes the device away under it.
    let caller = begin()?;
    let begun = Instant::now();
    let (how, unbound) = match subject.reset_by_root() {
        Ok(()) => ("root's reset", None),
        Err(error) if error.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) => {
            ("unbinding", Some(subject.unbind()?))
        }
        Err(error) => return fail(format!("reset: {error}")),
    };
    let taken = begun.elapsed();
    in_time(how, taken)?;
    refused("GET_INFO", dev_node.info(), Errno::ENODEV)?;
    let said = String::from_utf8_lossy(&caller.ended()?.1).into_owned();
    ensure(said.contains("ENODEV"), format!("the caller was to see ENODEV, and said {said:?}"))?;
    drop(dev_node);
    if let Some(unbound) = unbound {
        unbound.bind()?;
    }
    drop(subject.open()?);
    let what = if is_coherent { "nothing is moved: " } else { "" };
    Ok(format!(
        "{RANGES} ranges of {} MiB take {call:?}; {what}GET_INFO {longest:?}, ALLOC and RELEASE \
         {longest_alloc:?}, {how} {taken:?}, SIGKILL {killed:?}",
        len_bytes >> 20
    ))
}

fn most_of(dev_node: &RawDevNode, lengths: &[u64]) -> Result<(u32, u64), Wrong> {
    let most = lengths
        .iter()
        .find_map(|&len_bytes| Some((dev_node.alloc(len_bytes, 0).ok()?.handle, len_bytes)));
    most.ok_or_else(|| Wrong::Skipped("there is not one MiB in one run".into()))
}

fn time(call: impl FnOnce() -> Result<(), Errno>) -> Result<Duration, Wrong> {
    let begun = Instant::now();
    must("a call beside a sync", call())?;
    Ok(begun.elapsed())
}

const WRONG_CALLS: u32 = 100;
/// Rounds that end with a device that has not stopped.
const ROUNDS: usize = 100;
/// The kernel's default (`DEFAULT_RATELIMIT_*`): so many lines in so long, and one that says how
/// many were left out.
const LINES: u64 = 11;
const WINDOW_S: u64 = 5;
/// The lines of one end: the quarantine, and a reset that failed.
const KINDS: u64 = 2;

pub(crate) fn log(subject: &Subject) -> Verdict {
    let mut kernel = must("/dev/kmsg", KernelLog::from_here())?;
    let dev_node = subject.open()?;
    for _ in 0..WRONG_CALLS {
        wrong_calls(&dev_node)?;
        refused("a second open", RawDevNode::open(&subject.dev_node), Errno::EBUSY)?;
        refused("open to read", to_read(subject), Errno::EACCES)?;
    }
    drop(dev_node);
    same("lines of wrong calls", ours(subject, &mut kernel), Vec::new())?;

    let has_iommu = subject.info()?.flags & info::IOMMU != 0;
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let (dev_node, registers) = subject.open_mapped()?;
        subject.set_flag(&registers, false);
        must("ARM", dev_node.arm(&[Step::poll(subject.flag(), 1, 1, 1)]))?;
        must("ALLOC", dev_node.alloc(4096, 0))?;
        let _fails = subject.reset_fails()?;
        drop((dev_node, registers));
        if has_iommu {
            subject.end_quarantine()?;
        }
    }
    let took = begun.elapsed();
    subject.end_quarantine()?;
    let mut lines = ours(subject, &mut kernel);
    lines.retain(|line| !line.contains("quarantine ended"));
    let lines = lines.len() as u64;
    // A part of the first window, and of the last.
    let most = KINDS * LINES * (took.as_secs() / WINDOW_S + 2);
    ensure(lines > 0, "a device that has not stopped left no line")?;
    ensure(lines <= most, format!("{ROUNDS} ends in {took:?} left {lines} lines, not {most}"))?;
    ensure(most < ROUNDS as u64, format!("{ROUNDS} ends took {took:?}: too slow for this check"))?;
    Ok(format!(
        "no line of {} wrong calls; {lines} of {ROUNDS} ends that were not stopped, in {took:?}",
        9 * WRONG_CALLS
    ))
}

fn ours(subject: &Subject, log: &mut KernelLog) -> Vec<String> {
    let mut lines = log.lines();
    lines.retain(|line| line.contains(&subject.dev_node) || line.contains("contigo"));
    lines
}

fn wrong_calls(dev_node: &RawDevNode) -> Result<(), Wrong> {
    ensure(!dev_node.as_fd().is_terminal(), "it is a terminal")?;
    refused("no bytes", dev_node.alloc(0, 0), Errno::EINVAL)?;
    refused("no such handle", dev_node.release(77), Errno::ENOENT)?;
    refused("a sync of none", dev_node.sync(77, 1, 0, 1), Errno::ENOENT)?;
    refused("a register far away", dev_node.arm(&[Step::poll(!3, 1, 1, 1)]), Errno::ENXIO)?;
    refused("no such interrupt", dev_node.set_eventfd(99, -1), Errno::EINVAL)?;
    let far = dev_node.map_at(1 << 30, 4096, ProtFlags::PROT_READ, MapFlags::MAP_SHARED);
    refused("no mapping", far, Errno::EINVAL)
}

fn to_read(subject: &Subject) -> Result<File, Errno> {
    File::open(format!("/dev/contigo/{}", subject.dev_node))
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}

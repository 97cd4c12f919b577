//! What a user can do to others by many calls: nothing. The longest sync that there is, again and
//! again, delays no other caller, and neither wrong calls nor devices that do not stop write the
//! kernel's log full.

use super::subject::Subject;
use crate::{
    apart::{AT_WORK, Apart},
    lab::KernelLog,
    raw::{RawDevNode, SYNC_FOR_CPU, SYNC_FOR_DEVICE, Step, info},
    verdict::{Verdict, Wrong, ensure, fail, must, refused},
};
use nix::{
    errno::Errno,
    sys::mman::{MapFlags, ProtFlags},
};
use std::{
    fs::File,
    io::Write,
    os::fd::AsRawFd,
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
        longest = longest.max(time(|| dev_node.info().map(drop))?);
        longest_alloc =
            longest_alloc.max(time(|| dev_node.release(dev_node.alloc(4096, 0)?.handle))?);
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
        Err(error) => return fail(format!("reset: {error}")),
    };
    let taken = begun.elapsed();
    ensure(taken < BOUND, format!("{how} waited {taken:?} for a sync"))?;
    refused("GET_INFO", dev_node.info(), Errno::ENODEV)?;
    let ended = caller.ended()?.1;
    let said = String::from_utf8_lossy(&ended).into_owned();
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

/// Memory of its own, the most that there is.
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

/// Wrong calls of each kind.
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
    let lines = ours(subject, &mut kernel);
    ensure(
        lines.is_empty(),
        format!("wrong calls left {} lines: {:?}", lines.len(), lines.first()),
    )?;

    let has_iommu = subject.info()?.flags & info::IOMMU != 0;
    let line = subject.reset();
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let dev_node = subject.open()?;
        let registers = must("mmap", dev_node.map())?;
        subject.set_flag(&registers, false);
        must("ARM", dev_node.arm(&[Step::poll(subject.flag(), 1, 1, 1)]))?;
        must("ALLOC", dev_node.alloc(4096, 0))?;
        let _fails = must("fail", line.as_ref().map(|line| line.told("fail")).transpose())?;
        drop((dev_node, registers));
        if has_iommu {
            subject.end_quarantine()?;
        }
    }
    let took = begun.elapsed();
    subject.end_quarantine()?;
    let lines: Vec<_> = ours(subject, &mut kernel)
        .into_iter()
        .filter(|line| !line.contains("quarantine ended"))
        .collect();
    // A part of the first window, and of the last.
    let most = KINDS * LINES * (took.as_secs() / WINDOW_S + 2);
    ensure(!lines.is_empty(), "a device that has not stopped left no line")?;
    ensure(
        lines.len() as u64 <= most,
        format!("{ROUNDS} ends in {took:?} left {} lines, more than {most}", lines.len()),
    )?;
    ensure(
        most < ROUNDS as u64,
        format!("{ROUNDS} ends took {took:?}: this machine is too slow for the check"),
    )?;
    Ok(format!(
        "no line of {} wrong calls; {} of {ROUNDS} ends that were not stopped, in {took:?}",
        9 * WRONG_CALLS,
        lines.len()
    ))
}

/// Lines that name the device or the module.
fn ours(subject: &Subject, log: &mut KernelLog) -> Vec<String> {
    log.lines()
        .into_iter()
        .filter(|line| line.contains(&subject.dev_node) || line.contains("contigo"))
        .collect()
}

fn wrong_calls(dev_node: &RawDevNode) -> Result<(), Wrong> {
    #[allow(unsafe_code, reason = "isatty")]
    // SAFETY: a question about this descriptor.
    let is_terminal = unsafe { nix::libc::isatty(std::os::fd::AsFd::as_fd(dev_node).as_raw_fd()) };
    ensure(is_terminal == 0, "it is a terminal")?;
    refused("no bytes", dev_node.alloc(0, 0), Errno::EINVAL)?;
    refused("no such handle", dev_node.release(77), Errno::ENOENT)?;
    refused("a sync of none", dev_node.sync(77, 1, 0, 1), Errno::ENOENT)?;
    refused("a register far away", dev_node.arm(&[Step::poll(!3, 1, 1, 1)]), Errno::ENXIO)?;
    refused("no such interrupt", dev_node.set_eventfd(99, -1), Errno::EINVAL)?;
    refused(
        "no mapping",
        dev_node.map_at(1 << 30, 4096, ProtFlags::PROT_READ, MapFlags::MAP_SHARED),
        Errno::EINVAL,
    )
}

fn to_read(subject: &Subject) -> Result<File, Errno> {
    File::open(format!("/dev/contigo/{}", subject.dev_node))
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}

//! No user writes the kernel's log full. A wrong call leaves no line in it, and devices that do not
//! stop leave a few lines a second, however often they are opened.

use super::{
    super::{Verdict, Wrong, ensure},
    subject::{Subject, file, refused, sys},
};
use crate::{
    lab::KernelLog,
    raw::{RawGuard, Step, info},
};
use nix::{
    errno::Errno,
    sys::mman::{MapFlags, ProtFlags},
};
use std::{fs::File, os::fd::AsRawFd, time::Instant};

/// Wrong calls of each kind.
const CALLS: u32 = 100;
/// Rounds that end with a device that has not stopped.
const ROUNDS: usize = 100;
/// The kernel's default (`DEFAULT_RATELIMIT_*`): so many lines in so long, and one that says how
/// many were left out.
const LINES: u64 = 11;
const WINDOW_S: u64 = 5;
/// The lines of one end: the quarantine, and a reset that failed.
const KINDS: u64 = 2;

pub(super) fn log(subject: &Subject) -> Verdict {
    let mut kernel = file("/dev/kmsg", KernelLog::from_here())?;
    let guard = subject.open()?;
    for _ in 0..CALLS {
        wrong_calls(&guard)?;
        refused("a second open", RawGuard::open(&subject.guard), Errno::EBUSY)?;
        refused("open to read", to_read(subject), Errno::EACCES)?;
    }
    drop(guard);
    let lines = ours(subject, &mut kernel);
    ensure(
        lines.is_empty(),
        format!("wrong calls left {} lines: {:?}", lines.len(), lines.first()),
    )?;

    let has_iommu = sys("GET_INFO", subject.open()?.info())?.flags & info::IOMMU != 0;
    let line = subject.reset();
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let guard = subject.open()?;
        let registers = sys("mmap", guard.map())?;
        subject.set_flag(&registers, false);
        sys("ARM", guard.arm(&[Step::poll(subject.flag(), 1, 1, 1)]))?;
        sys("ALLOC", guard.alloc(4096, 0))?;
        let _fails = file("fail", line.as_ref().map(|line| line.told("fail")).transpose())?;
        drop((guard, registers));
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
        9 * CALLS,
        lines.len()
    ))
}

/// Lines that name the device or the module.
fn ours(subject: &Subject, log: &mut KernelLog) -> Vec<String> {
    log.lines()
        .into_iter()
        .filter(|line| line.contains(&subject.guard) || line.contains("contigo"))
        .collect()
}

fn wrong_calls(guard: &RawGuard) -> Result<(), Wrong> {
    #[allow(unsafe_code, reason = "isatty")]
    // SAFETY: a question about this descriptor.
    let is_terminal = unsafe { nix::libc::isatty(std::os::fd::AsFd::as_fd(guard).as_raw_fd()) };
    ensure(is_terminal == 0, "it is a terminal")?;
    refused("no bytes", guard.alloc(0, 0), Errno::EINVAL)?;
    refused("no such handle", guard.release(77), Errno::ENOENT)?;
    refused("a sync of none", guard.sync(77, 1, 0, 1), Errno::ENOENT)?;
    refused("a register far away", guard.arm(&[Step::poll(!3, 1, 1, 1)]), Errno::ENXIO)?;
    refused("no such interrupt", guard.set_eventfd(99, -1), Errno::EINVAL)?;
    refused(
        "no mapping",
        guard.map_at(1 << 30, 4096, ProtFlags::PROT_READ, MapFlags::MAP_SHARED),
        Errno::EINVAL,
    )
}

fn to_read(subject: &Subject) -> Result<File, Errno> {
    File::open(format!("/dev/contigo/{}", subject.guard))
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}

//! Two users who do not trust each other. One dies while the device writes into its memory, which
//! is in quarantine then. The next one cannot free it, least of all by a stop sequence that lies;
//! and never gets memory that the device still writes.

use super::{
    super::{
        Verdict, Wrong,
        as_user::{USER, allow, opens},
        ensure,
    },
    edu,
    fresh::Fresh,
    gone::{Gone, LEFT_BYTES, other_user},
    subject::{Subject, file, refused, sys},
};
use crate::{
    lab::Part,
    raw::{RawGuard, info},
};
use nix::{
    errno::Errno,
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use std::thread::sleep;

/// Until an attack came while the transfer was at work, which takes 100 ms.
pub(super) const ROUNDS: usize = 10;

pub(super) fn two_users(subject: &Subject) -> Verdict {
    on_one_processor()?;
    allow(&subject.guard)?;
    let Some(line) = subject.reset() else { return lying(subject) };
    let seen = by_reset(subject, &line)?;
    let without = subject.without_reset(|| {
        let has_iommu = sys("GET_INFO", subject.open()?.info())?.flags & info::IOMMU != 0;
        allow(&subject.guard)?;
        if has_iommu { refused_while_mapped(subject) } else { lying(subject) }
    })?;
    allow(&subject.guard)?;
    Ok(without.map_or_else(
        || seen.clone(),
        |without| format!("{seen}; without its reset line: {without}"),
    ))
}

/// Freed pages and bus addresses are kept for each processor: the next owner gets the last ones.
pub(super) fn on_one_processor() -> Result<(), Wrong> {
    let mut first = CpuSet::new();
    sys("CPU_SET", first.set(0))?;
    sys("sched_setaffinity", sched_setaffinity(Pid::from_raw(0), &first))
}

/// A user dies while the device is at work, and leaves memory.
fn leaves(subject: &Subject, user: Option<u32>, is_armed: bool) -> Result<(), Wrong> {
    Gone { user, is_armed, has_memory: true }.from(subject)?;
    holds(subject, "its user died while it was at work")
}

fn holds(subject: &Subject, when: &str) -> Result<(), Wrong> {
    let bytes = subject.quarantined_bytes()?;
    ensure(bytes == LEFT_BYTES as u64, format!("{when}: {bytes} bytes are in quarantine"))
}

/// No IOMMU and no reset: the next user is let in, and says that the device has stopped.
fn lying(subject: &Subject) -> Verdict {
    let mut seen = Vec::new();
    for is_armed in [false, true] {
        let mut in_flight = false;
        for _ in 0..ROUNDS {
            leaves(subject, Some(USER), is_armed)?;
            in_flight = lies(subject)?;
            let guard = subject.open()?;
            let info = sys("GET_INFO", guard.info())?;
            let same = info.quarantined == 1 && info.quarantined_bytes == LEFT_BYTES as u64;
            ensure(
                same,
                format!(
                    "another user's lie was believed: {} buffers are in quarantine",
                    info.quarantined
                ),
            )?;
            if in_flight {
                never_written(guard)?;
            }
            subject.end_quarantine()?;
            ensure(
                subject.quarantined_bytes()? == 0,
                "the administrator ended it, and something is left",
            )?;
            if in_flight || !subject.is_edu() {
                break;
            }
        }
        ensure(
            in_flight || !subject.is_edu(),
            "never while the device was at work: this machine is too slow for the check",
        )?;
        seen.push(if is_armed { "left with its polls unmet" } else { "left unarmed" });
    }
    let when = if subject.is_edu() { "while the device wrote, " } else { "" };
    Ok(format!("{when}another user's lie ends no quarantine of what was {}", seen.join(", or ")))
}

/// The next user has memory of its own, and a sequence that is always met. Was the device at work
/// all the while?
fn lies(subject: &Subject) -> Result<bool, Wrong> {
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    sys("ALLOC", guard.alloc(LEFT_BYTES as u64, 0))?;
    sys("ARM", guard.arm(&subject.always(&registers)))?;
    let in_flight = subject.is_edu() && edu::is_running(&registers);
    drop((guard, registers));
    holds(subject, "another user's lie was met")?;
    Ok(in_flight)
}

/// Behind an IOMMU without a reset: every open is refused while the memory is mapped.
fn refused_while_mapped(subject: &Subject) -> Verdict {
    for is_armed in [false, true] {
        let user = other_user(subject)?;
        leaves(subject, user, is_armed)?;
        refused("open for root", RawGuard::open(&subject.guard), Errno::EBUSY)?;
        let other = opens(&subject.guard)?;
        ensure(
            matches!(other, Err(Errno::EBUSY | Errno::EPERM)),
            format!("user {USER}: {other:?}"),
        )?;
        sleep(edu::OVER);
        subject.end_quarantine()?;
        drop(subject.open()?);
    }
    Ok("EBUSY behind the IOMMU until the administrator ends it".into())
}

/// With a reset: the opening resets, and then nothing is written any more. A line that stops
/// nothing shows that it would be seen.
fn by_reset(subject: &Subject, line: &Part) -> Verdict {
    let user = other_user(subject)?;
    let next = |is_armed| {
        leaves(subject, user, is_armed)?;
        let guard = subject.open()?;
        ensure(
            sys("GET_INFO", guard.info())?.quarantined == 0,
            "it was reset, and something is in quarantine",
        )?;
        Ok::<_, Wrong>(guard)
    };
    let mut caught = None;
    for _ in 0..ROUNDS {
        if !subject.is_edu() || caught.is_some() {
            break;
        }
        let inert = file("inert", line.told("inert"))?;
        let fresh = Fresh::of(next(false)?)?;
        sleep(edu::OVER);
        caught = fresh.written()?;
        drop(inert);
    }
    ensure(
        caught.is_some() || !subject.is_edu(),
        "a reset that stops nothing was not seen: this check can catch nothing",
    )?;
    for is_armed in [false, true] {
        never_written(next(is_armed)?)?;
    }
    Ok(match caught {
        Some(addr) => format!(
            "the opening resets it: nothing is written; by a line that stops nothing {addr:#x} was"
        ),
        None => "the opening resets it, and nothing is left".into(),
    })
}

/// This owner's memory stays as it is, for longer than a transfer takes.
pub(super) fn never_written(guard: RawGuard) -> Result<(), Wrong> {
    let fresh = Fresh::of(guard)?;
    sleep(edu::OVER);
    let written = fresh.written()?;
    ensure(written.is_none(), format!("the memory of the next owner was written, at {written:#x?}"))
}

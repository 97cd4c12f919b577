//! Two users who do not trust each other. One dies while the device writes into its memory, which
//! is in quarantine then. The next one cannot free it, least of all by a stop sequence that lies;
//! and never gets memory that the device still writes.

use super::{
    left::{Fresh, Gone, LEFT_BYTES, edu, never_written, other_user},
    subject::Subject,
};
use crate::{
    apart::{USER, allow, apart, opens},
    lab::Part,
    raw::{RawDevNode, Step, info},
    verdict::{Verdict, Wrong, ensure, must, refused, skip},
};
use nix::{
    errno::Errno,
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use std::{fs, thread::sleep};

/// Until an attack came while the transfer was at work, which takes 100 ms.
const ROUNDS: usize = 10;

pub(crate) fn two_users(subject: &Subject) -> Verdict {
    on_one_processor()?;
    allow(&subject.dev_node)?;
    let Some(line) = subject.reset() else { return lying(subject) };
    let seen = by_reset(subject, &line)?;
    let without = subject.without_reset(|| {
        let has_iommu = subject.info()?.flags & info::IOMMU != 0;
        allow(&subject.dev_node)?;
        if has_iommu { refused_while_mapped(subject) } else { lying(subject) }
    })?;
    allow(&subject.dev_node)?;
    Ok(without.map_or_else(
        || seen.clone(),
        |without| format!("{seen}; without its reset line: {without}"),
    ))
}

/// Freed pages and bus addresses are kept for each processor: the next owner gets the last ones.
fn on_one_processor() -> Result<(), Wrong> {
    let mut first = CpuSet::new();
    must("CPU_SET", first.set(0))?;
    must("sched_setaffinity", sched_setaffinity(Pid::from_raw(0), &first))
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
            let dev_node = subject.open()?;
            let info = must("GET_INFO", dev_node.info())?;
            let same = info.quarantined == 1 && info.quarantined_bytes == LEFT_BYTES as u64;
            ensure(
                same,
                format!(
                    "another user's lie was believed: {} buffers are in quarantine",
                    info.quarantined
                ),
            )?;
            if in_flight {
                never_written(dev_node)?;
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
    let dev_node = subject.open()?;
    let registers = must("mmap", dev_node.map())?;
    must("ALLOC", dev_node.alloc(LEFT_BYTES as u64, 0))?;
    must("ARM", dev_node.arm(&subject.always(&registers)))?;
    let in_flight = subject.is_edu() && edu::is_running(&registers);
    drop((dev_node, registers));
    holds(subject, "another user's lie was met")?;
    Ok(in_flight)
}

/// Behind an IOMMU without a reset: every open is refused while the memory is mapped.
fn refused_while_mapped(subject: &Subject) -> Verdict {
    for is_armed in [false, true] {
        let user = other_user(subject)?;
        leaves(subject, user, is_armed)?;
        refused("open for root", RawDevNode::open(&subject.dev_node), Errno::EBUSY)?;
        let other = opens(&subject.dev_node)?;
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
        let dev_node = subject.open()?;
        ensure(
            must("GET_INFO", dev_node.info())?.quarantined == 0,
            "it was reset, and something is in quarantine",
        )?;
        Ok::<_, Wrong>(dev_node)
    };
    let mut caught = None;
    for _ in 0..ROUNDS {
        if !subject.is_edu() || caught.is_some() {
            break;
        }
        let inert = must("inert", line.told("inert"))?;
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

const UNPRIVILEGED: &str = "/sys/module/contigo/parameters/unprivileged";

/// Is there an IOMMU, and a reset line of the lab?
pub(crate) fn is_confined(subject: &Subject) -> bool {
    let has_iommu =
        fs::exists(format!("/sys/class/contigo/{}/device/iommu_group", subject.dev_node))
            .unwrap_or(false);
    has_iommu && subject.is_edu() && subject.reset().is_some()
}

/// A stop sequence whose writes begin a transfer, and whose poll is always met: on a device that an
/// IOMMU and a reset confine. The reset ends what it began, before the next owner gets the address.
pub(crate) fn lying_confined(subject: &Subject) -> Verdict {
    on_one_processor()?;
    allow(&subject.dev_node)?;
    if subject.info()?.flags & info::CONFINED == 0 {
        return skip("its IOMMU forgets addresses later: it is not confined");
    }
    let line = subject.reset_line()?;
    let mut caught = None;
    for _ in 0..ROUNDS {
        if caught.is_some() {
            break;
        }
        let inert = must("inert", line.told("inert"))?;
        begins_at_its_end(subject)?;
        let fresh = Fresh::of(subject.open()?)?;
        sleep(edu::OVER);
        caught = fresh.written()?;
        drop(inert);
    }
    let addr = caught.ok_or_else(|| {
        Wrong::Failed(
            "a reset that stops nothing was not seen: this check can catch nothing".into(),
        )
    })?;
    for _ in 0..ROUNDS {
        begins_at_its_end(subject)?;
        never_written(subject.open()?)?;
    }

    // With nothing but that sequence to stop it, it is not confined.
    let is_open_to_all = must(UNPRIVILEGED, fs::read_to_string(UNPRIVILEGED))?.trim() == "Y";
    subject.without_reset(|| {
        allow(&subject.dev_node)?;
        let flags = subject.info()?.flags;
        ensure(
            flags & info::CONFINED == 0,
            format!("no reset line, and it is called confined: {flags:#x}"),
        )?;
        let user = opens(&subject.dev_node)?;
        ensure(
            is_open_to_all || user == Err(Errno::EPERM),
            format!("it is not confined, and user {USER}: {user:?}"),
        )
    })?;
    allow(&subject.dev_node)?;
    Ok(format!(
        "{ROUNDS} transfers that a stop sequence began wrote nothing of the next owner's; by a \
         line that stops nothing {addr:#x} was"
    ))
}

/// A user goes, whose stop sequence begins a transfer into what was its own, and says that all is
/// well.
fn begins_at_its_end(subject: &Subject) -> Result<(), Wrong> {
    apart(Some(USER), || {
        let dev_node = subject.open()?;
        let registers = must("mmap", dev_node.map())?;
        let memory = must("ALLOC", dev_node.alloc(LEFT_BYTES as u64, 0))?;
        let to = u32::try_from(memory.addr)
            .map_err(|_| Wrong::Failed(format!("edu does not reach {:#x}", memory.addr)))?;
        let now = registers.read(subject.steady()) & 1;
        let steps: Vec<_> =
            edu::start(to).into_iter().chain([Step::poll(subject.steady(), 1, now, 100)]).collect();
        must("ARM", dev_node.arm(&steps))?;
        Ok(String::new())
    })?;
    let bytes = subject.quarantined_bytes()?;
    ensure(
        bytes == 0,
        format!("its user's sequence was met, and it was reset; {bytes} bytes are in quarantine"),
    )
}

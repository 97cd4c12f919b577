//! Two users who do not trust each other. One dies while the device writes into its memory, which
//! is in quarantine then. The next one cannot free it, least of all by a stop sequence that lies;
//! and never gets memory that the device still writes.

use super::left::{Fresh, Gone, LEFT_BYTES, edu, never_written, other_user};
use super::subject::Subject;
use crate::apart::{USER, allow, apart, opens};
use crate::lab::Part;
use crate::raw::{RawDevNode, Step, info};
use crate::verdict::{Verdict, Wrong, ensure, fail, must, refused, same, skip};
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::fs;
use std::thread::sleep;

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
    let without = without.map(|without| format!("; without its reset line: {without}"));
    Ok(seen + &without.unwrap_or_default())
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
    holds(subject, "its user died while it was at work", LEFT_BYTES)
}

fn holds(subject: &Subject, when: &str, bytes: usize) -> Result<(), Wrong> {
    same(&format!("{when}: bytes in quarantine"), subject.quarantined_bytes()?, bytes as u64)
}

/// No IOMMU and no reset: the next user is let in, and says that the device has stopped.
fn lying(subject: &Subject) -> Verdict {
    for is_armed in [false, true] {
        let mut in_flight = false;
        for _ in 0..ROUNDS {
            leaves(subject, Some(USER), is_armed)?;
            in_flight = lies(subject)?;
            let dev_node = subject.open()?;
            let info = must("GET_INFO", dev_node.info())?;
            let kept = (info.quarantined, info.quarantined_bytes);
            same("after another user's lie", kept, (1, LEFT_BYTES as u64))?;
            if in_flight {
                never_written(dev_node)?;
            }
            subject.end_quarantine()?;
            holds(subject, "the administrator ended it", 0)?;
            if in_flight || !subject.is_edu() {
                break;
            }
        }
        let was_tried = in_flight || !subject.is_edu();
        ensure(was_tried, "never while the device was at work: this machine is too slow")?;
    }
    let when = if subject.is_edu() { "while the device wrote, " } else { "" };
    Ok(format!("{when}another user's lie ends no quarantine of what was left, armed or not"))
}

/// The next user has memory of its own, and a sequence that is always met. Was the device at work
/// all the while?
fn lies(subject: &Subject) -> Result<bool, Wrong> {
    let (dev_node, registers) = subject.open_mapped()?;
    must("ALLOC", dev_node.alloc(LEFT_BYTES as u64, 0))?;
    must("ARM", dev_node.arm(&subject.always(&registers)))?;
    let in_flight = subject.is_edu() && edu::is_running(&registers);
    drop((dev_node, registers));
    holds(subject, "another user's lie was met", LEFT_BYTES)?;
    Ok(in_flight)
}

/// Behind an IOMMU without a reset: every open is refused while the memory is mapped.
fn refused_while_mapped(subject: &Subject) -> Verdict {
    for is_armed in [false, true] {
        let user = other_user(subject)?;
        leaves(subject, user, is_armed)?;
        refused("open for root", RawDevNode::open(&subject.dev_node), Errno::EBUSY)?;
        let other = opens(&subject.dev_node)?;
        let is_refused = matches!(other, Err(Errno::EBUSY | Errno::EPERM));
        ensure(is_refused, format!("user {USER}: {other:?}"))?;
        sleep(edu::OVER);
        subject.end_quarantine()?;
        drop(subject.open()?);
    }
    Ok("EBUSY behind the IOMMU until the administrator ends it".into())
}

/// The address that a device still writes in the next owner's memory, where its reset line stops
/// nothing: what the check must be able to see. `next` is that owner's device.
fn caught_by_inert_line(
    line: &Part,
    next: impl Fn() -> Result<RawDevNode, Wrong>,
) -> Result<u64, Wrong> {
    for _ in 0..ROUNDS {
        let _inert = must("inert", line.told("inert"))?;
        if let Some(addr) = Fresh::of(next()?)?.written_meanwhile()? {
            return Ok(addr);
        }
    }
    fail("a reset that stops nothing was not seen: this check can catch nothing")
}

/// With a reset: the opening resets, and then nothing is written any more. A line that stops
/// nothing shows that it would be seen.
fn by_reset(subject: &Subject, line: &Part) -> Verdict {
    let user = other_user(subject)?;
    let next = |is_armed| {
        leaves(subject, user, is_armed)?;
        let dev_node = subject.open()?;
        same("in quarantine after a reset", must("GET_INFO", dev_node.info())?.quarantined, 0)?;
        Ok::<_, Wrong>(dev_node)
    };
    let caught =
        subject.is_edu().then(|| caught_by_inert_line(line, || next(false))).transpose()?;
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
    let has_iommu = subject.in_class("device/iommu_group").exists();
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
    let next = || begins_at_its_end(subject).and_then(|()| subject.open());
    let addr = caught_by_inert_line(&subject.reset_line()?, next)?;
    for _ in 0..ROUNDS {
        never_written(next()?)?;
    }

    // With nothing but that sequence to stop it, it is not confined.
    let is_open_to_all = must(UNPRIVILEGED, fs::read_to_string(UNPRIVILEGED))?.trim() == "Y";
    subject.without_reset(|| {
        allow(&subject.dev_node)?;
        same("CONFINED without a reset line", subject.info()?.flags & info::CONFINED, 0)?;
        let user = opens(&subject.dev_node)?;
        let right = is_open_to_all || user == Err(Errno::EPERM);
        ensure(right, format!("it is not confined, and user {USER}: {user:?}"))
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
        let (dev_node, registers) = subject.open_mapped()?;
        let memory = must("ALLOC", dev_node.alloc(LEFT_BYTES as u64, 0))?;
        let to = must("an address that edu reaches", u32::try_from(memory.addr))?;
        let now = registers.read(subject.steady()) & 1;
        let met = Step::poll(subject.steady(), 1, now, 100);
        let steps: Vec<_> = edu::start(to).into_iter().chain([met]).collect();
        must("ARM", dev_node.arm(&steps))?;
        Ok(String::new())
    })?;
    holds(subject, "its sequence was met, and it was reset", 0)
}

//! A stop sequence whose writes begin a transfer, and whose poll is always met: on a device that an
//! IOMMU and a reset confine. The reset ends what it began, before the next owner gets the address.

use super::{
    super::{
        Verdict, Wrong,
        apart::apart,
        as_user::{USER, allow, opens},
        ensure,
    },
    edu,
    fresh::Fresh,
    gone::LEFT_BYTES,
    subject::{Subject, file, sys},
    two_users::{ROUNDS, never_written, on_one_processor},
};
use crate::raw::{Step, info};
use nix::errno::Errno;
use std::{fs, thread::sleep};

const UNPRIVILEGED: &str = "/sys/module/contigo/parameters/unprivileged";

/// Is there an IOMMU, and a reset line of the lab?
pub(super) fn is_possible(subject: &Subject) -> bool {
    let has_iommu = fs::exists(format!("/sys/class/contigo/{}/device/iommu_group", subject.guard))
        .unwrap_or(false);
    has_iommu && subject.is_edu() && subject.reset().is_some()
}

pub(super) fn lying(subject: &Subject) -> Verdict {
    on_one_processor()?;
    allow(&subject.guard)?;
    if sys("GET_INFO", subject.open()?.info())?.flags & info::CONFINED == 0 {
        return Err(Wrong::Skipped("its IOMMU forgets addresses later: it is not confined".into()));
    }
    let line =
        subject.reset().ok_or_else(|| Wrong::Skipped("its reset line is not the lab's".into()))?;
    let mut caught = None;
    for _ in 0..ROUNDS {
        if caught.is_some() {
            break;
        }
        let inert = file("inert", line.told("inert"))?;
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
    let is_open_to_all = file(UNPRIVILEGED, fs::read_to_string(UNPRIVILEGED))?.trim() == "Y";
    subject.without_reset(|| {
        allow(&subject.guard)?;
        let flags = sys("GET_INFO", subject.open()?.info())?.flags;
        ensure(
            flags & info::CONFINED == 0,
            format!("no reset line, and it is called confined: {flags:#x}"),
        )?;
        let user = opens(&subject.guard)?;
        ensure(
            is_open_to_all || user == Err(Errno::EPERM),
            format!("it is not confined, and user {USER}: {user:?}"),
        )
    })?;
    allow(&subject.guard)?;
    Ok(format!(
        "{ROUNDS} transfers that a stop sequence began wrote nothing of the next owner's; by a line that stops nothing {addr:#x} was"
    ))
}

/// A user goes, whose stop sequence begins a transfer into what was its own, and says that all is
/// well.
fn begins_at_its_end(subject: &Subject) -> Result<(), Wrong> {
    apart(Some(USER), || {
        let guard = subject.open()?;
        let registers = sys("mmap", guard.map())?;
        let memory = sys("ALLOC", guard.alloc(LEFT_BYTES as u64, 0))?;
        let to = u32::try_from(memory.addr)
            .map_err(|_| Wrong::Failed(format!("edu does not reach {:#x}", memory.addr)))?;
        let now = registers.read(subject.steady()) & 1;
        let steps: Vec<_> =
            edu::start(to).into_iter().chain([Step::poll(subject.steady(), 1, now, 100)]).collect();
        sys("ARM", guard.arm(&steps))?;
        Ok(String::new())
    })?;
    let bytes = subject.quarantined_bytes()?;
    ensure(
        bytes == 0,
        format!("its user's sequence was met, and it was reset; {bytes} bytes are in quarantine"),
    )
}

//! Random copies with each kind of interrupt, every byte compared.

use super::{LIMIT, NARROW, Seen, WIDE, open_edu};
use crate::jobs::{SLOW_JOBS, SLOW_LIMITS};
use contigo::{
    Queue, Region, Result,
    linux::vfio::{Interrupt, Vfio},
};
use contigo_exerciser::{Budget, Exerciser, Ground, Mode, Tally};
use contigo_testkit::edu::Unwatched;

pub(super) fn msi(address: &str) -> Result<Seen> {
    run::<WIDE>(address, Interrupt::Msi)
}

pub(super) fn intx(address: &str) -> Result<Seen> {
    run::<WIDE>(address, Interrupt::Intx)
}

pub(super) fn polled(address: &str) -> Result<Seen> {
    run::<WIDE>(address, Interrupt::Polled)
}

/// With 28 address lines edu reaches nothing of `virt`'s memory, which begins at 1 GiB: the IOMMU
/// places it lower.
pub(super) fn narrow(address: &str) -> Result<Seen> {
    run::<NARROW>(address, Interrupt::Msi)
}

fn run<const BITS: u32>(address: &str, interrupt: Interrupt) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let region = Region::new(vfio.memory(Ground::WHOLE_BYTES + 4096)?)?;
    let mut queue = Queue::new(open_edu::<BITS, _>(&vfio, interrupt, Unwatched)?, 1)?;
    let mut exerciser = Exerciser::new(Ground::new(&region)?, SLOW_LIMITS, 0xED0)?;
    let ended = exerciser.run(&mut queue, Mode::Waiting(LIMIT), Budget::jobs(SLOW_JOBS));
    let Tally { jobs, bytes, mismatches, canary_hits, first_wrong, .. } = exerciser.tally();
    let wrong = first_wrong
        .map(|first| first.to_string())
        .or(ended.err().map(|stopped| stopped.to_string()));
    let detail =
        format!("{interrupt:?}, {BITS} address bits, memory at {:#x}", region.base().raw());
    let detail = wrong.iter().fold(detail, |detail, wrong| format!("{detail}; {wrong}"));
    Ok(Seen {
        jobs,
        bytes,
        mismatches,
        canary_hits,
        failed: wrong.is_some(),
        ..Seen::shown(detail)
    })
}

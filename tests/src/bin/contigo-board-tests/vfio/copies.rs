//! Copies of many lengths, at many offsets, with every byte of the region compared.

use super::{LEN, LIMIT, NARROW, Outcome, WIDE, open_edu};
use contigo::{
    Align, Engine, Pool, Region, Result,
    linux::vfio::{Interrupt, Vfio},
};
use contigo_testkit::edu::Unwatched;
use fastrand::Rng;

const SLOT: usize = 8192;
const SLOTS: usize = 8;

pub(super) fn msi(address: &str) -> Result<Outcome> {
    run::<WIDE>(address, Interrupt::Msi)
}

pub(super) fn intx(address: &str) -> Result<Outcome> {
    run::<WIDE>(address, Interrupt::Intx)
}

pub(super) fn polled(address: &str) -> Result<Outcome> {
    run::<WIDE>(address, Interrupt::Polled)
}

/// With 28 address lines edu reaches nothing of `virt`'s memory, which begins at 1 GiB: the IOMMU
/// places it lower.
pub(super) fn narrow(address: &str) -> Result<Outcome> {
    run::<NARROW>(address, Interrupt::Msi)
}

/// Every byte of a region before and after each copy: what is not the destination must not change.
fn run<const BITS: u32>(address: &str, interrupt: Interrupt) -> Result<Outcome> {
    let vfio = Vfio::open(address)?;
    let region = Region::new(vfio.memory(SLOTS * SLOT)?)?;
    let pool = Pool::<SLOTS>::new(region.carve(SLOTS * SLOT, Align::PAGE)?, SLOT)?;
    let mut engine = Engine::new(open_edu::<BITS, _>(&vfio, interrupt, Unwatched)?)?;
    let mut rng = Rng::with_seed(0xED0);
    let mut outcome = Outcome::default();
    // The other slots are live buffers of the CPU's, all around the two in use.
    let mut others = Vec::new();
    for _ in 2..SLOTS {
        let mut other = pool.take()?;
        other.view_mut::<u8>()?.iter_mut().for_each(|byte| *byte = rng.u8(..));
        others.push((other.view::<u8>()?.to_vec(), other));
    }
    let lengths = [1, 3, 64, 100, 1023, 4094, LEN].into_iter().map(|len| (len, 0, 0));
    let mut draw = Rng::with_seed(0xED1);
    let random = (0..8).map(|_| (draw.usize(1..=LEN), draw.usize(..4096), draw.usize(..4096)));
    for (len, at, target) in lengths.chain(random) {
        let (mut from, mut to) = (pool.take()?, pool.take()?);
        from.view_mut::<u8>()?.iter_mut().for_each(|byte| *byte = rng.u8(..));
        to.view_mut::<u8>()?.iter_mut().for_each(|byte| *byte = rng.u8(..));
        let mut expected = to.view::<u8>()?.to_vec();
        expected[target..target + len].copy_from_slice(&from.view::<u8>()?[at..at + len]);
        let source = from.view::<u8>()?.to_vec();
        let job = engine.start([from.to_device(at..at + len), to.from_device(target..target + len)], &())?;
        let [from, to] = job.wait(LIMIT)?.buffers;
        for (index, (seen, wanted)) in to.view::<u8>()?.iter().zip(&expected).enumerate() {
            let inside = (target..target + len).contains(&index);
            outcome.mismatches += u64::from(inside && seen != wanted);
            outcome.canary_hits += u64::from(!inside && seen != wanted);
        }
        outcome.canary_hits += differences(from.view::<u8>()?, &source);
        for (before, other) in &others {
            outcome.canary_hits += differences(other.view::<u8>()?, before);
        }
        outcome.jobs += 1;
        outcome.bytes += len as u64;
    }
    outcome.detail = format!("{interrupt:?}, {BITS} address bits, memory at {:#x}", region.base().raw());
    Ok(outcome)
}

fn differences(seen: &[u8], wanted: &[u8]) -> u64 {
    seen.iter().zip(wanted).filter(|(seen, wanted)| seen != wanted).count() as u64
}

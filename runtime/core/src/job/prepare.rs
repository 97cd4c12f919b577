//! The steps before a doorbell: every check, then the caches.

use super::{Driver, OperandSpec};
use crate::{
    mem::{DevSlice, Operand, Port, WrongAccesses},
    trace::Site,
    types::{Error, Result},
};
use core::time::Duration;
use heapless::Vec;

/// The most operands of a job: an `s_axilite` block of 4 KiB holds more pointers than that, and a
/// driver that needs more wants a descriptor ring.
pub const MAX_OPERANDS: usize = 16;

/// A refusal, and the operand that it is about.
pub(super) type OperandError = (Option<usize>, Error);

/// Where the device finds the operands of a job.
pub(super) type Slices<const OPERANDS: usize> = Vec<DevSlice, OPERANDS>;

/// Everything that can be refused, then the caches. `slices`, which is empty, says where the device
/// finds the operands. Returns how many bytes the job may write; where it writes none, how many it
/// reads.
#[inline]
pub(super) fn prepare<D: Driver, const OPERANDS: usize>(
    driver: &D,
    port: &Port,
    operands: &[Operand],
    slices: &mut Slices<OPERANDS>,
    args: &[u32],
    site: Site,
) -> Result<usize, OperandError> {
    let (specs, addr_bits) = (driver.operands(), driver.addr_bits());
    if specs.len() != operands.len() {
        let (value, n) = (operands.len() as u64, specs.len() as u64);
        return Err((
            None,
            Error::Argument {
                name: "the count of operands",
                value,
                min: n,
                max: n,
                multiple_of: 1,
            },
        ));
    }
    let (mut reads, mut writes) = (0_usize, 0_usize);
    for (index, (operand, spec)) in operands.iter().zip(specs).enumerate() {
        let slice = match one(operand, index, spec, port, addr_bits) {
            Ok(slice) => slice,
            Err(error) => return Err((Some(index), error)),
        };
        // There is room: no queue has a driver with more operands.
        let _ = slices.push(slice);
        let sum = if spec.direction.device_writes() { &mut writes } else { &mut reads };
        *sum = sum.saturating_add(slice.len_bytes);
    }
    driver.check(slices, args).map_err(|error| (None, error))?;
    for (index, operand) in operands.iter().enumerate() {
        operand.prepare(port, site).map_err(|error| (Some(index), error))?;
    }
    Ok(if writes == 0 { reads } else { writes })
}

#[inline(always)]
fn one(
    operand: &Operand,
    index: usize,
    spec: &OperandSpec,
    port: &Port,
    addr_bits: u32,
) -> Result<DevSlice> {
    if operand.direction() != spec.direction {
        return Err(Error::WrongDirection { index, expected: spec.direction });
    }
    let slice = operand.check(index, port, addr_bits)?;
    spec.check(index, &slice)?;
    if spec.word_bytes > 1 && spec.direction.device_reads() {
        operand.check_words(index, spec.word_bytes, &slice)?;
    }
    Ok(slice)
}

/// A simulated board hears what the device is given, and says what the device touched wrongly so
/// far. Apart from the fast path.
#[cold]
#[inline(never)]
pub(super) fn tell_given(
    driver: &impl Driver,
    port: &Port,
    operands: &[Operand],
) -> Result<WrongAccesses> {
    operands.iter().for_each(|operand| operand.given().is_given(port, operand.direction()));
    wrong_accesses(driver, operands)
}

/// The job of `operands` ended on a simulated board. Where its device touched something wrongly
/// since `before`, which is when the first of the jobs in flight began, or where the board could
/// not be asked, none of their results can be trusted ([`WrongAccesses`]). A job that failed by the
/// device's own word has its error already.
#[cold]
#[inline(never)]
pub(super) fn ended(
    driver: &impl Driver,
    operands: &[Operand],
    failed: bool,
    before: &mut Result<WrongAccesses>,
) -> Result<()> {
    // First: where the board does not hear it, the count below is an error.
    at_rest(operands);
    // Of a failed job the accesses may be another's that is in flight: its end is to say them.
    if failed {
        return Ok(());
    }
    let now = wrong_accesses(driver, operands)?;
    let wrong = now.since((*before)?);
    if !wrong.is_none() {
        let WrongAccesses { unowned, stray } = wrong;
        return Err(Error::WrongAccess { device: driver.name(), unowned, stray });
    }
    *before = Ok(now);
    Ok(())
}

/// Every operand is on the device's board: `prepare` compared their buses.
fn wrong_accesses(driver: &impl Driver, operands: &[Operand]) -> Result<WrongAccesses> {
    match (driver.simulated(), operands.first()) {
        (Some(device), _) => device.wrong_accesses(),
        (None, Some(operand)) => operand.given().wrong_accesses(),
        (None, None) => Ok(WrongAccesses::default()),
    }
}

/// It hears that no device has the buffers any more.
#[cold]
#[inline(never)]
pub(super) fn at_rest(operands: &[Operand]) {
    operands.iter().for_each(|operand| operand.given().at_rest());
}

/// The device wrote only the first `bytes` of the one operand that it writes: no more is
/// invalidated. Where it writes several, each counts as written whole (`Completion::bytes`).
#[inline]
pub(super) fn received(operands: &mut [Operand], bytes: usize) {
    let mut written = operands.iter_mut().filter(|operand| operand.direction().device_writes());
    if let (Some(operand), None) = (written.next(), written.next()) {
        operand.given_mut().received(bytes);
    }
}

/// The device is stopped, and its driver may keep the ends of jobs that had ended before
/// (`Driver`, 12). The queue has no use for these. There are as many as slots at most.
pub(super) fn forget_ends<D: Driver>(driver: &mut D) {
    for _ in 0..driver.depth() {
        if !matches!(driver.poll(Duration::ZERO), Ok(Some(_))) {
            return;
        }
    }
}

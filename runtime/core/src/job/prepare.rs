//! The steps before a doorbell: every check, then the caches.

use super::{Driver, OperandSpec};
use crate::mem::buf::Cleaning;
use crate::mem::{DevSlice, Operand, Port, WrongAccesses};
use crate::trace::Site;
use crate::types::{Error, Result};
use core::time::Duration;
use heapless::Vec;

/// The most operands of a job: an `s_axilite` block of 4 KiB holds more pointers than that, and a
/// driver that needs more should use a descriptor ring.
pub const MAX_OPERANDS: usize = 16;

/// An error, and the index of the operand that was refused.
pub(super) type OperandError = (Option<usize>, Error);

/// Where the device finds the operands of a job.
pub(super) type Slices<const OPERANDS: usize> = Vec<DevSlice, OPERANDS>;

/// Does every check that can refuse a job, then the cache maintenance. Fills `slices`, which is
/// empty, with the operands as the device finds them. Returns how many bytes the job may write or,
/// if it writes none, how many it reads.
#[inline]
pub(super) fn prepare<D: Driver, const OPERANDS: usize>(
    driver: &D,
    (port, reach): (&Port, (u64, u64)),
    operands: &[Operand],
    slices: &mut Slices<OPERANDS>,
    args: &[u32],
    cleaning: Cleaning,
    site: Site,
) -> Result<usize, OperandError> {
    let specs = driver.operands();
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
        let slice = match one(operand, index, spec, port, reach) {
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
        operand.prepare(port, cleaning, site).map_err(|error| (Some(index), error))?;
    }
    Ok(if writes == 0 { reads } else { writes })
}

#[inline(always)]
fn one(
    operand: &Operand,
    index: usize,
    spec: &OperandSpec,
    port: &Port,
    reach: (u64, u64),
) -> Result<DevSlice> {
    if operand.direction() != spec.direction {
        return Err(Error::WrongDirection { index, expected: spec.direction });
    }
    let slice = operand.check(index, port, reach)?;
    spec.check(index, &slice)?;
    if spec.word_bytes > 1 && spec.direction.device_reads() {
        operand.check_words(index, spec.word_bytes, &slice)?;
    }
    Ok(slice)
}

/// Tells a simulated board what the device is given, and returns the device's wrong accesses so
/// far. Kept out of the fast path.
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

/// Checks the job of `operands`, which ended on a simulated board. If its device touched something
/// wrongly since `before`, when the first of the jobs in flight began, or if the board could not be
/// asked, none of their results can be trusted ([`WrongAccesses`]). A job that its device reported
/// as failed has its error already.
#[cold]
#[inline(never)]
pub(super) fn ended(
    driver: &impl Driver,
    operands: &[Operand],
    failed: bool,
    before: &mut Result<WrongAccesses>,
) -> Result<()> {
    // This comes first: if the board misses it, the count below is an error.
    at_rest(operands);
    // A failed job's wrong accesses may be those of another in flight, whose end reports them.
    if failed {
        return Ok(());
    }
    let now = wrong_accesses(driver, operands)?;
    let wrong = now.since((*before)?);
    if !wrong.is_none() {
        let (device, WrongAccesses { unowned, stray, uncomputed }) = (driver.name(), wrong);
        return Err(match (unowned, stray) {
            (0, 0) => Error::NotComputed { device, jobs: uncomputed },
            _ => Error::WrongAccess { device, unowned, stray },
        });
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

/// Tells the board that no device has the buffers any more.
#[cold]
#[inline(never)]
pub(super) fn at_rest(operands: &[Operand]) {
    operands.iter().for_each(|operand| operand.given().at_rest());
}

/// Notes that the device wrote only the first `bytes` of the one operand that it writes: no more is
/// invalidated. If it writes several, each counts as written whole (`Completion::bytes`).
#[inline]
pub(super) fn received(operands: &mut [Operand], bytes: usize) {
    let mut written = operands.iter_mut().filter(|operand| operand.direction().device_writes());
    if let (Some(operand), None) = (written.next(), written.next()) {
        operand.given_mut().received(bytes);
    }
}

/// Discards what a stopped device's driver may still report: ends of jobs from before (`Driver`,
/// 12). The queue has no use for them. There are as many as slots at most.
pub(super) fn forget_ends<D: Driver>(driver: &mut D) {
    for _ in 0..driver.depth() {
        if !matches!(driver.poll(Duration::ZERO), Ok(Some(_))) {
            return;
        }
    }
}

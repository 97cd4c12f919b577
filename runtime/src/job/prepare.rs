//! What an engine and a queue do alike before a doorbell: every check, then the caches.

use super::{Driver, OperandSpec};
use crate::{
    mem::{DevBuf, DevSlice, Operand, Port},
    trace::Site,
    types::{Error, Result},
};

/// The most operands of a job: an `s_axilite` block of 4 KiB holds more pointers than that, and a
/// driver that needs more wants a descriptor ring.
pub const MAX_OPERANDS: usize = 16;

/// A refusal, and the operand that it is about.
pub(super) type About = (Option<usize>, Error);

/// Everything that can be refused, then the caches. `slices`, as many as operands, says where the
/// device finds them.
#[inline]
pub(super) fn prepare<D: Driver, T>(
    driver: &D,
    port: &Port,
    operands: &[Operand<'_, T>],
    slices: &mut [DevSlice],
    args: &[u32],
    site: Site,
) -> Result<(), About> {
    let (specs, addr_bits) = (driver.operands(), driver.addr_bits());
    if specs.len() != operands.len() {
        let (value, n) = (operands.len() as u64, specs.len() as u64);
        return Err((None, Error::Argument { name: "the count of operands", value, min: n, max: n, multiple_of: 1 }));
    }
    for (index, ((operand, slice), spec)) in operands.iter().zip(&mut *slices).zip(specs).enumerate() {
        *slice = one(operand, index, spec, port, addr_bits).map_err(|error| (Some(index), error))?;
    }
    driver.check(slices, args).map_err(|error| (None, error))?;
    for (index, operand) in operands.iter().enumerate() {
        operand.prepare(port, site).map_err(|error| (Some(index), error))?;
    }
    Ok(())
}

#[inline]
fn one<T>(operand: &Operand<'_, T>, index: usize, spec: &OperandSpec, port: &Port, addr_bits: u32) -> Result<DevSlice> {
    if operand.direction() != spec.direction {
        return Err(Error::WrongDirection { index, expected: spec.direction });
    }
    let slice = operand.check(index, port, addr_bits)?;
    spec.check(index, &slice)?;
    Ok(slice)
}

/// How many bytes a job may write; where it writes none, how many it reads.
#[inline]
pub(super) fn most_bytes(specs: &[OperandSpec], slices: &[DevSlice]) -> usize {
    let sum = |writes: bool| {
        let of = specs.iter().zip(slices).filter(|(spec, _)| spec.direction.device_writes() == writes);
        of.map(|(_, slice)| slice.len_bytes).fold(0, usize::saturating_add)
    };
    match sum(true) {
        0 => sum(false),
        written => written,
    }
}

/// The device wrote only the first `bytes` of the one operand that it writes: no more is
/// invalidated. Where it writes several, each counts as written whole (`Completion::bytes`).
#[inline]
pub(super) fn received<T>(specs: &[OperandSpec], buffers: &mut [DevBuf<'_, T>], bytes: usize) {
    let mut written = buffers.iter_mut().zip(specs).filter(|(_, spec)| spec.direction.device_writes());
    if let (Some((buf, _)), None) = (written.next(), written.next()) {
        buf.received(bytes);
    }
}

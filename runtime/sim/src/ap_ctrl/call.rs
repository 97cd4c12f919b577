//! One job of a simulated kernel, as its function sees it.

use crate::{BusError, SimBus};
use contigo_core::types::DevAddr;
use contigo_design::kernel::KernelMap;

/// One job of a simulated kernel: its scalars, and the bytes of its operands.
///
/// An operand has as many bytes as the map's rule says of these scalars, and where there is no rule
/// as many as the operand's `min_bytes`. An access outside of it, or against the operand's
/// direction, is a [`BusError`] and does nothing.
#[derive(Debug)]
pub struct KernelCall<'c, 's> {
    pub(super) map: &'c KernelMap,
    pub(super) pointers: &'c [u64],
    pub(super) scalars: &'c [u64],
    pub(super) bus: &'c mut SimBus<'s>,
}

impl KernelCall<'_, '_> {
    /// Scalar number `index`; 0 where there is none.
    #[must_use]
    pub fn scalar(&self, index: usize) -> u64 {
        self.scalars.get(index).copied().unwrap_or(0)
    }

    /// How many bytes operand number `index` has.
    #[must_use]
    pub fn len_bytes(&self, index: usize) -> u64 {
        if index < self.map.pointers().len() { self.map.need_bytes(index, self.scalars) } else { 0 }
    }

    /// Reads bytes of operand number `index`, from its byte `at` on.
    ///
    /// # Errors
    /// [`BusError`]: outside the operand, an operand that the kernel only writes, or no memory.
    pub fn read(&mut self, index: usize, at: u64, to: &mut [u8]) -> Result<(), BusError> {
        let addr = self.addr(index, at, to.len(), false)?;
        self.bus.read(addr, to)
    }

    /// Writes bytes of operand number `index`, from its byte `at` on.
    ///
    /// # Errors
    /// [`BusError`]: outside the operand, an operand that the kernel only reads, or no memory.
    pub fn write(&mut self, index: usize, at: u64, from: &[u8]) -> Result<(), BusError> {
        let addr = self.addr(index, at, from.len(), true)?;
        self.bus.write(addr, from)
    }

    /// Where that is on the bus.
    fn addr(&self, index: usize, at: u64, len: usize, writes: bool) -> Result<DevAddr, BusError> {
        let base = self.pointers.get(index).copied().unwrap_or(u64::MAX);
        let addr = DevAddr(base.wrapping_add(at));
        let allowed = self.map.operands().get(index).is_some_and(|spec| match writes {
            true => spec.direction.device_writes(),
            false => spec.direction.device_reads(),
        });
        let inside = at.checked_add(len as u64).is_some_and(|end| end <= self.len_bytes(index));
        if allowed && inside { Ok(addr) } else { Err(BusError { addr }) }
    }
}

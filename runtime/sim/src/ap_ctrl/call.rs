//! One job of a simulated kernel, as the kernel's function sees it; and the default kernel, which
//! copies.

use super::ApCtrlModel;
use crate::{BusError, SimBus};
use contigo_core::job::OperandSpec;
use contigo_core::types::DevAddr;
use contigo_design::kernel::{KernelMap, MapError, Protocol};

/// One job of a simulated kernel: its scalars, and the bytes of its operands.
///
/// An operand's length follows from the scalars by the map's rule; without a rule it is the
/// operand's `min_bytes`. An access outside of the operand, or against its direction, is a
/// [`BusError`] and does nothing.
#[derive(Debug)]
pub struct KernelCall<'c, 's> {
    pub(super) map: &'c KernelMap,
    pub(super) pointers: &'c [u64],
    pub(super) scalars: &'c [u64],
    pub(super) bus: &'c mut SimBus<'s>,
}

impl KernelCall<'_, '_> {
    /// Returns scalar number `index`, or 0 if there is none.
    #[must_use]
    pub fn scalar(&self, index: usize) -> u64 {
        self.scalars.get(index).copied().unwrap_or(0)
    }

    /// Returns the length of operand number `index`.
    #[must_use]
    pub fn len_bytes(&self, index: usize) -> u64 {
        if index < self.map.pointers().len() { self.map.need_bytes(index, self.scalars) } else { 0 }
    }

    /// Reads bytes of operand number `index`, starting at its byte `at`.
    ///
    /// # Errors
    /// [`BusError`]: outside the operand, an operand that the kernel only writes, or no memory.
    pub fn read(&mut self, index: usize, at: u64, to: &mut [u8]) -> Result<(), BusError> {
        let addr = self.addr(index, at, to.len(), false)?;
        self.bus.read(addr, to)
    }

    /// Writes bytes of operand number `index`, starting at its byte `at`.
    ///
    /// # Errors
    /// [`BusError`]: outside the operand, an operand that the kernel only reads, or no memory.
    pub fn write(&mut self, index: usize, at: u64, from: &[u8]) -> Result<(), BusError> {
        let addr = self.addr(index, at, from.len(), true)?;
        self.bus.write(addr, from)
    }

    /// The bus address of byte `at` of an operand.
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

/// `int copy(const char *from, char *to, unsigned n)`, which returns `n`: a kernel for tests.
const fn map(protocol: Protocol) -> Result<KernelMap, MapError> {
    KernelMap::named("copy", protocol)
        .interrupt(true)
        .result("ap_return", 0x10, 32)
        .pointer("from", 0x18, OperandSpec::to_device(), "n")
        .pointer("to", 0x24, OperandSpec::from_device(), "n")
        .scalar("n", 0x30, 32)
        .build()
}
const COPIER: KernelMap = match map(Protocol::Chain) {
    Ok(map) => map,
    Err(_) => panic!("the table is wrong"),
};
const COPIER_HS: KernelMap = match map(Protocol::Hs) {
    Ok(map) => map,
    Err(_) => panic!("the table is wrong"),
};
/// One burst: 16 beats of 128 bits.
const BURST_BYTES: usize = 256;

impl Default for ApCtrlModel {
    /// `int copy(const char *from, char *to, unsigned n)` by `ap_ctrl_chain`: it copies `n` bytes
    /// and returns `n`. Its operands are `from` and `to`, its argument word is `n`.
    fn default() -> Self {
        Self::copier(COPIER)
    }
}

impl ApCtrlModel {
    /// The same kernel by `ap_ctrl_hs`: one job at a time.
    #[must_use]
    pub fn copier_hs() -> Self {
        Self::copier(COPIER_HS)
    }

    fn copier(map: KernelMap) -> Self {
        Self::as_reset(map, |call| {
            let len_bytes = call.len_bytes(0);
            for at in (0..len_bytes).step_by(BURST_BYTES) {
                let mut beats = [0; BURST_BYTES];
                let burst = len_bytes.saturating_sub(at).min(BURST_BYTES as u64);
                #[allow(clippy::cast_possible_truncation, reason = "256 at most")]
                let bytes = beats.get_mut(..burst as usize).unwrap_or_default();
                call.read(0, at, bytes)?;
                call.write(1, at, bytes)?;
            }
            #[allow(clippy::cast_possible_truncation, reason = "the scalar has 32 bits")]
            Ok([call.scalar(0) as u32, 0, 0, 0])
        })
    }
}

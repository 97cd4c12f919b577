//! One job of a simulated kernel, as the kernel's function sees it; and the default kernel, which
//! copies.

use super::ApCtrlModel;
use crate::{BusError, SimBus};
use contigo_core::job::OperandSpec;
use contigo_core::types::{DevAddr, Direction};
use contigo_design::kernel::{KernelMap, MapError, Protocol};

/// Why a simulated kernel's function did not compute a job.
///
/// Except for [`WouldBlock`](Self::WouldBlock), the job ends with all results 0, and its driver's
/// job fails with [`Error::WrongAccess`](contigo_core::Error::WrongAccess) or
/// [`Error::NotComputed`](contigo_core::Error::NotComputed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelError {
    /// An operand's address has no memory.
    Bus(BusError),
    /// An access outside of operand number `index`, or against its direction. It did nothing.
    Outside {
        /// Which operand.
        index: usize,
        /// The access' first byte in it.
        at: u64,
        /// How many bytes the access has.
        len: usize,
    },
    /// The function itself failed.
    Failed,
    /// The function has not ended. The model calls it again when its driver looks next, with the
    /// same job, and the kernel is busy until then.
    WouldBlock,
}

impl From<BusError> for KernelError {
    fn from(error: BusError) -> Self {
        Self::Bus(error)
    }
}

/// One job of a simulated kernel: its scalars, and the bytes of its operands.
///
/// An operand's length follows from the scalars by the map's rule. Without a rule it is as many
/// bytes from the pointer on as were handed over.
#[derive(Debug)]
pub struct KernelCall<'c, 's> {
    pub(super) number: u64,
    pub(super) map: &'c KernelMap,
    pub(super) pointers: &'c [u64],
    pub(super) scalars: &'c [u64],
    pub(super) bus: &'c mut SimBus<'s>,
}

impl KernelCall<'_, '_> {
    /// The job's number. The model gives no other job the same one, also after a reset.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The kernel's map.
    #[must_use]
    pub const fn map(&self) -> &KernelMap {
        self.map
    }

    /// Returns scalar number `index`, or 0 if there is none.
    #[must_use]
    pub fn scalar(&self, index: usize) -> u64 {
        self.scalars.get(index).copied().unwrap_or(0)
    }

    /// Returns the length of operand number `index`.
    #[must_use]
    pub fn len_bytes(&self, index: usize) -> u64 {
        let Some((operand, addr)) = self.map.operands().get(index).zip(self.pointers.get(index))
        else {
            return 0;
        };
        self.map.len_bytes(index, self.scalars).unwrap_or_else(|| {
            self.bus.handed_over_bytes(DevAddr(*addr), operand.direction.device_writes()) as u64
        })
    }

    /// Reads bytes of operand number `index`, starting at its byte `at`.
    ///
    /// # Errors
    /// [`KernelError::Outside`]: outside the operand, or the kernel only writes it.
    /// [`KernelError::Bus`].
    pub fn read(&mut self, index: usize, at: u64, to: &mut [u8]) -> Result<(), KernelError> {
        let addr = self.addr(index, at, to.len(), Direction::device_reads)?;
        Ok(self.bus.read(addr, to)?)
    }

    /// Reads them as they are in memory, also of an operand that the kernel only writes. No access
    /// of the kernel: for a function that gets whole operands, and leaves some bytes as they are.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn probe(&mut self, index: usize, at: u64, to: &mut [u8]) -> Result<(), KernelError> {
        let addr = self.addr(index, at, to.len(), |_| true)?;
        Ok(self.bus.probe(addr, to)?)
    }

    /// Writes bytes of operand number `index`, starting at its byte `at`.
    ///
    /// # Errors
    /// [`KernelError::Outside`]: outside the operand, or the kernel only reads it.
    /// [`KernelError::Bus`].
    pub fn write(&mut self, index: usize, at: u64, from: &[u8]) -> Result<(), KernelError> {
        let addr = self.addr(index, at, from.len(), Direction::device_writes)?;
        Ok(self.bus.write(addr, from)?)
    }

    /// The bus address of byte `at` of an operand.
    fn addr(
        &self,
        index: usize,
        at: u64,
        len: usize,
        allows: impl Fn(Direction) -> bool,
    ) -> Result<DevAddr, KernelError> {
        let base = self.pointers.get(index).copied().unwrap_or(u64::MAX);
        let allowed = self.map.operands().get(index).is_some_and(|spec| allows(spec.direction));
        let end = at.checked_add(len as u64).filter(|end| *end <= self.len_bytes(index));
        match end.and_then(|end| base.checked_add(end)) {
            Some(_) if allowed => Ok(DevAddr(base + at)),
            _ => Err(KernelError::Outside { index, at, len }),
        }
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

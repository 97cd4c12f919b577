#![allow(unsafe_code, reason = "a framework's elements are copied, by the caller's word")]
//! Buffers that frameworks have as tensors.

use super::buf::{Buf, Held};
use crate::{
    fault::{Fault, Misuse},
    limits,
};
use contigo::dlpack::{Foreign, Lendable, Lent, TensorSpec, TensorTable};
use core::{ffi::c_void, mem};

/// The tensors that frameworks have.
static TENSORS: TensorTable<{ limits::TENSORS }> = TensorTable::new();

impl Buf {
    /// Lends it as a tensor, the CPU's or a device's, and gives the tensor out.
    pub(crate) fn lend(&mut self, spec: &TensorSpec, legacy: bool) -> Result<*mut c_void, Fault> {
        self.unmapped()?;
        let (held, tensor) = match mem::replace(&mut self.held, Held::Away) {
            Held::Cpu(buf) => lend(buf, spec, legacy, Held::LentCpu, Held::Cpu),
            Held::Dev(buf) => lend(buf, spec, legacy, Held::LentDev, Held::Dev),
            other => {
                let refusal = other.not_the_cpus();
                (other, Err(refusal))
            }
        };
        self.held = held;
        tensor
    }

    /// Takes a lent buffer back.
    pub(crate) fn unlend(&mut self) -> Result<(), Fault> {
        let (held, result) = match mem::replace(&mut self.held, Held::Away) {
            Held::LentCpu(lent) => back(lent, Held::LentCpu, Held::Cpu),
            Held::LentDev(lent) => back(lent, Held::LentDev, Held::Dev),
            Held::Cpu(buf) => (Held::Cpu(buf), Err(Misuse::CpuOwned.into())),
            other => (other, Err(Misuse::DeviceOwned.into())),
        };
        self.held = held;
        result
    }

    /// Copies a framework's elements to the beginning of what the buffer shows.
    ///
    /// # Safety
    /// As `Foreign::copy_to`.
    pub(crate) unsafe fn copy_from_tensor(&mut self, tensor: &Foreign) -> Result<(), Fault> {
        self.unmapped()?;
        // SAFETY: the caller's promise.
        Ok(unsafe { tensor.copy_to(self.cpu_mut()?) }.map(drop)?)
    }
}

/// Lends `buf`: what the buffer's entry holds then, and the tensor.
fn lend<B: Lendable>(
    buf: B,
    spec: &TensorSpec,
    legacy: bool,
    lent_as: fn(Lent<B>) -> Held,
    kept_as: fn(B) -> Held,
) -> (Held, Result<*mut c_void, Fault>) {
    let mut lent = match TENSORS.lend(buf, spec) {
        Ok(lent) => lent,
        Err(refused) => return (kept_as(refused.returned), Err(refused.error.into())),
    };
    let tensor =
        if legacy { lent.legacy_tensor().map(|tensor| tensor.as_ptr().cast()) } else { lent.tensor().map(|tensor| tensor.as_ptr().cast()) };
    match tensor {
        Ok(tensor) => (lent_as(lent), Ok(tensor)),
        // No tensor is out, so that the buffer comes back.
        Err(error) => (back(lent, lent_as, kept_as).0, Err(error.into())),
    }
}

/// Takes `lent` back, or keeps it lent.
fn back<B: Lendable>(lent: Lent<B>, lent_as: fn(Lent<B>) -> Held, kept_as: fn(B) -> Held) -> (Held, Result<(), Fault>) {
    match lent.take_back() {
        Ok(buf) => (kept_as(buf), Ok(())),
        Err(refused) => (lent_as(refused.returned), Err(refused.error.into())),
    }
}

#![allow(unsafe_code, reason = "a framework's elements are copied, by the caller's word")]
//! Buffers that frameworks have as tensors.

use super::buf::{Buf, Owner};
use crate::{
    fault::{Fault, Misuse},
    limits,
};
use contigo::dlpack::{Lendable, Lent, TensorSpec, TensorTable};
use core::{ffi::c_void, mem};

/// The tensors that frameworks have.
static TENSORS: TensorTable<{ limits::TENSORS }> = TensorTable::new();

impl Buf {
    /// Lends it as a tensor, the CPU's or a device's, and gives the tensor out.
    pub(crate) fn lend(&mut self, spec: &TensorSpec, legacy: bool) -> Result<*mut c_void, Fault> {
        self.unmapped()?;
        let (owner, tensor) = match mem::replace(&mut self.owner, Owner::InUse) {
            Owner::Cpu(buf) => lend(buf, spec, legacy, Owner::LentCpu, Owner::Cpu),
            Owner::Dev(buf) => lend(buf, spec, legacy, Owner::LentDev, Owner::Dev),
            other => {
                let refusal = other.not_the_cpus();
                (other, Err(refusal))
            }
        };
        self.owner = owner;
        tensor
    }

    /// Takes a lent buffer back.
    pub(crate) fn unlend(&mut self) -> Result<(), Fault> {
        let (owner, result) = match mem::replace(&mut self.owner, Owner::InUse) {
            Owner::LentCpu(lent) => back(lent, Owner::LentCpu, Owner::Cpu),
            Owner::LentDev(lent) => back(lent, Owner::LentDev, Owner::Dev),
            Owner::Cpu(buf) => (Owner::Cpu(buf), Err(Misuse::CpuOwned.into())),
            other => (other, Err(Misuse::DeviceOwned.into())),
        };
        self.owner = owner;
        result
    }
}

/// Lends `buf`: what the buffer's entry holds then, and the tensor.
fn lend<B: Lendable>(
    buf: B,
    spec: &TensorSpec,
    legacy: bool,
    lent_as: fn(Lent<B>) -> Owner,
    kept_as: fn(B) -> Owner,
) -> (Owner, Result<*mut c_void, Fault>) {
    let mut lent = match TENSORS.lend(buf, spec) {
        Ok(lent) => lent,
        Err(refused) => {
            let (error, buf) = refused.into_parts();
            return (kept_as(buf), Err(error.into()));
        }
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
fn back<B: Lendable>(lent: Lent<B>, lent_as: fn(Lent<B>) -> Owner, kept_as: fn(B) -> Owner) -> (Owner, Result<(), Fault>) {
    match lent.take_back() {
        Ok(buf) => (kept_as(buf), Ok(())),
        Err(refused) => {
            let (error, lent) = refused.into_parts();
            (lent_as(lent), Err(error.into()))
        }
    }
}

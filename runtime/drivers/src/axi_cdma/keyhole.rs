#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver whose copies have one side at a fixed address.

use super::config::{AxiCdmaConfig, Keyhole};
use super::driver::AxiCdma;
use contigo_core::forward;
use contigo_core::hw::Device;
use contigo_core::job::Driver;
use contigo_core::mem::CpuBuf;
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Refused, Result};

/// The driver of one core with one side at a fixed address. Its jobs have one operand, whose length
/// is whole bus words.
#[derive(Debug)]
pub struct AxiCdmaKeyhole<D: Device> {
    cdma: AxiCdma<D>,
}

impl<D: Device> AxiCdmaKeyhole<D> {
    /// The driver of `device`. With `descriptors` it keeps several jobs in flight, as
    /// [`AxiCdma::sg`]; without, one in registers, as [`AxiCdma::simple`].
    ///
    /// # Errors
    /// As for those two, and the buffer comes back.
    /// [`Error::Misaligned`](contigo_core::Error::Misaligned) and
    /// [`Error::TooHigh`](contigo_core::Error::TooHigh) for the address,
    /// [`Error::Argument`](contigo_core::Error::Argument) for bursts of more than 16 beats.
    ///
    /// # Safety
    /// As [`AxiCdma::simple`]. There is no memory at `keyhole`'s address or in its bus word: what
    /// the core reads or writes there belongs to no Rust value.
    pub unsafe fn open(
        device: D,
        config: AxiCdmaConfig,
        keyhole: Keyhole,
        descriptors: Option<CpuBuf>,
    ) -> Result<Self, Refused<Option<CpuBuf>>> {
        let opened = match descriptors {
            Some(descriptors) => {
                AxiCdma::with_descriptors(device, config, Some(keyhole), descriptors)
                    .map_err(|refused| Refused::new(refused.error, Some(refused.into_returned())))?
            }
            None => AxiCdma::in_registers(device, config, Some(keyhole))
                .map_err(|error| Refused::new(error, None))?,
        };
        Ok(Self { cdma: opened })
    }
}

// SAFETY: as `AxiCdma`'s, whose methods these are.
unsafe impl<D: Device> Driver for AxiCdmaKeyhole<D> {
    forward!(
        |this| this.cdma => name, port, simulated, addr_bits, operands, depth, in_order, check,
        submit, submit_more, doorbell, poll, stop, stop_program, arm_irq, underruns
    );
}

forward_as_fd!({D: Device} AxiCdmaKeyhole<D>, cdma: D);

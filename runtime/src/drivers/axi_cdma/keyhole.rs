#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! One side of a copy at an address that does not move.

use super::{
    config::AxiCdmaConfig,
    driver::{AxiCdma, Mode},
    regs, setup, stop,
};
use crate::{
    hw::Device,
    job::Driver,
    mem::CpuBuf,
    types::{Error, Refused, Result, forward::forward, platform::forward_as_fd},
};

/// The side that does not move, and its bus address: a FIFO's, in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Keyhole {
    /// The core reads there: jobs fill memory from it.
    Reads(u64),
    /// The core writes there: jobs send memory to it.
    Writes(u64),
}

impl Keyhole {
    /// The bit of CDMACR.
    pub(super) const fn control(self) -> u32 {
        match self {
            Self::Reads(_) => regs::KEYHOLE_READ,
            Self::Writes(_) => regs::KEYHOLE_WRITE,
        }
    }

    /// Does a core of this kind have one there?
    pub(super) fn check(self, config: &AxiCdmaConfig) -> Result<()> {
        let (Self::Reads(addr) | Self::Writes(addr)) = self;
        let (value, max) = (u64::from(config.burst_beats), u64::from(regs::KEYHOLE_BEATS_MAX));
        if value > max {
            return Err(Error::Argument { name: "burst_beats of a core with a keyhole", value, min: 2, max, multiple_of: 1 });
        }
        let align_bytes = config.word_bytes();
        if !addr.is_multiple_of(align_bytes as u64) {
            return Err(Error::Misaligned { addr, align_bytes });
        }
        if config.address_bits < 64 && addr >> config.address_bits != 0 {
            return Err(Error::TooHigh { last: addr, addr_bits: config.address_bits });
        }
        Ok(())
    }
}

/// The driver of one core, one side of which stays at one address. Its jobs have one operand, whose
/// length is whole bus words.
#[derive(Debug)]
pub struct AxiCdmaKeyhole<D: Device> {
    cdma: AxiCdma<D>,
}

impl<D: Device> AxiCdmaKeyhole<D> {
    /// The driver of `device`. With `descriptors` it keeps several jobs in flight, as
    /// [`AxiCdma::sg`]; without, one in registers, as [`AxiCdma::simple`].
    ///
    /// # Errors
    /// As those two, and the buffer comes back. [`Error::Misaligned`] and [`Error::TooHigh`] for
    /// the address, [`Error::Argument`] for bursts of more than 16 beats.
    ///
    /// # Safety
    /// As [`AxiCdma::simple`]. At `keyhole`'s address, and in the bus word there, is no memory:
    /// what the core reads or writes there belongs to no Rust value.
    pub unsafe fn open(
        device: D,
        config: AxiCdmaConfig,
        keyhole: Keyhole,
        descriptors: Option<CpuBuf>,
    ) -> Result<Self, Refused<Option<CpuBuf>>> {
        let opened = match descriptors {
            Some(descriptors) => AxiCdma::with_descriptors(device, config, Some(keyhole), descriptors)
                .map_err(|refused| Refused::new(refused.error, Some(refused.into_returned())))?,
            None => {
                setup::check(&device, &config, Some(keyhole))
                    .and_then(|()| stop::reset(&device, config.stop_us))
                    .map_err(|error| Refused::new(error, None))?;
                AxiCdma::of(device, config, Some(keyhole), Mode::Simple { at_work: None, ended: false })
            }
        };
        Ok(Self { cdma: opened })
    }
}

// SAFETY: as `AxiCdma`'s, whose methods these are.
unsafe impl<D: Device> Driver for AxiCdmaKeyhole<D> {
    forward!(|this| this.cdma => name, port, simulated, addr_bits, operands, depth, in_order, check, submit, poll, stop, stop_program, arm_irq, ran_dry);
}

forward_as_fd!({D: Device} AxiCdmaKeyhole<D>, cdma: D);

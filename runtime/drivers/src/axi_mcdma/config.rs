#![allow(unsafe_code, reason = "a reset is a register")]
//! A core's build parameters, its channels, and the check that it is there.

use super::regs;
use crate::checks::{has_window, stops, within};
use contigo_core::hw::Device;
use contigo_core::job::OperandSpec;
use contigo_core::types::{Align, Error, Result};

/// The time between polls.
pub(super) const STEP_US: u32 = 1;

/// A channel, from 0 to 15 in each direction. Its packets' TDEST is its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Way {
    /// Memory to stream: it sends.
    Mm2s(u8),
    /// Stream to memory: it receives.
    S2mm(u8),
}

impl Way {
    /// The channel that the setting `channel` names: 0 to 15 send, 16 to 31 receive.
    #[must_use]
    pub(crate) const fn of_setting(channel: u8) -> Self {
        if channel < 16 { Self::Mm2s(channel) } else { Self::S2mm(channel - 16) }
    }

    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Mm2s(number) | Self::S2mm(number) => number,
        }
    }

    /// 0 for MM2S, 1 for S2MM.
    pub(super) const fn direction(self) -> usize {
        match self {
            Self::Mm2s(_) => 0,
            Self::S2mm(_) => 1,
        }
    }

    /// Where a descriptor has its status.
    pub(super) const fn status_at(self) -> usize {
        let [send, receive] = regs::STATUS_AT;
        if let Self::Mm2s(_) = self { send } else { receive }
    }

    /// The channel's index among all 32; out of range if there is no such channel.
    pub(super) const fn index(self) -> usize {
        if self.number() as usize >= regs::CHANNELS_MAX {
            return usize::MAX;
        }
        self.direction() * regs::CHANNELS_MAX + self.number() as usize
    }
}

/// The core's parameters in Vivado, which no register has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct McdmaConfig {
    /// `c_addr_width`: 32 to 64.
    pub address_bits: u8,
    /// `c_sg_length_width`: 8 to 26. A buffer has at most so many bits of bytes.
    pub length_bits: u8,
    /// `c_m_axi_mm2s_data_width`: 32 to 1,024.
    pub mm2s_data_bits: u16,
    /// `c_include_mm2s_dre`: send from any address; otherwise multiples of the data width.
    pub mm2s_dre: bool,
    /// `c_m_axi_s2mm_data_width`: 32 to 1,024.
    pub s2mm_data_bits: u16,
    /// `c_include_s2mm_dre`: receive into any address and length; otherwise multiples of the data
    /// width.
    pub s2mm_dre: bool,
    /// The time limit for a channel to finish its descriptors, and for the core's reset.
    pub stop_us: u32,
    /// Report TUSER and TID of received packets. This costs a second read of the descriptor, which
    /// is a sync on a port that does not snoop.
    pub sideband: bool,
}

impl Default for McdmaConfig {
    /// As Vivado builds the core by default, and a millisecond to stop: a hundred times what 4 KiB
    /// take.
    fn default() -> Self {
        Self {
            address_bits: 32,
            length_bits: 14,
            mm2s_data_bits: 32,
            mm2s_dre: false,
            s2mm_data_bits: 32,
            s2mm_dre: false,
            stop_us: 1_000,
            sideband: false,
        }
    }
}

impl McdmaConfig {
    /// The operand of channel `way`: its direction, alignment and longest length.
    ///
    /// # Errors
    /// [`Error::Argument`]: a parameter that no core has; [`Error::BadAlign`] for a data width.
    pub(super) fn check(&self, way: Way) -> Result<OperandSpec> {
        within("channel, in its direction,", way.number(), 0_u8, regs::CHANNELS_MAX as u64 - 1)?;
        within("address_bits", self.address_bits, 32_u8, 64_u8)?;
        within("length_bits", self.length_bits, 8_u8, regs::LENGTH_BITS_MAX)?;
        within("mm2s_data_bits", self.mm2s_data_bits, 32_u8, 1024_u16)?;
        within("s2mm_data_bits", self.s2mm_data_bits, 32_u8, 1024_u16)?;
        within("stop_us", self.stop_us, 1_u8, 100_000_u32)?;
        let most = (1 << self.length_bits) - 1;
        let (operand, align) = match way {
            Way::Mm2s(_) => (
                OperandSpec {
                    word_bytes: (self.mm2s_data_bits as usize / 8).next_power_of_two(),
                    ..OperandSpec::to_device()
                },
                self.align_bytes(way),
            ),
            Way::S2mm(_) => (OperandSpec::from_device(), self.align_bytes(way)),
        };
        let max_bytes = if let Way::S2mm(_) = way { most / align * align } else { most };
        Ok(OperandSpec { max_bytes, ..operand.aligned(Align::new(align)?) })
    }

    /// Checks a length. The operand's specification has the longest.
    pub(super) fn check_length(&self, way: Way, len_bytes: usize) -> Result<()> {
        let Way::S2mm(_) = way else { return Ok(()) };
        let (multiple_of, max) = (self.align_bytes(way) as u64, (1 << self.length_bits) - 1);
        match len_bytes as u64 {
            value if value.is_multiple_of(multiple_of) => Ok(()),
            value => Err(Error::Argument {
                name: "bytes of a buffer to receive into, without s2mm_dre,",
                value,
                min: multiple_of,
                max,
                multiple_of,
            }),
        }
    }

    const fn align_bytes(&self, way: Way) -> usize {
        match way {
            Way::Mm2s(_) if self.mm2s_dre => 1,
            Way::Mm2s(_) => self.mm2s_data_bits as usize / 8,
            Way::S2mm(_) if self.s2mm_dre => 1,
            Way::S2mm(_) => self.s2mm_data_bits as usize / 8,
        }
    }
}

/// Resets the core, both directions, by the register of direction `common`.
///
/// # Errors
/// [`Error::WillNotStop`]: the reset does not end; or the error of the interrupt's file.
pub(super) fn reset(device: &impl Device, common: &regs::Common, stop_us: u32) -> Result<()> {
    // SAFETY: a core in reset starts nothing.
    unsafe { common.control.write(device, regs::RESET) };
    stops(device, regs::DEVICE, STEP_US, stop_us, |device| {
        let control = common.control.read(device);
        let over = control & regs::RESET == 0
            && common.status.read(device) & (regs::HALTED | regs::COMMON_RESERVED) == regs::HALTED;
        (over, control)
    })
}

/// Finds the core and resets it, through the direction of `way` or another that is built in.
pub(super) fn begin(device: &impl Device, way: Option<Way>, config: McdmaConfig) -> Result<()> {
    has_window(device, regs::DEVICE, regs::WINDOW_BYTES)?;
    config.check(way.unwrap_or(Way::Mm2s(0)))?;
    let [send, receive] = &regs::COMMON;
    if [send, receive].iter().all(|common| common.status.read(device) == u32::MAX) {
        return Err(regs::gone());
    }
    match way {
        Some(Way::Mm2s(_)) => reset(device, send, config.stop_us),
        Some(Way::S2mm(_)) => reset(device, receive, config.stop_us),
        // A direction that was not built has no registers.
        None => {
            reset(device, send, config.stop_us).or_else(|_| reset(device, receive, config.stop_us))
        }
    }
}

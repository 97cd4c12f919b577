//! A core's parameters and its frames, which no register has; and the check that it is there.

use super::regs;
use crate::checks::{self, has_window};
use contigo_core::hw::Mmio;
use contigo_core::job::OperandSpec;
use contigo_core::types::{Align, Error, Result};

/// One of the two channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Side {
    /// Memory to stream: a display.
    Mm2s,
    /// Stream to memory: a camera.
    S2mm,
}

impl Side {
    pub(super) const fn index(self) -> usize {
        match self {
            Self::Mm2s => 0,
            Self::S2mm => 1,
        }
    }

    pub(super) const fn registers(self) -> regs::Channel {
        match self {
            Self::Mm2s => regs::MM2S,
            Self::S2mm => regs::S2MM,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mm2s => "axi_vdma mm2s",
            Self::S2mm => "axi_vdma s2mm",
        }
    }
}

/// A frame, and the parameters of a core as its block design has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AxiVdmaConfig {
    /// The bytes of a line: 1 to 65,535.
    pub hsize_bytes: u32,
    /// The lines of a frame: 1 to 8,191.
    pub vsize_lines: u32,
    /// The bytes from a line's start to the next one's, at least a line; 0: a line.
    pub stride_bytes: u32,
    /// `C_NUM_FSTORES`: 1 to 32; to 16 with addresses of more than 32 bits. Never fewer than the
    /// core has. 0 if unknown: the driver writes every address that any core has.
    pub frame_stores: usize,
    /// `C_ADDR_WIDTH`: 32 to 64.
    pub address_bits: u32,
    /// `C_M_AXI_MM2S_DATA_WIDTH` or `C_M_AXI_S2MM_DATA_WIDTH`: 32 to 1,024, a power of two.
    pub data_bits: u32,
    /// `C_INCLUDE_MM2S_DRE` or `C_INCLUDE_S2MM_DRE`: frames may begin at any byte.
    pub dre: bool,
    /// The time limit of the reset that stops it.
    pub stop_us: u32,
}

impl Default for AxiVdmaConfig {
    /// The core as Vivado builds it. There is no default frame: its 0 lines are refused.
    fn default() -> Self {
        Self {
            hsize_bytes: 0,
            vsize_lines: 0,
            stride_bytes: 0,
            frame_stores: 0,
            address_bits: 32,
            data_bits: 64,
            dre: false,
            stop_us: 10_000,
        }
    }
}

impl AxiVdmaConfig {
    pub(super) const fn stride(&self) -> u32 {
        if self.stride_bytes == 0 { self.hsize_bytes } else { self.stride_bytes }
    }

    /// The bytes from a frame's first to its last.
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        let lines = self.vsize_lines.saturating_sub(1) as usize;
        lines.saturating_mul(self.stride() as usize).saturating_add(self.hsize_bytes as usize)
    }

    /// Checks that a core can have these parameters and this frame.
    fn check(&self) -> Result<()> {
        let within = |name, value: u32, min: u32, max: u32, multiple_of: u32| {
            if (min..=max).contains(&value) && value.is_multiple_of(multiple_of) {
                return Ok(());
            }
            Err(Error::Argument {
                name,
                value: value.into(),
                min: min.into(),
                max: max.into(),
                multiple_of: multiple_of.into(),
            })
        };
        within("address_bits", self.address_bits, 32, 64, 1)?;
        within(
            "data_bits, a power of two,",
            if self.data_bits.is_power_of_two() { self.data_bits } else { 0 },
            32,
            1024,
            32,
        )?;
        let word = if self.dre { 1 } else { self.data_bits / 8 };
        within("hsize_bytes", self.hsize_bytes, 1, regs::HSIZE_MAX, word)?;
        within("vsize_lines", self.vsize_lines, 1, regs::VSIZE_MAX, 1)?;
        within("stride_bytes", self.stride(), self.hsize_bytes, regs::HSIZE_MAX, word)?;
        within("stop_us", self.stop_us, 1, 400_000, 1)?;
        let (stores, most) = (self.frame_stores as u64, self.stores_max() as u64);
        checks::within("frame_stores", stores, 0_u8, most)
    }

    /// Returns whether an address has two registers.
    pub(super) const fn is_wide(&self) -> bool {
        self.address_bits > 32
    }

    const fn stores_max(&self) -> usize {
        if self.is_wide() { regs::STORES_WIDE_MAX } else { regs::STORES_MAX }
    }

    /// The number of start addresses to write.
    pub(super) const fn stores(&self) -> usize {
        if self.frame_stores == 0 { self.stores_max() } else { self.frame_stores }
    }

    /// The number of start addresses in one bank.
    pub(super) const fn bank(&self) -> usize {
        if self.is_wide() { regs::BANK / 2 } else { regs::BANK }
    }

    /// A frame, as an operand of `side`.
    pub(super) fn operand(&self, side: Side) -> OperandSpec {
        let spec = match side {
            Side::Mm2s => {
                OperandSpec { word_bytes: self.data_bits as usize / 8, ..OperandSpec::to_device() }
            }
            Side::S2mm => OperandSpec::from_device(),
        };
        let spec = OperandSpec { min_bytes: self.frame_bytes(), ..spec };
        // `check` has found a power of two.
        if self.dre {
            spec
        } else {
            spec.aligned(Align::new(self.data_bits as usize / 8).unwrap_or(Align::LINE))
        }
    }
}

/// Checks the window and the parameters of an AXI VDMA.
pub(super) fn check(device: &impl Mmio, config: &AxiVdmaConfig) -> Result<()> {
    config.check()?;
    has_window(device, "axi_vdma", regs::WINDOW_BYTES)?;
    let found = regs::VERSION.read(device);
    if found >> 28 != regs::MAJOR {
        let expected = regs::MAJOR << 28 | found & 0x0FFF_FFFF;
        return Err(Error::WrongDevice {
            device: "axi_vdma",
            register: "VDMA_VERSION",
            expected,
            found,
        });
    }
    Ok(())
}

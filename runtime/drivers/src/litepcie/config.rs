//! A design, and the part of its DMA that a driver uses.

use super::regs;
use contigo_core::types::{Error, Result};

/// A part of a DMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Side {
    /// Card from host: it sends operand 0 to the card's stream.
    Reader,
    /// Card to host: it fills operand 0 from the card's stream.
    Writer,
    /// Both, with the card's own loopback between them: it copies operand 0 to operand 1.
    Loopback,
}

/// A design's register addresses in BAR 0, and its parameters. `csr.csv` and `csr.h` of the design
/// have the numbers; those of `CSR_BASE` count from 0 in the BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LitepcieConfig {
    /// `pcie_dma0_reader_enable`.
    pub reader_at: u32,
    /// `pcie_dma0_writer_enable`.
    pub writer_at: u32,
    /// `pcie_dma0_loopback_enable`.
    pub loopback_at: u32,
    /// `pcie_msi_enable`.
    pub msi_at: u32,
    /// `PCIE_DMA0_READER_INTERRUPT`.
    pub reader_irq: u8,
    /// `PCIE_DMA0_WRITER_INTERRUPT`.
    pub writer_irq: u8,
    /// `DMA_ADDR_WIDTH`: 32 or 64.
    pub address_bits: u8,
    /// The DMA's data width, by default `phy_data_width`: 32 to 512. Lengths are multiples of it.
    pub data_bits: u16,
    /// The most jobs in flight: at most `table_depth`, 256 by default.
    pub depth: u16,
    /// The longest time in which the host answers a read request, which no register shows. If the
    /// card is not `ordered`, a write that it counted is in memory after this time too.
    pub settle_us: u32,
    /// The card's answers follow the writes that it counted before. This holds if the PHY has one
    /// channel for both: `S7PCIEPHY`, of Artix-7, Kintex-7 and Virtex-7. `USPCIEPHY` and
    /// `USPPCIEPHY` (`UltraScale`, `UltraScale+`) have a channel for each.
    pub ordered: bool,
    /// How long a stop waits for a request's end.
    pub stop_us: u32,
}

impl Default for LitepcieConfig {
    /// The addresses of LiteX-M2SDR and of LiteX's SoC for the Acorn, with 32-bit addresses. Other
    /// designs have others. Not `ordered`, which is safe with any card: set it if the card is.
    fn default() -> Self {
        Self {
            reader_at: 0x6020,
            writer_at: 0x6000,
            loopback_at: 0x6040,
            msi_at: 0x5800,
            reader_irq: 0,
            writer_irq: 1,
            address_bits: 32,
            data_bits: 64,
            depth: 64,
            settle_us: 100,
            ordered: false,
            stop_us: 1_000,
        }
    }
}

impl LitepcieConfig {
    /// The size of the window that holds all registers.
    pub(super) fn window_bytes(&self) -> usize {
        let lanes = self.reader_at.max(self.writer_at) as usize + regs::LANE_BYTES;
        lanes.max(self.loopback_at.max(self.msi_at) as usize + 4)
    }

    /// # Errors
    /// [`Error::Argument`]: a parameter that no design has.
    pub(super) fn check(&self) -> Result<()> {
        let within = |name, value: u64, min, max, multiple_of: u64| {
            let right = (min..=max).contains(&value) && value.is_multiple_of(multiple_of);
            if right { Ok(()) } else { Err(Error::Argument { name, value, min, max, multiple_of }) }
        };
        const BAR_MAX: u64 = 1 << 28;
        within("reader_at", self.reader_at.into(), 0, BAR_MAX, 4)?;
        within("writer_at", self.writer_at.into(), 0, BAR_MAX, 4)?;
        within("loopback_at", self.loopback_at.into(), 0, BAR_MAX, 4)?;
        within("msi_at", self.msi_at.into(), 0, BAR_MAX, 4)?;
        within("reader_irq", self.reader_irq.into(), 0, 31, 1)?;
        within("writer_irq", self.writer_irq.into(), 0, 31, 1)?;
        within("address_bits", self.address_bits.into(), 32, 64, 32)?;
        within("data_bits", self.data_bits.into(), 32, 512, 32)?;
        within("depth", self.depth.into(), 1, 256, 1)?;
        within("settle_us", self.settle_us.into(), 1, 100_000, 1)?;
        within("stop_us", self.stop_us.into(), 1, 100_000, 1)
    }

    /// Lengths are multiples of this many bytes.
    pub(super) const fn word_bytes(&self) -> usize {
        self.data_bits as usize / 8
    }
}

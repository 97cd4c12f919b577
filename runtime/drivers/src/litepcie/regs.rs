//! The registers of LitePCIe's DMA, by `litepcie/frontend/dma.py`: classes
//! `LitePCIeDMAScatterGather`, `LitePCIeDMAReader`, `LitePCIeDMAWriter`, `LitePCIeDMALoopback`. A
//! register of 64 bits has its upper word first, as `litepcie/gen.py` orders them.

use contigo_core::hw::mmio::{ReadOnly, ReadWrite, Register};

/// The registers of a reader or a writer, from its base: a direction of one DMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    /// `enable`, 00h: bit 0 runs the lane; the core sets bit 1 when it is idle.
    pub(crate) enable: Register<ReadWrite>,
    /// `table_value`, 04h, upper word: length and flags.
    pub(crate) value_high: Register<ReadWrite>,
    /// `table_value`, 08h, lower word: the lower half of the address.
    pub(crate) value_low: Register<ReadWrite>,
    /// `table_we`, 0Ch: the upper half of the address; writing it puts a descriptor in the table.
    pub(crate) we: Register<ReadWrite>,
    /// `table_loop_prog_n`, 10h: with 0 each descriptor is executed once.
    pub(crate) loop_prog_n: Register<ReadWrite>,
    /// `table_loop_status`, 14h: how many descriptors were executed since the table was emptied,
    /// while `loop_prog_n` is 0.
    pub(crate) loop_status: Register<ReadOnly>,
    /// `table_reset`, 1Ch, called flush in LitePCIe's software: a write empties the table.
    pub(crate) reset: Register<ReadWrite>,
}

/// The bytes of a lane's registers.
pub(crate) const LANE_BYTES: usize = 0x20;

impl Lane {
    /// The lane whose registers begin at `base`, a multiple of 4.
    ///
    /// # Panics
    /// In a constant, if `base` is not a multiple of 4.
    #[must_use]
    pub(crate) const fn at(base: usize) -> Self {
        Self {
            enable: Register::at(base),
            value_high: Register::at(base + 0x04),
            value_low: Register::at(base + 0x08),
            we: Register::at(base + 0x0C),
            loop_prog_n: Register::at(base + 0x10),
            loop_status: Register::at(base + 0x14),
            reset: Register::at(base + 0x1C),
        }
    }
}

/// `enable`, bit 0.
pub(crate) const RUN: u32 = 1 << 0;
/// `enable`, bit 1: no request is under way.
pub(crate) const IDLE: u32 = 1 << 1;
/// `enable`, bits 31:2, which do not exist: they reveal an absent card.
pub(crate) const ENABLE_RESERVED: u32 = !0b11;
/// `table_value`, bits 55:32 (23:0 of the upper word): the length in bytes.
pub(crate) const LENGTH: u32 = (1 << 24) - 1;
/// `table_value`, `last_disable`: the end of a packet does not end a writer's descriptor.
pub(crate) const LAST_DISABLE: u32 = 1 << 25;

/// The longest request of either direction (`litepcie/tlp/common.py`). One that begins at a
/// multiple of it crosses no page. `C5PCIEPHY` does not ensure it: [`Litepcie::open`]'s caller
/// does.
///
/// [`Litepcie::open`]: super::Litepcie::open
pub(crate) const REQUEST_BYTES: usize = 512;

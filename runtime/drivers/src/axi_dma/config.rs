//! How a core is built and used, which no register shows.

use super::regs::Side;
use crate::checks::{is_width, within};
use contigo_core::job::OperandSpec;
use contigo_core::types::{Align, Error, Result};

/// "Enable Control / Status Stream" of a core with scatter-gather, as S2MM needs to know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusStream {
    /// Switched off.
    #[default]
    Off,
    /// Switched on, but nothing drives it. S2MM would end no packet before the stream has ended
    /// too, so it is refused.
    On,
    /// Switched on, and something drives it, as AXI Ethernet does.
    Driven,
    /// The stream gives the packets' lengths too ("Use RxLength In Status Stream"): S2MM counts 0
    /// bytes, and is refused.
    GivesLength,
}

/// How the core is built, which no register shows, and how it is used. The defaults are Vivado's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxiDmaConfig {
    /// "Width of Buffer Length Register", 8 to 26 bits: the most bytes of a transfer or a
    /// descriptor are two to the power of this, less one.
    pub length_bits: u32,
    /// "Address Width", 32 to 64.
    pub address_bits: u32,
    /// The memory map data width of MM2S, 32 to 1,024.
    pub mm2s_data_bits: u32,
    /// The memory map data width of S2MM.
    pub s2mm_data_bits: u32,
    /// "Allow Unaligned Transfers" of MM2S: with it, data may begin anywhere.
    pub mm2s_dre: bool,
    /// "Allow Unaligned Transfers" of S2MM.
    pub s2mm_dre: bool,
    /// "Enable Micro DMA": one burst a transfer, and 0 bytes counted. Such a core is refused.
    pub micro_dma: bool,
    /// "Enable Control / Status Stream".
    pub status_stream: StatusStream,
    /// The most jobs at once, with scatter-gather; `None`: as many as there are descriptors. With
    /// fewer, a job has several descriptors, and so more bytes.
    pub depth: Option<usize>,
    /// How long a stop waits for the transfers under way, in microseconds, and again for a reset.
    pub stop_us: u32,
    /// With scatter-gather: the number of packets that raise an interrupt, 1 to 255. With more than
    /// one, set the delay too.
    pub irq_packets: u8,
    /// With scatter-gather: after this time without an interrupt, fewer packets raise one too, in
    /// the core's units (125 clocks of the descriptors' port by default). 0: never. It may come
    /// after the last job's end was reported, and then stays asserted until the channel has jobs
    /// again and is polled: where two channels share a line, keep 0.
    pub irq_delay: u8,
}

impl Default for AxiDmaConfig {
    fn default() -> Self {
        Self {
            length_bits: 14,
            address_bits: 32,
            mm2s_data_bits: 32,
            s2mm_data_bits: 32,
            mm2s_dre: false,
            s2mm_dre: false,
            micro_dma: false,
            status_stream: StatusStream::Off,
            depth: None,
            stop_us: 1_000,
            irq_packets: 1,
            irq_delay: 0,
        }
    }
}

/// The most jobs of one channel.
pub(super) const DEPTH_MAX: usize = 256;
/// Pieces of a long operand begin at multiples of this from its beginning: the widest bus.
const PIECE_ALIGN_BYTES: usize = 128;

impl AxiDmaConfig {
    /// Checks that a core can be built so.
    pub(super) fn check(&self) -> Result<()> {
        within("length_bits", self.length_bits, 8_u8, 26_u8)?;
        within("address_bits", self.address_bits, 32_u8, 64_u8)?;
        within("stop_us", self.stop_us, 1_u8, 1_000_000_u32)?;
        let depth = self.depth.map_or(1, |depth| u32::try_from(depth).unwrap_or(u32::MAX));
        within("depth", depth, 1_u8, DEPTH_MAX as u64)?;
        within("irq_packets", self.irq_packets, 1_u8, 255_u8)?;
        is_width("mm2s_data_bits, a power of two,", self.mm2s_data_bits, 32)?;
        is_width("s2mm_data_bits, a power of two,", self.s2mm_data_bits, 32)
    }

    /// Checks that this driver drives `side` of a core built so, with scatter-gather or without.
    pub(super) fn check_built(&self, side: Side, sg: bool) -> Result<()> {
        const MICRO: Error = Error::Unsupported {
            what: "an AXI DMA with Micro DMA moves one burst at most, and counts 0 bytes received",
            fix: "switch off Enable Micro DMA in the block design (C_MICRO_DMA)",
        };
        const UNDRIVEN: Error = Error::Unsupported {
            what: "S2MM of an AXI DMA with a status stream ends no packet without it",
            fix: "switch off Enable Control / Status Stream in the block design \
                  (C_SG_INCLUDE_STSCNTRL_STRM); where something drives it, say status_driven=1",
        };
        const GIVES_LENGTH: Error = Error::Unsupported {
            what: "S2MM of an AXI DMA that takes lengths from its status stream counts 0 bytes \
                received",
            fix: "switch off Use RxLength In Status Stream in the block design \
                (C_SG_USE_STSAPP_LENGTH)",
        };
        match self.status_stream {
            _ if self.micro_dma => Err(MICRO),
            StatusStream::On if sg && side == Side::S2mm => Err(UNDRIVEN),
            StatusStream::GivesLength if sg && side == Side::S2mm => Err(GIVES_LENGTH),
            _ => Ok(()),
        }
    }

    /// The most bytes of one transfer, or of one descriptor.
    pub(super) const fn longest(&self) -> usize {
        (1 << self.length_bits) - 1
    }

    /// The length of all pieces of a longer operand except for the last.
    pub(super) const fn piece(&self) -> usize {
        self.longest() / PIECE_ALIGN_BYTES * PIECE_ALIGN_BYTES
    }

    /// How many descriptors an operand takes.
    pub(super) const fn pieces(&self, len_bytes: usize) -> usize {
        if len_bytes <= self.longest() { 1 } else { len_bytes.div_ceil(self.piece()) }
    }

    /// The operand of `side`, with this many descriptors for a job.
    pub(super) fn operand(&self, side: Side, descriptors: usize) -> OperandSpec {
        let (spec, data_bits, dre) = match side {
            Side::Mm2s => (
                OperandSpec {
                    word_bytes: self.mm2s_data_bits as usize / 8,
                    ..OperandSpec::to_device()
                },
                self.mm2s_data_bits,
                self.mm2s_dre,
            ),
            Side::S2mm => (OperandSpec::from_device(), self.s2mm_data_bits, self.s2mm_dre),
        };
        let max_bytes = self.longest().max(descriptors.saturating_mul(self.piece()));
        let align = if dre { None } else { Align::new(data_bits as usize / 8).ok() };
        OperandSpec { max_bytes, ..align.map_or(spec, |align| spec.aligned(align)) }
    }
}

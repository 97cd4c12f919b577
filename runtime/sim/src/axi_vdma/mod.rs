#![allow(unsafe_code, reason = "a model promises to touch only what it was told of")]
//! A model of an AXI VDMA, by `manual.rs`, and a stream behind it.
//!
//! **A packet of the stream is a frame,** and its last byte (TLAST) is the frame's last. Real video
//! marks the first pixel (TUSER) and the end of each line; here both follow from the packet. A
//! packet that is too short ends a frame early, in a line or between lines; one that is too long
//! ends it late. A channel that starts in the middle of a frame waits for the next.

mod lane;
mod manual;

use crate::stream::{SimStream, StreamConfig, StreamEnd};
use crate::{Model, SimBus, SimWindow};
use contigo_core::types::Result;
use contigo_drivers::axi_vdma::{AxiVdmaChannel, AxiVdmaConfig, AxiVdmaCore, Side};
use lane::Lane;

/// `VDMA_VERSION` of version 6.3.
const VERSION: u32 = 0x6300_0050;

/// The parameters of the simulated core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxiVdmaSpec {
    /// `C_NUM_FSTORES`.
    pub frame_stores: usize,
    /// `C_ADDR_WIDTH`.
    pub address_bits: u32,
    /// `C_M_AXI_MM2S_DATA_WIDTH` and `C_M_AXI_S2MM_DATA_WIDTH`.
    pub data_bits: u32,
    /// `C_INCLUDE_MM2S_DRE` and `C_INCLUDE_S2MM_DRE`.
    pub dre: bool,
    /// The stream of both channels.
    pub stream: StreamConfig,
}

impl Default for AxiVdmaSpec {
    /// The core as Vivado builds it, with a loopback.
    fn default() -> Self {
        Self {
            frame_stores: 3,
            address_bits: 32,
            data_bits: 64,
            dre: false,
            stream: StreamConfig::default(),
        }
    }
}

impl SimWindow<AxiVdmaModel> {
    /// As [`alone`](AxiVdmaChannel::alone), with its errors, but safe: the window's type proves
    /// that the model is behind it.
    pub fn channel(self, side: Side, config: AxiVdmaConfig) -> Result<AxiVdmaChannel<Self>> {
        // SAFETY: the model is this core, and `SimDevice::window` gives one window at a time. If
        // the model has more stores than `config`, it writes at address 0 at worst, where a board
        // has no memory.
        unsafe { AxiVdmaChannel::alone(self, side, config) }
    }

    /// As [`open`](AxiVdmaCore::open), with its errors, but safe: the window's type proves what is
    /// behind it.
    pub fn core(self) -> Result<AxiVdmaCore<Self>> {
        // SAFETY: as in `channel`.
        unsafe { AxiVdmaCore::open(self) }
    }
}

/// The core's state.
#[derive(Debug)]
pub struct AxiVdmaModel {
    spec: AxiVdmaSpec,
    lanes: [Lane; 2],
    /// The other end of its stream.
    pub stream: SimStream,
}

impl Default for AxiVdmaModel {
    fn default() -> Self {
        Self::new(AxiVdmaSpec::default())
    }
}

impl AxiVdmaModel {
    /// A core as after power-on.
    #[must_use]
    pub fn new(spec: AxiVdmaSpec) -> Self {
        Self {
            spec,
            lanes: [Lane::new(false), Lane::new(true)],
            stream: SimStream::new(spec.stream),
        }
    }
}

// SAFETY: a lane touches its frame's lines between VSIZE and Halted, and writes garbage there while
// it is stuck. Halted is set after the last write, and a reset ends with no frame.
unsafe impl Model for AxiVdmaModel {
    const WINDOW_BYTES: usize = manual::END;

    fn fits(&self, setting: &str, _: usize) -> Option<(u64, u64)> {
        let AxiVdmaSpec { frame_stores, address_bits, data_bits, dre, stream } = self.spec;
        match (setting, stream.end) {
            // The driver writes this many addresses, and the core uses all that it has.
            ("frame_stores", _) => Some((frame_stores as u64, 32)),
            // Longer addresses have other registers.
            ("address_bits", _) if address_bits > 32 => Some((33, 64)),
            ("address_bits", _) => Some((32, 32)),
            ("mm2s_data_bits" | "s2mm_data_bits", _) if !dre => Some((data_bits.into(), 1024)),
            ("mm2s_dre" | "s2mm_dre", _) => Some((0, dre.into())),
            // A source's frames are square: they have as many lines as a line has bytes.
            ("hsize_bytes" | "vsize_lines", StreamEnd::Source(source)) => {
                let side = source.packet_bytes.isqrt() as u64;
                Some((side, side))
            }
            ("channel", StreamEnd::Sink) => Some((0, 0)),
            _ => None,
        }
    }

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        for lane in &mut self.lanes {
            lane.advance(&mut self.stream, bus);
        }
    }

    fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
        if offset == manual::VERSION {
            return VERSION;
        }
        match self.place(offset) {
            Some((side, at, false)) => self.lanes.get(side).map_or(0, |lane| lane.read(at)),
            Some((side, at, true)) => self.lanes.get(side).map_or(0, |lane| lane.read_size(at)),
            None => 0,
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        let Some((side, at, sizes)) = self.place(offset) else { return };
        let Some(lane) = self.lanes.get_mut(side) else { return };
        if sizes {
            lane.write_size(at, value, &self.spec, bus);
        } else {
            lane.write(at, value, &self.spec, bus);
        }
        if lane.wants() {
            self.stream.trigger(bus.now_ns());
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        self.lanes.iter().filter_map(|lane| lane.irq_at_ns(&self.stream)).min()
    }

    fn reset(&mut self) {
        self.lanes = [Lane::new(false), Lane::new(true)];
        self.stream.cut(true);
    }
}

impl AxiVdmaModel {
    /// A register's channel, its offset there, and whether it is in the second block.
    fn place(&self, offset: usize) -> Option<(usize, usize, bool)> {
        let [_, s2mm] = manual::CHANNELS;
        let [mm2s_sizes, s2mm_sizes] = manual::SIZES;
        match offset {
            _ if offset >= s2mm_sizes => Some((1, offset - s2mm_sizes, true)),
            _ if offset >= mm2s_sizes => Some((0, offset - mm2s_sizes, true)),
            _ if offset >= s2mm => Some((1, offset - s2mm, false)),
            _ if offset <= manual::INDEX => Some((0, offset, false)),
            _ => None,
        }
    }
}

//! AXI DMA: each channel, and both as one, in both modes.

use super::See;
use contigo::drivers::axi_dma::{AxiDmaConfig, Side};
use contigo::sim::SimWindow;
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo::sim::stream::{SourceConfig, StreamConfig, StreamCounts};
use contigo::{CpuBuf, Driver, Error, Result};
use contigo_exerciser::Limits;
use contigo_testkit::suite::{Kind, Sight, Subject};

/// The packets of the source.
const PACKET_BYTES: usize = 1024;

pub(crate) struct AxiDmaJobs {
    name: &'static str,
    kind: Kind,
    sg: bool,
    /// Pieces of 128 bytes, so that a packet has several descriptors.
    short_lengths: bool,
    address_bits: u32,
}

impl AxiDmaJobs {
    fn config(&self) -> AxiDmaConfig {
        let length_bits = if self.short_lengths { 8 } else { 14 };
        let (address_bits, depth) = (self.address_bits, self.short_lengths.then_some(4));
        AxiDmaConfig { length_bits, address_bits, depth, stop_us: 100, ..AxiDmaConfig::default() }
    }
}

impl Subject for AxiDmaJobs {
    type Model = AxiDmaModel;

    fn name(&self) -> &'static str {
        self.name
    }
    fn kind(&self) -> Kind {
        self.kind
    }
    fn model(&self) -> AxiDmaModel {
        let source =
            SourceConfig { packet_bytes: PACKET_BYTES, gap_ns: 500, ..SourceConfig::default() };
        let stream = match self.kind {
            Kind::Copy => StreamConfig::default(),
            Kind::Send => StreamConfig::sink(),
            Kind::Receive => StreamConfig::source(source, 2048),
        };
        let AxiDmaConfig { length_bits, address_bits, .. } = self.config();
        let sg = self.sg;
        AxiDmaModel::new(CoreSpec { sg, length_bits, address_bits, stream, ..CoreSpec::default() })
    }
    fn stream(&self, model: &AxiDmaModel) -> Option<StreamCounts> {
        Some(model.stream.counts)
    }
    fn memory_bytes(&self) -> usize {
        match (self.sg, self.short_lengths) {
            (false, _) => 0,
            (true, false) if self.kind == Kind::Copy => 2 * 4096,
            (true, false) => 4096,
            (true, true) => 2 * 4 * 33 * 64,
        }
    }
    fn limits(&self) -> Limits {
        let len_max_bytes = if self.sg || !self.short_lengths { 4096 } else { 255 };
        Limits { offset_align_bytes: 4, len_align_bytes: 1, len_max_bytes }
    }
    fn packet_bytes(&self) -> usize {
        PACKET_BYTES
    }
    fn never(&self) -> &'static [Sight] {
        if self.kind() == Kind::Receive { &[] } else { &[Sight::Short] }
    }
    fn may_fail(&self, error: &Error) -> bool {
        // Both as one answer a sibling's error without an address.
        let (device, what) = match error {
            Error::Fault { device, what, .. } if self.kind == Kind::Copy => (device, what),
            Error::FaultAt { device, what, .. } => (device, what),
            _ => return false,
        };
        let fails = |side, kind| *device == side && [kind, Kind::Copy].contains(&self.kind);
        what.starts_with("DMASlvErr")
            && (fails("axi_dma mm2s", Kind::Send) || fails("axi_dma s2mm", Kind::Receive))
    }
    fn open<R>(
        &self,
        window: SimWindow<AxiDmaModel>,
        memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        let channel = |side, window: SimWindow<AxiDmaModel>, memory| {
            window.channel(side, self.config(), memory)
        };
        Ok(match self.kind {
            Kind::Copy => act(&mut window.driver(self.config(), memory)?),
            Kind::Send => act(&mut channel(Side::Mm2s, window, memory)?),
            Kind::Receive => act(&mut channel(Side::S2mm, window, memory)?),
        })
    }
}

const fn jobs(name: &'static str, kind: Kind, sg: bool) -> AxiDmaJobs {
    AxiDmaJobs { name, kind, sg, short_lengths: false, address_bits: 32 }
}

const COPY_DIRECT: AxiDmaJobs = jobs("axi_dma, copy, direct", Kind::Copy, false);
pub(crate) const COPY_SG: AxiDmaJobs = jobs("axi_dma, copy, sg", Kind::Copy, true);
pub(crate) const SEND_DIRECT: AxiDmaJobs = jobs("axi_dma, mm2s, direct", Kind::Send, false);
const SEND_SG: AxiDmaJobs = jobs("axi_dma, mm2s, sg", Kind::Send, true);
const RECEIVE_DIRECT: AxiDmaJobs = jobs("axi_dma, s2mm, direct", Kind::Receive, false);
const RECEIVE_SG: AxiDmaJobs = jobs("axi_dma, s2mm, sg", Kind::Receive, true);

pub(crate) fn each(see: &mut impl See) {
    for subject in [SEND_DIRECT, SEND_SG, RECEIVE_DIRECT, RECEIVE_SG, COPY_DIRECT, COPY_SG] {
        see.see(&subject);
    }
}

suite! {
    copy_direct: COPY_DIRECT;
    copy_sg: COPY_SG;
    send_direct: SEND_DIRECT;
    send_sg: SEND_SG;
    receive_direct: RECEIVE_DIRECT;
    receive_sg: RECEIVE_SG;
    /// A packet over up to 32 descriptors.
    send_sg_in_pieces: AxiDmaJobs {
        name: "axi_dma, mm2s, sg, pieces",
        short_lengths: true,
        ..SEND_SG
    };
}

/// TAILDESC and addresses in two halves.
#[test]
fn wide_addresses() {
    for (name, subject) in [
        ("axi_dma, s2mm, sg, 40 address bits", RECEIVE_SG),
        ("axi_dma, mm2s, sg, 40 address bits", SEND_SG),
        ("axi_dma, copy, sg, 40 address bits", COPY_SG),
    ] {
        super::run(&AxiDmaJobs { name, address_bits: 40, ..subject });
    }
}

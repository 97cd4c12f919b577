//! AXI VDMA: each channel, with narrow and wide addresses.

use super::See;
use contigo::drivers::axi_vdma::{AxiVdmaConfig, Side};
use contigo::sim::SimWindow;
use contigo::sim::axi_vdma::{AxiVdmaModel, AxiVdmaSpec};
use contigo::sim::stream::{SourceConfig, StreamConfig, StreamCounts};
use contigo::{CpuBuf, Driver, Error, Result};
use contigo_exerciser::Limits;
use contigo_testkit::suite::{Kind, Sight, Subject};

const HSIZE: u32 = 64;
const LINES: u32 = 24;
const FRAME_BYTES: usize = (HSIZE * LINES) as usize;

struct Frames {
    name: &'static str,
    kind: Kind,
    frame_stores: usize,
    address_bits: u32,
}

impl Frames {
    fn side(&self) -> Side {
        if self.kind == Kind::Send { Side::Mm2s } else { Side::S2mm }
    }
}

impl Subject for Frames {
    type Model = AxiVdmaModel;

    fn name(&self) -> &'static str {
        self.name
    }
    fn kind(&self) -> Kind {
        self.kind
    }
    fn model(&self) -> AxiVdmaModel {
        let source =
            SourceConfig { packet_bytes: FRAME_BYTES, gap_ns: 20_000, ..SourceConfig::default() };
        let stream = if self.kind == Kind::Send {
            StreamConfig::sink()
        } else {
            StreamConfig::source(source, 2048)
        };
        AxiVdmaModel::new(AxiVdmaSpec {
            frame_stores: self.frame_stores,
            address_bits: self.address_bits,
            stream,
            ..AxiVdmaSpec::default()
        })
    }
    fn stream(&self, model: &AxiVdmaModel) -> Option<StreamCounts> {
        Some(model.stream.counts)
    }
    fn limits(&self) -> Limits {
        Limits { offset_align_bytes: 8, len_align_bytes: FRAME_BYTES, len_max_bytes: FRAME_BYTES }
    }
    fn packet_bytes(&self) -> usize {
        FRAME_BYTES
    }
    fn never(&self) -> &'static [Sight] {
        &[Sight::Short]
    }
    fn may_fail(&self, error: &Error) -> bool {
        let Error::FaultAt { device, what, .. } = error else { return false };
        let side = if self.kind() == Kind::Send { "axi_vdma mm2s" } else { "axi_vdma s2mm" };
        *device == side
            && ["VDMAIntErr", "VDMASlvErr", "VDMADecErr"].iter().any(|name| what.starts_with(name))
    }
    fn open<R>(
        &self,
        window: SimWindow<AxiVdmaModel>,
        _: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        let config = AxiVdmaConfig {
            hsize_bytes: HSIZE,
            vsize_lines: LINES,
            frame_stores: self.frame_stores,
            address_bits: self.address_bits,
            stop_us: 100,
            ..AxiVdmaConfig::default()
        };
        Ok(act(&mut window.channel(self.side(), config)?))
    }
}

const SEND: Frames =
    Frames { name: "axi_vdma, mm2s", kind: Kind::Send, frame_stores: 3, address_bits: 32 };
const RECEIVE: Frames =
    Frames { name: "axi_vdma, s2mm", kind: Kind::Receive, frame_stores: 3, address_bits: 32 };

pub(crate) fn each(see: &mut impl See) {
    see.see(&SEND);
    see.see(&RECEIVE);
}

suite! {
    send: SEND;
    receive: RECEIVE;
    /// Two banks of start addresses.
    receive_with_32_frame_stores: Frames {
        name: "axi_vdma, s2mm, 32 stores",
        frame_stores: 32,
        ..RECEIVE
    };
    send_with_wide_addresses: Frames {
        name: "axi_vdma, mm2s, 64 bits",
        frame_stores: 16,
        address_bits: 64,
        ..SEND
    };
}

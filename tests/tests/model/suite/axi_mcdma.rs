//! AXI MCDMA: a channel of each direction, alone and as one of several, with DRE and without.

use super::See;
use contigo::drivers::axi_mcdma::{McdmaConfig, Way};
use contigo::sim::SimWindow;
use contigo::sim::axi_mcdma::{McdmaModel, McdmaSpec};
use contigo::sim::stream::{SourceConfig, StreamConfig, StreamCounts};
use contigo::{CpuBuf, Driver, Error, Result};
use contigo_exerciser::Limits;
use contigo_testkit::suite::{Kind, Sight, Subject};

/// A channel, and how its core is built.
struct Channel {
    name: &'static str,
    way: Way,
    shared: bool,
    dre: bool,
    address_bits: u8,
}

const DATA_BITS: u16 = 64;

impl Subject for Channel {
    type Model = McdmaModel;

    fn name(&self) -> &'static str {
        self.name
    }
    fn kind(&self) -> Kind {
        if let Way::Mm2s(_) = self.way { Kind::Send } else { Kind::Receive }
    }
    fn model(&self) -> McdmaModel {
        let source = SourceConfig {
            packet_bytes: self.packet_bytes(),
            short_every: Some(5),
            ..SourceConfig::default()
        };
        let stream = if self.kind() == Kind::Send {
            StreamConfig::sink()
        } else {
            StreamConfig::source(source, 512)
        };
        let config = McdmaConfig {
            address_bits: self.address_bits,
            mm2s_data_bits: DATA_BITS,
            s2mm_data_bits: DATA_BITS,
            mm2s_dre: self.dre,
            s2mm_dre: self.dre,
            ..McdmaConfig::default()
        };
        McdmaModel::new(McdmaSpec { config, streams: [stream; 2] })
    }
    fn stream(&self, model: &McdmaModel) -> Option<StreamCounts> {
        model.streams.get(1).map(|stream| stream.counts)
    }
    fn memory_bytes(&self) -> usize {
        4096
    }
    fn limits(&self) -> Limits {
        let align = if self.dre { 1 } else { usize::from(DATA_BITS) / 8 };
        Limits { offset_align_bytes: align, len_align_bytes: align, len_max_bytes: 4096 }
    }
    fn packet_bytes(&self) -> usize {
        if self.kind() == Kind::Receive { 1500 } else { 0 }
    }
    fn never(&self) -> &'static [Sight] {
        if self.kind() == Kind::Receive { &[] } else { &[Sight::Short] }
    }
    fn may_fail(&self, error: &Error) -> bool {
        matches!(error, Error::FaultAt { device: "axi_mcdma", what, .. }
            if what.starts_with("DMASlvErr"))
    }
    fn open<R>(
        &self,
        window: SimWindow<McdmaModel>,
        memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        let memory = memory.ok_or(contigo::Error::Busy)?;
        if !self.shared {
            return Ok(act(&mut window.channel(self.way, memory)?));
        }
        let core = window.core()?;
        let mut channel = core.channel(self.way, memory)?;
        Ok(act(&mut channel))
    }
}

/// One of several channels, without DRE; or alone, with it.
const fn channel(name: &'static str, way: Way, shared: bool) -> Channel {
    Channel { name, way, shared, dre: !shared, address_bits: 32 }
}

const SENDS: Channel = channel("axi_mcdma, sends", Way::Mm2s(1), true);
const SENDS_ALONE: Channel = channel("axi_mcdma, sends, alone, with DRE", Way::Mm2s(1), false);
const RECEIVES: Channel = channel("axi_mcdma, receives", Way::S2mm(1), true);
const RECEIVES_ALONE: Channel =
    channel("axi_mcdma, receives, alone, with DRE", Way::S2mm(1), false);

pub(crate) fn each(see: &mut impl See) {
    see.see(&SENDS);
    see.see(&RECEIVES);
    see.see(&SENDS_ALONE);
    see.see(&RECEIVES_ALONE);
}

suite! {
    sends: SENDS;
    sends_alone: SENDS_ALONE;
    receives: RECEIVES;
    receives_alone: RECEIVES_ALONE;
    /// A tail in two halves.
    sends_with_wide_addresses: Channel {
        name: "axi_mcdma, sends, 40 address bits",
        address_bits: 40,
        ..SENDS
    };
    receives_with_wide_addresses: Channel {
        name: "axi_mcdma, receives, 40 address bits",
        address_bits: 40,
        ..RECEIVES
    };
}

//! AXI MCDMA: a channel of each direction, alone and as one of several, with DRE and without.

use super::See;
use contigo::{
    CpuBuf, Driver, Error, Result,
    drivers::axi_mcdma::{McdmaConfig, Way},
    sim::{
        SimWindow,
        axi_mcdma::{McdmaModel, McdmaSpec},
        stream::{SimStream, SourceConfig, StreamConfig, StreamCounts},
    },
};
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

impl Channel {
    /// 64-bit ones without DRE.
    const fn data_bits(&self) -> u16 {
        64
    }
}

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
        let (dre, bits) = (self.dre, self.data_bits());
        let address_bits = self.address_bits;
        let config = McdmaConfig {
            address_bits,
            mm2s_data_bits: bits,
            s2mm_data_bits: bits,
            mm2s_dre: dre,
            s2mm_dre: dre,
            ..McdmaConfig::default()
        };
        McdmaModel::new(McdmaSpec { config, streams: [stream; 2] })
    }
    fn stream(&self, model: &McdmaModel) -> Option<StreamCounts> {
        model.streams.get(1).map(SimStream::counts)
    }
    fn memory_bytes(&self) -> usize {
        4096
    }
    fn limits(&self) -> Limits {
        let align = if self.dre { 1 } else { usize::from(self.data_bits()) / 8 };
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

const SENDS: Channel = Channel {
    name: "axi_mcdma, sends",
    way: Way::Mm2s(1),
    shared: true,
    dre: false,
    address_bits: 32,
};
const SENDS_ALONE: Channel = Channel {
    name: "axi_mcdma, sends, alone, with DRE",
    way: Way::Mm2s(1),
    shared: false,
    dre: true,
    address_bits: 32,
};
const RECEIVES: Channel = Channel {
    name: "axi_mcdma, receives",
    way: Way::S2mm(1),
    shared: true,
    dre: false,
    address_bits: 32,
};
const RECEIVES_ALONE: Channel = Channel {
    name: "axi_mcdma, receives, alone, with DRE",
    way: Way::S2mm(1),
    shared: false,
    dre: true,
    address_bits: 32,
};

pub(crate) fn each(see: &mut impl See) {
    see.see(&SENDS);
    see.see(&RECEIVES);
}

suite! {
    sends: SENDS;
    sends_alone: SENDS_ALONE;
    receives: RECEIVES;
    receives_alone: RECEIVES_ALONE;
}

/// A tail in two halves.
#[test]
fn wide_addresses() {
    super::run(&Channel { name: "axi_mcdma, sends, 40 address bits", address_bits: 40, ..SENDS });
    super::run(&Channel {
        name: "axi_mcdma, receives, 40 address bits",
        address_bits: 40,
        ..RECEIVES
    });
}

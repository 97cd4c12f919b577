//! LitePCIe's DMA: the reader, the writer, and both with the loopback between them.

use super::See;
use contigo::drivers::litepcie::{LitepcieConfig, Side};
use contigo::sim::SimWindow;
use contigo::sim::litepcie::{LitepcieModel, LitepcieSpec};
use contigo::sim::stream::{SourceConfig, StreamConfig, StreamCounts};
use contigo::{CpuBuf, Driver, Error, Result};
use contigo_exerciser::Limits;
use contigo_testkit::suite::{Kind, Sight, Subject};

/// A side, of a card that is ordered or not.
struct Part(&'static str, Side, bool);

impl Subject for Part {
    type Model = LitepcieModel;

    fn name(&self) -> &'static str {
        self.0
    }
    fn kind(&self) -> Kind {
        match self.1 {
            Side::Reader => Kind::Send,
            Side::Writer => Kind::Receive,
            Side::Loopback => Kind::Copy,
        }
    }
    fn model(&self) -> LitepcieModel {
        let source = SourceConfig { packet_bytes: 1024, ..SourceConfig::default() };
        let stream = if self.1 == Side::Writer {
            StreamConfig::source(source, 4096)
        } else {
            StreamConfig::sink()
        };
        LitepcieModel::new(LitepcieSpec {
            stream,
            config: LitepcieConfig { ordered: self.2, ..LitepcieConfig::default() },
        })
    }
    fn stream(&self, model: &LitepcieModel) -> Option<StreamCounts> {
        Some(model.stream.counts)
    }
    /// The card tells of no error.
    fn tells_failures(&self) -> bool {
        false
    }
    fn limits(&self) -> Limits {
        Limits { offset_align_bytes: 512, len_align_bytes: 8, len_max_bytes: 4096 }
    }
    fn packet_bytes(&self) -> usize {
        if self.1 == Side::Writer { 1024 } else { 0 }
    }
    fn never(&self) -> &'static [Sight] {
        &[Sight::Short]
    }
    fn may_fail(&self, _: &Error) -> bool {
        false
    }
    fn open<R>(
        &self,
        window: SimWindow<LitepcieModel>,
        _memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        Ok(act(&mut window.driver(self.1)?))
    }
}

const READER: Part = Part("litepcie, reader", Side::Reader, false);
const WRITER: Part = Part("litepcie, writer", Side::Writer, false);
const LOOPBACK: Part = Part("litepcie, loopback", Side::Loopback, false);
const ORDERED_WRITER: Part = Part("litepcie, writer, ordered", Side::Writer, true);
const ORDERED_LOOPBACK: Part = Part("litepcie, loopback, ordered", Side::Loopback, true);

pub(crate) fn each(see: &mut impl See) {
    see.see(&READER);
    see.see(&WRITER);
    see.see(&LOOPBACK);
    see.see(&ORDERED_WRITER);
    see.see(&ORDERED_LOOPBACK);
}

suite! {
    reader: READER;
    writer: WRITER;
    loopback: LOOPBACK;
    ordered_writer: ORDERED_WRITER;
    ordered_loopback: ORDERED_LOOPBACK;
}

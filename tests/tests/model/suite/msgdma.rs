//! mSGDMA: copies by the descriptor port and by the prefetcher, both kinds of descriptors, packets
//! out and in.

use super::See;
use contigo::drivers::msgdma::{MsgdmaConfig, MsgdmaMode, MsgdmaTransfer};
use contigo::sim::SimWindow;
use contigo::sim::msgdma::{MsgdmaBuild, MsgdmaModel};
use contigo::sim::stream::{SourceConfig, StreamConfig, StreamCounts};
use contigo::{CpuBuf, Driver, Error, Result};
use contigo_exerciser::Limits;
use contigo_testkit::suite::{Kind, Sight, Subject};

struct Built(&'static str, MsgdmaConfig);

const BASE: MsgdmaConfig = MsgdmaConfig {
    mode: MsgdmaMode::Copy,
    extended: false,
    depth: 128,
    max_bytes: 4096,
    data_bits: 32,
    transfer: MsgdmaTransfer::Aligned,
    address_bits: 32,
    csr_at: 0x80,
    desc_at: 0x20,
    resp_at: None,
    prefetcher_at: None,
    write_responses: true,
    settle_us: 20,
    stop_us: 1_000,
};
/// Its last write is in memory 5 us after its end.
const UNANSWERED: MsgdmaConfig = MsgdmaConfig { write_responses: false, ..BASE };
const COPY: Built = Built("msgdma, copies without responses", BASE);
const COPY_UNANSWERED: Built = Built("msgdma, copies whose writes have no answers", UNANSWERED);
const FETCHED_UNANSWERED: Built = Built(
    "msgdma, copies by the prefetcher whose writes have no answers",
    MsgdmaConfig { prefetcher_at: Some(0x20), ..UNANSWERED },
);
const RECEIVE_UNANSWERED: Built = Built(
    "msgdma, receive where writes have no answers",
    MsgdmaConfig { mode: MsgdmaMode::Receive, resp_at: Some(0x40), ..UNANSWERED },
);
const RESPONSES: Built =
    Built("msgdma, copies with responses", MsgdmaConfig { resp_at: Some(0x40), ..BASE });
const EXTENDED: Built = Built(
    "msgdma, extended copies",
    MsgdmaConfig { extended: true, address_bits: 64, resp_at: Some(0x40), ..BASE },
);
const UNALIGNED: Built = Built(
    "msgdma, unaligned copies",
    MsgdmaConfig { transfer: MsgdmaTransfer::Unaligned, depth: 8, ..BASE },
);
const FETCHED: Built =
    Built("msgdma, copies by the prefetcher", MsgdmaConfig { prefetcher_at: Some(0x20), ..BASE });
const FETCHED_EXTENDED: Built = Built(
    "msgdma, extended copies by the prefetcher",
    MsgdmaConfig { extended: true, address_bits: 40, prefetcher_at: Some(0x20), ..BASE },
);
const SEND: Built =
    Built("msgdma, send", MsgdmaConfig { mode: MsgdmaMode::Send, resp_at: Some(0x40), ..BASE });
const SEND_FETCHED: Built = Built(
    "msgdma, send by the prefetcher",
    MsgdmaConfig { mode: MsgdmaMode::Send, prefetcher_at: Some(0x20), ..BASE },
);
const RECEIVE: Built = Built(
    "msgdma, receive",
    MsgdmaConfig { mode: MsgdmaMode::Receive, resp_at: Some(0x40), ..BASE },
);
const RECEIVE_FETCHED: Built = Built(
    "msgdma, receive by the prefetcher",
    MsgdmaConfig { mode: MsgdmaMode::Receive, prefetcher_at: Some(0x20), ..BASE },
);

impl Built {
    fn with(&self, stop_loses_responses: bool) -> MsgdmaModel {
        let source =
            SourceConfig { packet_bytes: 1536, short_every: Some(5), ..SourceConfig::default() };
        let stream = match self.1.mode {
            MsgdmaMode::Receive => StreamConfig::source(source, 4096),
            MsgdmaMode::Copy | MsgdmaMode::Send => StreamConfig::sink(),
        };
        MsgdmaModel::new(MsgdmaBuild {
            config: self.1,
            stream,
            stop_loses_responses,
            ..MsgdmaBuild::default()
        })
    }
}

impl Subject for Built {
    type Model = MsgdmaModel;

    fn name(&self) -> &'static str {
        self.0
    }
    fn kind(&self) -> Kind {
        match self.1.mode {
            MsgdmaMode::Copy => Kind::Copy,
            MsgdmaMode::Send => Kind::Send,
            MsgdmaMode::Receive => Kind::Receive,
        }
    }
    fn model(&self) -> MsgdmaModel {
        self.with(true)
    }
    fn drawn(&self, seed: u64) -> MsgdmaModel {
        self.with(fastrand::Rng::with_seed(seed).bool())
    }
    fn stream(&self, model: &MsgdmaModel) -> Option<StreamCounts> {
        Some(model.stream.counts)
    }
    fn memory_bytes(&self) -> usize {
        if self.1.prefetcher_at.is_some() { 8192 } else { 0 }
    }
    fn limits(&self) -> Limits {
        let offset_align_bytes = if self.1.transfer == MsgdmaTransfer::Unaligned { 1 } else { 4 };
        Limits { offset_align_bytes, ..Limits::NONE }
    }
    fn packet_bytes(&self) -> usize {
        1536
    }
    fn never(&self) -> &'static [Sight] {
        &[Sight::Short]
    }
    fn may_fail(&self, error: &Error) -> bool {
        let Error::Fault { what, status, .. } = error else { return false };
        match self.1.mode {
            MsgdmaMode::Receive => {
                *status != u32::MAX && what.starts_with("an error of the stream's source")
            }
            MsgdmaMode::Copy | MsgdmaMode::Send => {
                *status == u32::MAX && what.starts_with("bits that it never sets")
            }
        }
    }
    fn open<R>(
        &self,
        window: SimWindow<MsgdmaModel>,
        memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        Ok(match memory {
            Some(memory) => act(&mut window.prefetched(self.1, memory)?),
            None => act(&mut window.driver(self.1)?),
        })
    }
}

pub(crate) fn each(see: &mut impl See) {
    for subject in
        [COPY, COPY_UNANSWERED, RESPONSES, EXTENDED, FETCHED, SEND, RECEIVE, RECEIVE_FETCHED]
    {
        see.see(&subject);
    }
}

suite! {
    copies: COPY;
    copies_whose_writes_have_no_answers: COPY_UNANSWERED;
    copies_by_the_prefetcher_whose_writes_have_no_answers: FETCHED_UNANSWERED;
    receives_where_writes_have_no_answers: RECEIVE_UNANSWERED;
    copies_with_responses: RESPONSES;
    copies_extended: EXTENDED;
    copies_unaligned: UNALIGNED;
    copies_by_the_prefetcher: FETCHED;
    copies_extended_by_the_prefetcher: FETCHED_EXTENDED;
    sends: SEND;
    sends_by_the_prefetcher: SEND_FETCHED;
    receives: RECEIVE;
    receives_by_the_prefetcher: RECEIVE_FETCHED;
}

//! The AXI DMAC: copies in registers and by lists, packets out and in, with a word of 64 bits.

use super::See;
use contigo::drivers::axi_dmac::{DmacConfig, DmacRows};
use contigo::sim::SimWindow;
use contigo::sim::axi_dmac::{AxiDmacBuild, AxiDmacModel, Side};
use contigo::sim::stream::{SourceConfig, StreamConfig, StreamCounts};
use contigo::{CpuBuf, Driver, Error, Result};
use contigo_exerciser::Limits;
use contigo_testkit::suite::{Kind, Sight, Subject};

struct Built {
    name: &'static str,
    kind: Kind,
    lists: bool,
    /// With a length register of 10 bits jobs have several pieces.
    length_bits: u32,
    /// Lengths are words of 8 bytes.
    words: bool,
    rows: Rows,
    /// The core queues jobs of one burst well, and the longest packet is said.
    mended: bool,
    /// The memory is slow to answer the read of a descriptor: stops fall into it.
    fetch_ns: u64,
}

/// A job's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// It says none.
    None,
    One,
    /// Rows of two bursts, as many as its length has.
    Many,
}

const COPY: Built = Built {
    name: "axi_dmac, copies",
    kind: Kind::Copy,
    lists: false,
    length_bits: 24,
    words: false,
    rows: Rows::None,
    mended: false,
    fetch_ns: 0,
};
const MENDED: Built = Built { name: "axi_dmac, copies by a mended core", mended: true, ..COPY };
const WORDS: Built = Built { name: "axi_dmac, copies of whole words", words: true, ..COPY };
const ROW: Built = Built { name: "axi_dmac, copies as a row", rows: Rows::One, ..COPY };
const ROWS: Built = Built { name: "axi_dmac, copies in rows", rows: Rows::Many, ..COPY };
const LISTS: Built =
    Built { name: "axi_dmac, copies by lists", lists: true, length_bits: 10, ..COPY };
const SLOW_LISTS: Built =
    Built { name: "axi_dmac, copies by lists that come late", fetch_ns: 1_500, ..LISTS };
const SEND: Built = Built { name: "axi_dmac, send", kind: Kind::Send, ..COPY };
const SEND_LISTS: Built = Built { name: "axi_dmac, send by lists", kind: Kind::Send, ..LISTS };
const RECEIVE: Built = Built { name: "axi_dmac, receive", kind: Kind::Receive, ..COPY };
const RECEIVE_MENDED: Built =
    Built { name: "axi_dmac, receive by a mended core", mended: true, ..RECEIVE };

const BURST_BYTES: u32 = 64;
/// The source's longest packet.
const PACKET_BYTES: u32 = 1504;

impl Built {
    /// With two bursts' room, rows of two bursts are long.
    const fn fifo_bursts(&self) -> u32 {
        if matches!(self.rows, Rows::Many) { 2 } else { 8 }
    }

    fn with(&self, base: AxiDmacBuild) -> AxiDmacModel {
        let source = SourceConfig {
            packet_bytes: PACKET_BYTES as usize,
            short_every: Some(5),
            ..SourceConfig::default()
        };
        let (sides, stream) = match self.kind {
            Kind::Copy => ([Side::Memory; 2], StreamConfig::sink()),
            Kind::Send => ([Side::Memory, Side::Stream], StreamConfig::sink()),
            Kind::Receive => ([Side::Stream, Side::Memory], StreamConfig::source(source, 4096)),
        };
        let (length_align, fifo_bursts) = (if self.words { 8 } else { 1 }, self.fifo_bursts());
        let Self { length_bits, fetch_ns, .. } = *self;
        let build = AxiDmacBuild {
            sides,
            stream,
            length_bits,
            length_align,
            fetch_ns,
            fifo_bursts,
            single_bursts: base.single_bursts && !self.mended,
            ..base
        };
        AxiDmacModel::new(build)
    }
}

impl Subject for Built {
    type Model = AxiDmacModel;

    fn name(&self) -> &'static str {
        self.name
    }
    fn kind(&self) -> Kind {
        self.kind
    }
    fn model(&self) -> AxiDmacModel {
        self.with(AxiDmacBuild::default())
    }
    fn drawn(&self, seed: u64) -> AxiDmacModel {
        let mut rng = fastrand::Rng::with_seed(seed);
        let [row_ids, single_bursts, late_packet_ends, early_last] = [(); 4].map(|()| rng.bool());
        self.with(AxiDmacBuild {
            row_ids,
            single_bursts,
            late_packet_ends,
            early_last,
            ..AxiDmacBuild::default()
        })
    }
    fn stream(&self, model: &AxiDmacModel) -> Option<StreamCounts> {
        Some(model.stream.counts)
    }
    fn memory_bytes(&self) -> usize {
        if self.lists { 4096 } else { 0 }
    }
    fn limits(&self) -> Limits {
        let len_align_bytes = match self.rows {
            Rows::Many => 2 * BURST_BYTES as usize,
            _ if self.words => 8,
            _ => 1,
        };
        Limits { offset_align_bytes: BURST_BYTES as usize, len_align_bytes, ..Limits::NONE }
    }
    fn packet_bytes(&self) -> usize {
        // More than a packet: one that fills its buffer has no report. Behind one that almost does
        // others hang, where there are others.
        let deep = (PACKET_BYTES.div_ceil(BURST_BYTES) + 2) * BURST_BYTES + 1;
        (if self.mended { deep } else { PACKET_BYTES + 8 }) as usize
    }
    fn words(&self, len_bytes: usize) -> Vec<u32> {
        let (len_bytes, pair) = (u32::try_from(len_bytes).unwrap(), 2 * BURST_BYTES);
        let rows = match self.rows {
            Rows::None => return Vec::new(),
            Rows::One => DmacRows { row_bytes: len_bytes, rows: 1, from_stride: 0, to_stride: 64 },
            Rows::Many => DmacRows {
                row_bytes: pair,
                rows: len_bytes / pair,
                from_stride: pair,
                to_stride: pair,
            },
        };
        rows.words().into()
    }
    fn never(&self) -> &'static [Sight] {
        &[Sight::Short]
    }
    fn may_fail(&self, error: &Error) -> bool {
        matches!(error, Error::Fault { device: "axi_dmac", status: u32::MAX, what }
            if what.starts_with("bits that it never sets"))
    }
    fn open<R>(
        &self,
        window: SimWindow<AxiDmacModel>,
        memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        let packet_bytes = if self.mended { PACKET_BYTES } else { 0 };
        let (fifo_bursts, single_bursts) = (self.fifo_bursts(), self.mended);
        let config = DmacConfig {
            stop_us: 1_000,
            fifo_bursts,
            single_bursts,
            packet_bytes,
            ..DmacConfig::default()
        };
        Ok(match memory {
            Some(memory) => act(&mut window.listed(config, memory)?),
            None => act(&mut window.driver(config)?),
        })
    }
}

pub(crate) fn each(see: &mut impl See) {
    for subject in [COPY, MENDED, LISTS, SEND, RECEIVE, RECEIVE_MENDED] {
        see.see(&subject);
    }
}

suite! {
    copies: COPY;
    copies_by_a_mended_core: MENDED;
    copies_of_whole_words: WORDS;
    copies_as_a_row: ROW;
    copies_in_rows: ROWS;
    copies_by_lists: LISTS;
    copies_by_lists_that_come_late: SLOW_LISTS;
    sends: SEND;
    sends_by_lists: SEND_LISTS;
    receives: RECEIVE;
    receives_by_a_mended_core: RECEIVE_MENDED;
}

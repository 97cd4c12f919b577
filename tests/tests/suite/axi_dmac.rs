//! The AXI DMAC: copies in registers and by lists, packets out and in, with a word of 64 bits.

use super::page::See;
use contigo::{
    CpuBuf, Driver, Error, Result,
    drivers::axi_dmac::{AxiDmac, AxiDmacBuild, AxiDmacModel, DmacConfig, DmacRows, regs::Side},
    sim::{
        SimWindow,
        stream::{SourceConfig, StreamConfig, StreamCounts},
    },
};
use contigo_testkit::{
    exercise::Limits,
    suite::{Kind, Subject},
};

struct Built {
    name: &'static str,
    kind: Kind,
    lists: bool,
    /// With a length register of 10 bits jobs have several pieces.
    length_bits: u32,
    /// Lengths are words of 8 bytes.
    words: bool,
    rows: bool,
    /// The memory is slow to answer the read of a descriptor: stops fall into it.
    fetch_ns: u64,
}

const COPY: Built =
    Built { name: "axi_dmac, copies", kind: Kind::Copy, lists: false, length_bits: 24, words: false, rows: false, fetch_ns: 0 };
const WORDS: Built = Built { name: "axi_dmac, copies of whole words", words: true, ..COPY };
const ROWS: Built = Built { name: "axi_dmac, copies as a row", rows: true, ..COPY };
const LISTS: Built = Built { name: "axi_dmac, copies by lists", lists: true, length_bits: 10, ..COPY };
const SLOW_LISTS: Built = Built { name: "axi_dmac, copies by lists that come late", fetch_ns: 1_500, ..LISTS };
const SEND: Built = Built { name: "axi_dmac, send", kind: Kind::Send, ..COPY };
const SEND_LISTS: Built = Built { name: "axi_dmac, send by lists", kind: Kind::Send, ..LISTS };
const RECEIVE: Built = Built { name: "axi_dmac, receive", kind: Kind::Receive, ..COPY };

impl Subject for Built {
    type Model = AxiDmacModel;

    fn name(&self) -> &'static str {
        self.name
    }
    fn kind(&self) -> Kind {
        self.kind
    }
    fn model(&self) -> AxiDmacModel {
        let source = SourceConfig { packet_bytes: 1504, short_every: Some(5), ..SourceConfig::default() };
        let (sides, stream) = match self.kind {
            Kind::Copy => ([Side::Memory; 2], StreamConfig::sink()),
            Kind::Send => ([Side::Memory, Side::Stream], StreamConfig::sink()),
            Kind::Receive => ([Side::Stream, Side::Memory], StreamConfig::source(source, 4096)),
        };
        let length_align = if self.words { 8 } else { 1 };
        let Self { length_bits, fetch_ns, .. } = *self;
        AxiDmacModel::new(AxiDmacBuild { sides, stream, length_bits, length_align, fetch_ns, ..AxiDmacBuild::default() })
    }
    fn stream(&self, model: &AxiDmacModel) -> Option<StreamCounts> {
        Some(model.stream())
    }
    fn memory_bytes(&self) -> usize {
        if self.lists { 4096 } else { 0 }
    }
    fn limits(&self) -> Limits {
        Limits { offset_align_bytes: 64, len_align_bytes: if self.words { 8 } else { 1 }, ..Limits::NONE }
    }
    fn packet_bytes(&self) -> usize {
        // More than a packet: one that fills its buffer has no report.
        1504 + 8
    }
    fn words(&self, len_bytes: usize) -> Vec<u32> {
        let row_bytes = u32::try_from(len_bytes).unwrap();
        if self.rows { DmacRows { row_bytes, rows: 1, from_stride: 0, to_stride: 64 }.words().into() } else { Vec::new() }
    }
    fn may_fail(&self, error: &Error) -> bool {
        matches!(error, Error::Fault { device: "axi_dmac", status: u32::MAX, what } if what.starts_with("bits that it never sets"))
    }
    fn open<R>(
        &self,
        window: SimWindow<'_, AxiDmacModel>,
        memory: Option<CpuBuf<'_>>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        let config = DmacConfig { stop_us: 1_000, ..DmacConfig::default() };
        Ok(match memory {
            Some(memory) => act(&mut AxiDmac::listed_simulated(window, config, memory)?),
            None => act(&mut AxiDmac::open_simulated(window, config)?),
        })
    }
}

pub(crate) fn each(see: &mut impl See) {
    for subject in [COPY, LISTS, SEND, RECEIVE] {
        see.see(&subject);
    }
}

#[test]
fn copies() {
    super::run(&COPY);
}

#[test]
fn copies_of_whole_words() {
    super::run(&WORDS);
}

#[test]
fn copies_as_a_row() {
    super::run(&ROWS);
}

#[test]
fn copies_by_lists() {
    super::run(&LISTS);
}

#[test]
fn copies_by_lists_that_come_late() {
    super::run(&SLOW_LISTS);
}

#[test]
fn sends() {
    super::run(&SEND);
}

#[test]
fn sends_by_lists() {
    super::run(&SEND_LISTS);
}

#[test]
fn receives() {
    super::run(&RECEIVE);
}

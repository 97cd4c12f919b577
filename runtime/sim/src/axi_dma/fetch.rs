//! A transfer, and the fetch of descriptors, up to four ahead of the current one (`axi_dma.vhd`,
//! `SG_FTCH_DESC2QUEUE`). A descriptor stays as it was when it was fetched.

use crate::stream::SimStream;
use contigo_drivers::axi_dma::Side;

/// The time of one fetch.
pub(super) const FETCH_NS: u64 = 200;
/// The most bytes moved in one step.
pub(super) const BURST_BYTES: usize = 256;
/// How many descriptors are fetched ahead of the current one.
const AHEAD: usize = 4;

/// A buffer under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transfer {
    pub(super) descriptor: u64,
    pub(super) addr: u64,
    pub(super) len_bytes: usize,
    /// The length that the descriptor has; the core's register may have fewer bits.
    pub(super) given_bytes: u32,
    pub(super) done: usize,
    /// When the next burst may begin.
    pub(super) at_ns: u64,
    /// MM2S: the packet ends with this buffer. S2MM: the packet ended in it.
    pub(super) ends: bool,
    /// S2MM: the packet began in this buffer.
    pub(super) begins: bool,
    /// The bits of the error that ends the transfer.
    pub(super) error: u32,
    pub(super) hangs: bool,
    /// S2MM: it reports the packet's end after this many bytes.
    pub(super) short: Option<usize>,
    /// How late its interrupt comes; `None`: never.
    pub(super) irq_late_ns: Option<u64>,
}

impl Transfer {
    pub(super) const fn left(&self) -> usize {
        self.len_bytes - self.done
    }

    /// When its next burst is due. `None`: it waits for another event.
    pub(super) fn burst_at_ns(&self, side: Side, stream: &SimStream, now_ns: u64) -> Option<u64> {
        if self.hangs {
            return None;
        }
        let stream_ns = match side {
            Side::Mm2s => (stream.room_bytes() > 0).then_some(now_ns),
            Side::S2mm => stream.ready_at_ns(now_ns, self.left().min(BURST_BYTES)),
        };
        stream_ns.map(|stream_ns| stream_ns.max(self.at_ns))
    }
}

/// The descriptors that were fetched, and the fetch under way.
#[derive(Debug)]
pub(super) struct Fetch {
    /// The next descriptor to fetch.
    pub(super) next: u64,
    /// The tail has not been fetched since the doorbell.
    pub(super) has_work: bool,
    /// When the fetch under way ends.
    pub(super) at_ns: Option<u64>,
    /// The fetched descriptors, oldest first.
    pub(super) queue: [Option<Transfer>; AHEAD],
}

impl Fetch {
    pub(super) const fn new() -> Self {
        Self { next: 0, has_work: false, at_ns: None, queue: [None; AHEAD] }
    }

    /// RS was set: fetching starts at CURDESC.
    pub(super) const fn begin(&mut self, current: u64) {
        *self = Self { next: current, ..Self::new() };
    }

    pub(super) const fn drop_all(&mut self) {
        *self = Self { next: self.next, ..Self::new() };
    }

    /// Returns whether nothing was fetched ahead, and nothing will be fetched before a doorbell.
    pub(super) const fn is_idle(&self) -> bool {
        !self.has_work && self.at_ns.is_none() && self.queue[0].is_none()
    }

    /// Handles a write of TAILDESC.
    pub(super) fn ring(&mut self, now_ns: u64) {
        self.has_work = true;
        self.go_on(now_ns);
    }

    /// Starts the next fetch if there is room.
    pub(super) fn go_on(&mut self, now_ns: u64) {
        if self.has_work && self.queue.iter().any(Option::is_none) {
            self.at_ns.get_or_insert(now_ns + FETCH_NS);
        }
    }

    /// Takes the oldest fetched descriptor.
    pub(super) fn take(&mut self, now_ns: u64) -> Option<Transfer> {
        let oldest = self.queue[0].take();
        self.queue.rotate_left(1);
        self.go_on(now_ns);
        oldest
    }
}

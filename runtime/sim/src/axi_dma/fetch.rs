//! The fetch of descriptors, up to four ahead of the one that is under way (`axi_dma.vhd`,
//! `SG_FTCH_DESC2QUEUE`). A descriptor is as it was when it was fetched.

use super::{
    channel::Channel,
    manual as pg021,
    spec::CoreSpec,
    transfer::{NONE, Transfer},
};
use crate::SimBus;
use contigo_core::types::DevAddr;
use contigo_drivers::axi_dma::Side;

/// A descriptor's fetch.
pub(super) const FETCH_NS: u64 = 200;
/// So many wait for the one that is under way.
const AHEAD: usize = 4;

/// The descriptors that were fetched, and the fetch under way.
#[derive(Debug)]
pub(super) struct Fetch {
    /// The next descriptor to fetch.
    next: u64,
    /// The tail was not fetched since the doorbell.
    has_work: bool,
    /// When the fetch under way ends.
    at_ns: Option<u64>,
    /// The oldest first.
    queue: [Option<Transfer>; AHEAD],
}

impl Fetch {
    pub(super) const fn new() -> Self {
        Self { next: 0, has_work: false, at_ns: None, queue: [None; AHEAD] }
    }

    /// RS was set: fetching begins at CURDESC.
    pub(super) const fn begin(&mut self, current: u64) {
        *self = Self { next: current, ..Self::new() };
    }

    pub(super) const fn drop_all(&mut self) {
        *self = Self { next: self.next, ..Self::new() };
    }

    /// When the fetch under way ends.
    pub(super) const fn at_ns(&self) -> Option<u64> {
        self.at_ns
    }

    /// Nothing was fetched ahead, and nothing will be before a doorbell.
    pub(super) const fn is_idle(&self) -> bool {
        !self.has_work && self.at_ns.is_none() && self.queue[0].is_none()
    }

    /// TAILDESC was written.
    pub(super) fn ring(&mut self, now_ns: u64) {
        self.has_work = true;
        self.go_on(now_ns);
    }

    /// The next fetch, where there is room for it.
    fn go_on(&mut self, now_ns: u64) {
        if self.has_work && self.queue.iter().any(Option::is_none) {
            self.at_ns.get_or_insert(now_ns + FETCH_NS);
        }
    }

    /// The oldest descriptor that was fetched.
    fn take(&mut self, now_ns: u64) -> Option<Transfer> {
        let oldest = self.queue[0].take();
        self.queue.rotate_left(1);
        self.go_on(now_ns);
        oldest
    }
}

impl Channel {
    /// A fetch ends.
    pub(super) fn fetched(&mut self, now_ns: u64, spec: &CoreSpec, bus: &mut SimBus<'_>) {
        self.fetch.at_ns = None;
        let (at, mut bytes) = (self.fetch.next, [0; 32]);
        let number = self.fetches;
        self.fetches = number.wrapping_add(1);
        if self.side == Side::S2mm && spec.fetch_error_at == Some(number) {
            return self.fail_fetch(now_ns, at, pg021::SR_SG_SLV_ERR);
        }
        if !at.is_multiple_of(pg021::BD_ALIGN) || bus.read(DevAddr(at), &mut bytes).is_err() {
            return self.fail_fetch(now_ns, at, pg021::SR_SG_DEC_ERR);
        }
        let word =
            |at: usize| bytes.as_chunks().0.get(at / 4).map_or(0, |word| u32::from_le_bytes(*word));
        let address = |at: usize| {
            u64::from(word(at))
                | if spec.address_bits > 32 { u64::from(word(at + 4)) << 32 } else { 0 }
        };
        if word(pg021::BD_STATUS) & pg021::BD_CMPLT != 0 {
            return self.fail_fetch(now_ns, at, pg021::SR_SG_INT_ERR);
        }
        let control = word(pg021::BD_CONTROL);
        let transfer = Transfer {
            descriptor: at,
            addr: address(pg021::BD_BUFFER),
            len_bytes: spec.length(control & pg021::BD_BYTES) as usize,
            given_bytes: control & pg021::BD_BYTES,
            ends: self.side == Side::Mm2s && control & pg021::BD_TX_EOF != 0,
            ..NONE
        };
        // The tail is compared with what is fetched (`axi_sg_ftch_pntr.vhd`, COMPARE_ADDRESS).
        (self.fetch.has_work, self.fetch.next) = (self.tail != at, address(pg021::BD_NEXT));
        if let Some(room) = self.fetch.queue.iter_mut().find(|place| place.is_none()) {
            *room = Some(transfer);
        }
        self.fetch.go_on(now_ns);
        self.begin_next(now_ns, spec, bus);
    }

    /// The next descriptor that was fetched, where the one before is over.
    pub(super) fn begin_next(&mut self, now_ns: u64, spec: &CoreSpec, bus: &mut SimBus<'_>) {
        if self.transfer.is_some() || self.stops {
            return;
        }
        let Some(transfer) = self.fetch.take(now_ns) else { return };
        self.current = transfer.descriptor;
        if transfer.len_bytes == 0 {
            return self.fail(now_ns, pg021::SR_DMA_INT_ERR, spec, bus);
        }
        self.begin(Transfer { at_ns: now_ns, ..transfer }, spec, bus);
    }

    /// An error of a fetch is reported at once. The transfer under way ends, and those that were
    /// fetched ahead do not begin.
    fn fail_fetch(&mut self, now_ns: u64, at: u64, bit: u32) {
        (self.current, self.status) = (at, self.status | bit);
        self.control &= !pg021::CR_RS;
        self.raise(pg021::SR_ERR_IRQ, Some(now_ns));
        self.stop(now_ns);
    }
}

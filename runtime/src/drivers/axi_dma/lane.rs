//! One channel and its jobs in flight. `give.rs` has how one is given, and `end.rs` how its end is
//! found.

use super::{
    config::{AxiDmaConfig, DEPTH_MAX, Side},
    regs,
};
use crate::{
    drivers::{ring::Ring, tail::Tail},
    hw::Mmio,
    job::{Completion, OperandSpec},
    types::DevAddr,
};

/// Completion's word 0: the packet may lack its beginning.
pub(super) const MAYBE_TORN: u32 = 1;

/// One channel: its jobs in flight, with descriptors or one at a time in registers.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) side: Side,
    pub(super) config: AxiDmaConfig,
    /// `None`: direct register mode.
    pub(super) ring: Option<Ring>,
    pub(super) depth: usize,
    pub(super) operand: [OperandSpec; 1],
    /// Between the first job and a stop.
    pub(super) runs: bool,
    /// The oldest slot that was not told, and how many were not.
    pub(super) oldest: usize,
    pub(super) in_flight: usize,
    /// How many descriptors the job in each slot has.
    pub(super) counts: [u16; DEPTH_MAX],
    /// The next descriptor to write, and the first of the oldest job.
    pub(super) head: usize,
    pub(super) first: usize,
    /// So many from `first` on were written for jobs that were not told.
    pub(super) given: usize,
    /// How TAILDESC was written last.
    pub(super) tail: Tail,
    /// Of the oldest job: so many descriptors are done, with so many bytes, and RXSOF.
    pub(super) done: usize,
    pub(super) bytes: usize,
    pub(super) began: u32,
    /// The address in direct register mode.
    pub(super) addr: DevAddr,
    /// Lengths up to this one are known to fit the core's LENGTH.
    pub(super) fits_bytes: usize,
    /// An end in registers, found when the channel was stopped.
    pub(super) ended: Option<Completion>,
    /// A receive was stopped, or reset, in the middle: so the first packet after the next start may
    /// lack its beginning. Packets that ended before are whole.
    cut: bool,
    /// The packet that was told last goes on: the next buffer begins with its rest.
    open: bool,
    /// The first packet of this run may lack its beginning, and was not told.
    torn: bool,
    /// The last look read Idle, and no job was given since.
    pub(super) idle: bool,
    /// A look came since the last job was given: before, Idle may be that of the time before it.
    pub(super) looked: bool,
    /// DMASR, where it told an end when the last job was given, and no look came since. Else 0.
    pub(super) seen: u32,
    pub(super) ran_dry: u64,
    pub(super) looks: u64,
    pub(super) quiet: u32,
}

impl Lane {
    /// A channel without jobs. The depth is the configuration's, or one descriptor a job.
    pub(super) fn new(side: Side, config: AxiDmaConfig, ring: Option<Ring>) -> Self {
        let descriptors = ring.as_ref().map_or(1, Ring::len);
        let depth = if ring.is_some() { config.depth.unwrap_or(DEPTH_MAX).min(descriptors).min(DEPTH_MAX) } else { 1 };
        let operand = [config.operand(side, descriptors / depth.max(1))];
        let (addr, counts, ended) = (DevAddr(0), [0; DEPTH_MAX], None);
        let (runs, oldest, in_flight, head, first, done, bytes, began) = (false, 0, 0, 0, 0, 0, 0, 0);
        let (fits_bytes, idle, ran_dry, looks, quiet) = (0, false, 0, 0, 0);
        let (cut, open, torn) = (false, false, false);
        let (given, tail, seen) = (0, Tail::default(), 0);
        Self {
            side,
            config,
            ring,
            depth,
            operand,
            runs,
            oldest,
            in_flight,
            counts,
            head,
            first,
            given,
            tail,
            done,
            bytes,
            began,
            addr,
            fits_bytes,
            ended,
            cut,
            open,
            torn,
            idle,
            looked: false,
            seen,
            ran_dry,
            looks,
            quiet,
        }
    }

    /// How many descriptors the oldest job has.
    pub(super) fn pieces(&self) -> usize {
        self.counts.get(self.oldest).map_or(1, |&count| usize::from(count).max(1))
    }

    /// It starts again, after its first time.
    pub(super) const fn begins(&mut self) {
        self.torn |= self.cut || self.open;
        (self.cut, self.open) = (false, false);
    }

    /// Of an end whose last byte is a packet's, or is not.
    pub(super) fn words(&mut self, last: bool) -> [u32; 4] {
        self.open = matches!(self.side, Side::S2mm) && !last;
        [if core::mem::take(&mut self.torn) { MAYBE_TORN } else { 0 }, 0, 0, 0]
    }

    /// The channel is about to be stopped: an end that only registers tell is kept.
    pub(super) fn keep_end(&mut self, at: &impl Mmio) {
        if self.ring.is_none() && self.runs && self.in_flight > 0 {
            self.ended = self.look(at).ok().flatten();
        }
    }

    /// Has it jobs that have not ended? All that it was given are done where it is idle.
    pub(super) fn is_busy(&self, at: &impl Mmio) -> bool {
        self.runs && self.in_flight > 0 && !is_idle(regs::DMASR.read(at))
    }

    /// May a job be under way? The core says Idle late after a doorbell: it counts after a look
    /// that came behind the last one.
    pub(super) fn may_be_busy(&self, at: &impl Mmio) -> bool {
        self.is_busy(at) || self.runs && self.in_flight > 0 && !self.looked
    }

    /// The channel has stopped.
    pub(super) fn stopped(&mut self) {
        if self.runs && self.ring.is_none() {
            // Its end was kept, and is told once more.
            self.in_flight = usize::from(self.ended.is_some());
        }
        self.runs = false;
    }

    /// Its jobs were stopped in the middle.
    pub(super) const fn cut(&mut self) {
        self.cut = matches!(self.side, Side::S2mm);
    }

    /// The sibling reset the core while this channel had no jobs. A receive may have taken the
    /// beginning of the next packet, which is gone then.
    pub(super) const fn was_reset(&mut self) {
        if self.runs {
            self.cut();
        }
        self.runs = false;
    }
}

/// Done with all that it was given; all ones are no status.
pub(super) const fn is_idle(status: u32) -> bool {
    status & (regs::IDLE | regs::RESERVED) == regs::IDLE
}

#[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
pub(super) const fn halves(addr: u64) -> (u32, u32) {
    (addr as u32, (addr >> 32) as u32)
}

//! A channel's registers, and its path from RS to Halted.

use super::fetch::{Fetch, Transfer};
use super::{CoreSpec, manual as pg021};
use crate::SimBus;
use crate::stream::SimStream;
use contigo_drivers::axi_dma::Side;

/// From a cleared RS to Halted, with nothing under way.
const HALT_NS: u64 = 200;

/// One channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) side: Side,
    /// DMACR, without the bit that is always 1.
    pub(super) control: u32,
    /// DMASR without Halted, Idle and the bits that are constant.
    pub(super) status: u32,
    /// The channel is not halted.
    pub(super) runs: bool,
    pub(super) idle: bool,
    pub(super) current: u64,
    pub(super) tail: u64,
    pub(super) addr: u64,
    pub(super) length: u32,
    pub(super) fetch: Fetch,
    pub(super) transfer: Option<Transfer>,
    /// A transfer whose last byte has been moved, and when it is reported.
    pub(super) posted: Option<(u64, Transfer)>,
    /// RS was cleared.
    pub(super) stops: bool,
    /// The other channel failed: RS stays 0 until a reset.
    held: bool,
    halts_at_ns: Option<u64>,
    /// How many packets remain until the next interrupt.
    pub(super) packets_left: u32,
    /// When Dly_Irq comes.
    pub(super) delay_at_ns: Option<u64>,
    /// When the line rises for DMASR; `None`: there is no interrupt, or it got lost.
    pub(super) line_at_ns: Option<u64>,
    /// S2MM: a packet began in an earlier descriptor.
    pub(super) in_packet: bool,
    /// S2MM: the rest of a packet is discarded.
    pub(super) discards: bool,
    pub(super) error_at: Option<u32>,
    /// How many descriptors were fetched.
    pub(super) fetches: u32,
    pub(super) written: u64,
    pub(super) underruns: u64,
}

impl Channel {
    pub(super) const fn new(side: Side) -> Self {
        Self {
            side,
            control: pg021::THRESHOLD_RESET,
            status: 0,
            runs: false,
            idle: false,
            current: 0,
            tail: 0,
            addr: 0,
            length: 0,
            fetch: Fetch::new(),
            transfer: None,
            posted: None,
            stops: false,
            held: false,
            halts_at_ns: None,
            packets_left: 1,
            delay_at_ns: None,
            line_at_ns: None,
            in_packet: false,
            discards: false,
            error_at: None,
            fetches: 0,
            written: 0,
            underruns: 0,
        }
    }

    /// Resets everything except the counts.
    pub(super) const fn power_on(&mut self) {
        let (written, underruns, error_at, fetches) =
            (self.written, self.underruns, self.error_at, self.fetches);
        *self = Self { written, underruns, error_at, fetches, ..Self::new(self.side) };
    }

    /// Handles a write of Reset, which reads as 1 until the reset is over.
    pub(super) const fn resets(&mut self) {
        self.control |= pg021::CR_RESET;
    }

    pub(super) const fn threshold(&self) -> u32 {
        (self.control & pg021::THRESHOLD) >> 16
    }

    pub(super) const fn delay(&self) -> u32 {
        (self.control & pg021::DELAY) >> 24
    }

    /// When the next event is due.
    pub(super) fn next_at_ns(&self, stream: &SimStream, now_ns: u64) -> Option<u64> {
        let burst = self
            .transfer
            .as_ref()
            .and_then(|transfer| transfer.burst_at_ns(self.side, stream, now_ns));
        let posted = self.posted.as_ref().map(|(at_ns, _)| *at_ns);
        [burst, posted, self.fetch.at_ns, self.halts_at_ns, self.delay_at_ns]
            .into_iter()
            .flatten()
            .min()
    }

    /// Handles the event that is due at `now_ns`.
    pub(super) fn happen(
        &mut self,
        now_ns: u64,
        spec: &CoreSpec,
        stream: &mut SimStream,
        bus: &mut SimBus<'_>,
    ) {
        if self.posted.as_ref().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            return self.settle(now_ns, spec, bus);
        }
        if self.fetch.at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            return self.fetched(now_ns, spec, bus);
        }
        if self.halts_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            return self.halted();
        }
        if self.delay_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.delay_at_ns = None;
            self.packets_left = self.threshold();
            return self.raise(pg021::SR_DLY_IRQ, Some(now_ns));
        }
        self.burst(now_ns, spec, stream, bus);
    }

    /// Handles a write of DMACR without Reset.
    pub(super) fn control(&mut self, value: u32, now_ns: u64, stuck: bool) {
        let threshold = if value & pg021::THRESHOLD == 0 {
            pg021::THRESHOLD_RESET
        } else {
            value & pg021::THRESHOLD
        };
        // After an error of either channel, RS takes effect only after a reset.
        let run = if !self.has_failed() && !self.held { value & pg021::CR_RS } else { 0 };
        self.control = value & (pg021::SR_IRQ_ALL | pg021::DELAY) | threshold | run;
        if run != 0 && !self.runs {
            (self.runs, self.stops, self.halts_at_ns) = (true, false, None);
            self.fetch.begin(self.current);
            self.packets_left = self.threshold();
        } else if run == 0 && self.runs && !stuck {
            self.stop(now_ns);
        }
    }

    pub(super) const fn has_failed(&self) -> bool {
        self.status & pg021::SR_ERRORS != 0
    }

    /// Holds RS at 0 because the other channel failed; the transfer under way ends
    /// (`axi_dma_register.vhd`, `run_stop_clr`; `axi_dma_mm2s_sts_mngr.vhd`, `HALT_PROCESS`).
    pub(super) const fn hold(&mut self, now_ns: u64, stuck: bool) {
        if self.held {
            return;
        }
        self.held = true;
        self.control &= !pg021::CR_RS;
        if self.runs && !stuck {
            self.stop(now_ns);
        }
    }

    /// Handles RS=0: drops the descriptors that were fetched ahead.
    pub(super) const fn stop(&mut self, now_ns: u64) {
        self.stops = true;
        self.fetch.drop_all();
        self.halt_if_free(now_ns);
    }

    /// Halts a stopping channel if nothing is under way: RS=0 waits for a transfer.
    pub(super) const fn halt_if_free(&mut self, now_ns: u64) {
        if self.stops && self.transfer.is_none() && self.halts_at_ns.is_none() {
            let told_ns = match &self.posted {
                Some((at_ns, _)) => *at_ns,
                None => 0,
            };
            let halts_ns = now_ns + HALT_NS;
            self.halts_at_ns = Some(if told_ns > halts_ns { told_ns } else { halts_ns });
        }
    }

    pub(super) const fn halted(&mut self) {
        (self.runs, self.idle, self.stops) = (false, false, false);
        self.fetch.drop_all();
        (self.transfer, self.halts_at_ns, self.delay_at_ns) = (None, None, None);
    }

    pub(super) fn read(&self, offset: usize, spec: &CoreSpec) -> u32 {
        let wide = spec.address_bits > 32;
        match offset {
            pg021::DMACR => self.control | pg021::CR_ALWAYS,
            pg021::DMASR => {
                let sg = if spec.sg { pg021::SR_SG_INCLUDED | self.packets_left << 16 } else { 0 };
                let state = if self.runs { 0 } else { pg021::SR_HALTED };
                self.status | sg | state | if self.idle { pg021::SR_IDLE } else { 0 }
            }
            pg021::CURDESC if spec.sg => low(self.current),
            pg021::CURDESC_MSB if spec.sg && wide => high(self.current),
            pg021::TAILDESC if spec.sg => low(self.tail),
            pg021::TAILDESC_MSB if spec.sg && wide => high(self.tail),
            pg021::ADDR if !spec.sg => low(self.addr),
            pg021::ADDR_MSB if !spec.sg && wide => high(self.addr),
            pg021::LENGTH if !spec.sg => self.length,
            _ => 0,
        }
    }

    pub(super) fn write(
        &mut self,
        offset: usize,
        value: u32,
        spec: &CoreSpec,
        bus: &mut SimBus<'_>,
    ) {
        let wide = spec.address_bits > 32;
        match offset {
            pg021::DMASR => {
                self.status &= !(value & pg021::SR_IRQ_ALL);
                if self.status & pg021::SR_IRQ_ALL == 0 {
                    self.line_at_ns = None;
                }
            }
            // While the channel runs, the pointer is read-only.
            pg021::CURDESC if spec.sg && !self.runs => set_low(&mut self.current, value),
            pg021::CURDESC_MSB if spec.sg && wide && !self.runs => {
                set_high(&mut self.current, value)
            }
            pg021::TAILDESC if spec.sg => {
                set_low(&mut self.tail, value);
                if !wide {
                    self.doorbell(bus.now_ns());
                }
            }
            pg021::TAILDESC_MSB if spec.sg && wide => {
                set_high(&mut self.tail, value);
                self.doorbell(bus.now_ns());
            }
            pg021::ADDR if !spec.sg => set_low(&mut self.addr, value),
            pg021::ADDR_MSB if !spec.sg && wide => set_high(&mut self.addr, value),
            pg021::LENGTH if !spec.sg => self.start_direct(spec.length(value), spec, bus),
            _ => {}
        }
    }

    fn doorbell(&mut self, now_ns: u64) {
        if !self.runs || self.stops {
            return;
        }
        self.underruns += u64::from(self.idle);
        self.idle = false;
        self.fetch.ring(now_ns);
    }
}

#[allow(clippy::cast_possible_truncation, reason = "half of an address")]
const fn low(addr: u64) -> u32 {
    addr as u32
}

const fn high(addr: u64) -> u32 {
    low(addr >> 32)
}

fn set_low(addr: &mut u64, value: u32) {
    *addr = *addr >> 32 << 32 | u64::from(value);
}

fn set_high(addr: &mut u64, value: u32) {
    *addr = *addr & 0xFFFF_FFFF | u64::from(value) << 32;
}

//! The engine: registers, fetches of descriptors, transfers and their ends, and interrupts.

use super::transfer::Transfer;
use super::{AxiCdmaModel, BYTES_PER_NS, DELAY_NS, FIFO_NS, LATENCY_NS, POST_NS, RESET_NS, manual};
use crate::SimBus;
use crate::faults::Fate;
use contigo_core::types::DevAddr;

impl AxiCdmaModel {
    /// Reads a register.
    pub(super) fn read(&self, offset: usize) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
        let half = |addr: u64| (addr >> (offset % 8 * 8)) as u32;
        let sg = |bit: u32| if self.spec.sg { bit } else { 0 };
        match offset {
            manual::CDMACR => self.control | sg(manual::CR_TAIL_POINTER),
            manual::CDMASR => {
                let idle =
                    if self.is_idle() && self.resets_at_ns.is_none() { manual::SR_IDLE } else { 0 };
                let counts = self.countdown << manual::THRESHOLD_SHIFT;
                self.status | idle | counts | sg(manual::SR_SG_INCLUDED)
            }
            manual::CURDESC | manual::CURDESC_MSB => half(self.current),
            manual::TAILDESC | manual::TAILDESC_MSB => half(self.tail),
            manual::SA | manual::SA_MSB => half(self.from),
            manual::DA | manual::DA_MSB => half(self.to),
            manual::BTT => self.btt,
            _ => 0,
        }
    }

    /// Writes a register.
    pub(super) fn write(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        let wide = self.spec.address_bits > 32;
        match offset {
            manual::CDMACR => self.write_control(value, bus),
            manual::CDMASR => {
                self.status &= !(value & manual::IRQ_ALL);
                if self.status & manual::IRQ_ALL == 0 {
                    self.line_at_ns = None;
                }
            }
            manual::TAILDESC | manual::TAILDESC_MSB if self.in_sg_mode() => {
                self.tail = self.half(self.tail, offset, value);
                if (offset == manual::TAILDESC_MSB) == wide {
                    self.doorbell(bus);
                }
            }
            // The other registers can be written only while the core is idle.
            _ if !self.is_idle() => {}
            manual::CURDESC | manual::CURDESC_MSB if self.in_sg_mode() => {
                self.current = self.half(self.current, offset, value)
            }
            manual::SA | manual::SA_MSB => self.from = self.half(self.from, offset, value),
            manual::DA | manual::DA_MSB => self.to = self.half(self.to, offset, value),
            manual::BTT => self.write_btt(value, bus),
            _ => {}
        }
    }

    fn write_control(&mut self, value: u32, bus: &mut SimBus<'_>) {
        if value & manual::CR_RESET != 0 {
            self.control |= manual::CR_RESET;
            if !self.is_stuck() {
                self.resets_at_ns = Some(bus.now_ns() + RESET_NS);
            }
            return;
        }
        let had = self.control;
        let mut has = value & !(manual::CR_RESET | manual::CR_TAIL_POINTER | 1 | 0x8F80);
        if !self.spec.sg {
            has &= !manual::CR_SG_MODE;
        }
        if had & manual::CR_SG_MODE == 0 {
            // The bit is kept only if `SGMode` was set before.
            has &= !manual::IRQ_DELAY;
        }
        self.control = has;
        self.countdown = self.threshold();
        match (had & manual::CR_SG_MODE, has & manual::CR_SG_MODE) {
            (0, 1..) if self.is_idle() => self.reloads = true,
            (1.., 0) if self.is_idle() => (self.current, self.tail) = (0, 0),
            (a, b) if a != b => self.fail(bus.now_ns(), manual::SR_DMA_INT, bus),
            _ => {}
        }
    }

    fn write_btt(&mut self, value: u32, bus: &mut SimBus<'_>) {
        if !self.is_idle() {
            return;
        }
        self.btt = value & self.spec.length_mask();
        if !self.in_sg_mode() && !self.halted && self.resets_at_ns.is_none() {
            self.begin(bus.now_ns(), None, 0, [self.from, self.to], self.btt, bus);
        }
    }

    /// Replaces one half of an address.
    fn half(&self, addr: u64, offset: usize, value: u32) -> u64 {
        let halves = if offset.is_multiple_of(8) {
            addr >> 32 << 32 | u64::from(value)
        } else {
            addr & 0xFFFF_FFFF | u64::from(value) << 32
        };
        self.spec.held(halves)
    }

    /// Begins a transfer at `now_ns`.
    fn begin(
        &mut self,
        now_ns: u64,
        descriptor: Option<u64>,
        next: u64,
        [from, to]: [u64; 2],
        len: u32,
        bus: &mut SimBus<'_>,
    ) {
        let len_bytes = len as usize;
        let busy_ns = LATENCY_NS + u64::from(len) / BYTES_PER_NS;
        let fate = match bus.fate() {
            Fate::Good if bus.strikes(bus.faults().error) => {
                let bits =
                    [manual::SR_DMA_INT, manual::SR_DMA_SLV, manual::SR_DMA_DEC, manual::SR_SG_SLV];
                let kinds = if descriptor.is_some() { bits.len() } else { 3 };
                let bit = bits.get(bus.rng().usize(..kinds)).copied();
                Fate::Error(bit.unwrap_or(manual::SR_DMA_INT))
            }
            fate => fate,
        };
        let irq_delay_ns = bus.irq_delay_ns(busy_ns * 10);
        let jitter_ns = bus.rng().u64(..=busy_ns / 8);
        let (begins_ns, ends_ns) = (now_ns, now_ns + busy_ns + jitter_ns);
        let transfer = Transfer {
            descriptor,
            next,
            from,
            to,
            len_bytes,
            moved: 0,
            begins_ns,
            ends_ns,
            irq_delay_ns,
            fate,
        };
        self.transfer = Some(transfer);
        if let Some(bit) = transfer.nonsense(&self.spec, self.control) {
            self.fail(now_ns, bit, bus);
        }
    }

    /// Fetches the descriptor at `at`.
    fn fetch(&mut self, now_ns: u64, at: u64, bus: &mut SimBus<'_>) {
        self.current = at;
        let mut raw = [0; manual::BD_BYTES];
        if !at.is_multiple_of(manual::BD_ALIGN) || bus.read(DevAddr(at), &mut raw).is_err() {
            return self.fail(now_ns, manual::SR_SG_DEC, bus);
        }
        let word =
            |index: usize| raw.as_chunks().0.get(index).map_or(0, |word| u32::from_le_bytes(*word));
        let addr = |index: usize| {
            self.spec.held(u64::from(word(index + 1)) << 32 | u64::from(word(index)))
        };
        if word(7) & manual::BD_COMPLETE != 0 {
            return self.fail(now_ns, manual::SR_SG_INT, bus);
        }
        // The core compares fetches with the tail (`axi_sg_ftch_pntr.vhd`, COMPARE_ADDRESS).
        self.has_work = at != self.tail;
        let sides = [addr(2), addr(4)];
        self.begin(now_ns, Some(at), addr(0), sides, word(6) & self.spec.length_mask(), bus);
    }

    /// Handles a write to TAILDESC.
    fn doorbell(&mut self, bus: &mut SimBus<'_>) {
        if self.halted || !self.in_sg_mode() || self.resets_at_ns.is_some() {
            return;
        }
        self.has_work = true;
        if !self.is_idle() {
            return;
        }
        let at = if core::mem::take(&mut self.reloads) { self.current } else { self.next };
        self.fetch(bus.now_ns(), at, bus);
    }

    /// Halts the core with an error.
    fn fail(&mut self, now_ns: u64, bit: u32, bus: &mut SimBus<'_>) {
        if let Some(Transfer { descriptor: Some(at), .. }) = self.transfer.take()
            && bit & (manual::SR_DMA_INT | manual::SR_DMA_SLV | manual::SR_DMA_DEC) != 0
        {
            let told = match bit {
                manual::SR_DMA_INT => manual::BD_INT,
                manual::SR_DMA_SLV => manual::BD_SLV,
                _ => manual::BD_DEC,
            };
            let _ = bus.write(
                DevAddr(at + manual::BD_STATUS),
                &(manual::BD_COMPLETE | told).to_le_bytes(),
            );
        }
        self.halted = true;
        self.status |= bit | manual::IRQ_ERROR;
        self.line_at_ns = Some(now_ns);
    }

    /// Ends a transfer whose time is over: its last writes are under way, and the next one begins.
    pub(super) fn ends(&mut self, now_ns: u64, bus: &mut SimBus<'_>) {
        self.settle(bus);
        let keyhole = self.control & (manual::CR_KEYHOLE_READ | manual::CR_KEYHOLE_WRITE) != 0;
        match self.transfer {
            Some(transfer)
                if transfer.fate == Fate::Good && transfer.descriptor.is_some() && !keyhole =>
            {
                (self.transfer, self.next) = (None, transfer.next);
                self.posted = Some((now_ns + POST_NS, transfer));
                self.go_on(now_ns, &transfer, bus);
            }
            Some(transfer) => self.finish(now_ns, transfer, bus),
            None => {}
        }
    }

    /// Completes the last writes, and then writes the status.
    pub(super) fn settle(&mut self, bus: &mut SimBus<'_>) {
        let Some((at_ns, mut transfer)) = self.posted.take() else { return };
        if let Err(bit) = transfer.run(transfer.len_bytes, self.control, &mut self.fifo, bus) {
            self.current = transfer.descriptor.unwrap_or(0);
            self.transfer = Some(transfer);
            return self.fail(at_ns, bit, bus);
        }
        if let Some(at) = transfer.descriptor {
            let _ = bus.write(DevAddr(at + manual::BD_STATUS), &manual::BD_COMPLETE.to_le_bytes());
        }
        self.tell(at_ns, &transfer);
    }

    /// Fetches the descriptor after `transfer`'s, if that was not the tail when it was fetched, or
    /// if a doorbell came since.
    fn go_on(&mut self, now_ns: u64, transfer: &Transfer, bus: &mut SimBus<'_>) {
        if transfer.descriptor.is_some() && self.has_work {
            self.fetch(now_ns, transfer.next, bus);
        }
    }

    /// As [`ends`](Self::ends), for a transfer that ends at once, fails, or waits for a FIFO.
    fn finish(&mut self, now_ns: u64, mut transfer: Transfer, bus: &mut SimBus<'_>) {
        let limit = if let Fate::Error(_) = transfer.fate {
            transfer.len_bytes / 2
        } else {
            transfer.len_bytes
        };
        let ran = transfer.run(limit, self.control, &mut self.fifo, bus);
        self.transfer = Some(transfer);
        match (ran, transfer.fate) {
            (Ok(_), Fate::Error(bit)) | (Err(bit), _) => return self.fail(now_ns, bit, bus),
            (Ok(true), _) => {}
            (Ok(false), _) => {
                self.transfer = Some(Transfer { ends_ns: now_ns + FIFO_NS, ..transfer });
                return;
            }
        }
        if let Some(at) = transfer.descriptor
            && bus
                .write(DevAddr(at + manual::BD_STATUS), &manual::BD_COMPLETE.to_le_bytes())
                .is_err()
        {
            return self.fail(now_ns, manual::SR_SG_DEC, bus);
        }
        self.transfer = None;
        self.next = transfer.next;
        self.tell(now_ns, &transfer);
        self.go_on(now_ns, &transfer, bus);
    }

    /// Reports a transfer that ended well: raises an interrupt, or counts towards one.
    fn tell(&mut self, now_ns: u64, transfer: &Transfer) {
        self.countdown = self.countdown.saturating_sub(1);
        let delay = u64::from(self.control >> manual::DELAY_SHIFT & manual::COUNT_MAX);
        self.delay_at_ns = (self.in_sg_mode() && delay > 0).then_some(now_ns + delay * DELAY_NS);
        if self.countdown == 0 || transfer.descriptor.is_none() {
            self.countdown = self.threshold();
            self.status |= manual::IRQ_IOC;
            self.raise(transfer.irq_delay_ns.map(|delay| now_ns + delay));
        }
    }

    pub(super) fn raise(&mut self, at_ns: Option<u64>) {
        if let Some(at_ns) = at_ns {
            self.line_at_ns = Some(self.line_at_ns.unwrap_or(u64::MAX).min(at_ns));
        }
    }

    /// Ends the reset. Memory holds the bytes that were moved by then.
    pub(super) fn reset_ends(&mut self, now_ns: u64, bus: &mut SimBus<'_>) {
        self.settle(bus);
        if let Some(mut transfer) = self.transfer
            && transfer.fate != Fate::Hang
        {
            let _ = transfer.run(transfer.moved_by(now_ns), self.control, &mut self.fifo, bus);
            // The core takes the status of the last burst, and masks its errors
            // (`axi_cdma_sg_cntlr.vhd`).
            if let Some(at) = transfer.descriptor.filter(|_| transfer.is_in_last_burst()) {
                let _ =
                    bus.write(DevAddr(at + manual::BD_STATUS), &manual::BD_COMPLETE.to_le_bytes());
            }
        }
        self.restart();
    }
}

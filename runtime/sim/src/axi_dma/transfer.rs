//! How a channel fetches descriptors and carries them out: bursts, statuses and interrupts.

use super::channel::Channel;
use super::fetch::{BURST_BYTES, FETCH_NS, Transfer};
use super::{CoreSpec, manual as pg021};
use crate::SimBus;
use crate::stream::{SimStream, StreamEnd, packet};
use contigo_core::types::DevAddr;
use contigo_drivers::axi_dma::Side;

/// From the last byte's arrival to the end of its write, and from there to that of the status.
const WRITE_NS: u64 = 150;
/// One word of MM2S's bus, as Vivado builds it.
const WORD_BYTES: usize = 4;
/// The time to the next poll of a stream that promised bytes and had none.
const RETRY_NS: u64 = 100;
/// 125 clocks of 100 MHz, the unit of IRQDelay.
const DELAY_UNIT_NS: u64 = 1_250;

impl Channel {
    /// Completes a fetch.
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
            ..Transfer::default()
        };
        // The core compares fetches with the tail (`axi_sg_ftch_pntr.vhd`, COMPARE_ADDRESS).
        (self.fetch.has_work, self.fetch.next) = (self.tail != at, address(pg021::BD_NEXT));
        if let Some(room) = self.fetch.queue.iter_mut().find(|place| place.is_none()) {
            *room = Some(transfer);
        }
        self.fetch.go_on(now_ns);
        self.begin_next(now_ns, spec, bus);
    }

    /// Begins the next fetched descriptor if the previous transfer is over.
    fn begin_next(&mut self, now_ns: u64, spec: &CoreSpec, bus: &mut SimBus<'_>) {
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

    /// Reports a fetch error at once. The transfer under way ends, and descriptors that were
    /// fetched ahead do not begin.
    fn fail_fetch(&mut self, now_ns: u64, at: u64, bit: u32) {
        (self.current, self.status) = (at, self.status | bit);
        self.control &= !pg021::CR_RS;
        self.raise(pg021::SR_ERR_IRQ, Some(now_ns));
        self.stop(now_ns);
    }

    /// When the interrupt's line rises, or an earlier time; it never rises before.
    pub(super) fn irq_at_ns(
        &self,
        stream: &SimStream,
        now_ns: u64,
        spec: &CoreSpec,
    ) -> Option<u64> {
        let enabled = self.control & pg021::SR_IRQ_ALL;
        let line = self.line_at_ns.filter(|_| self.status & enabled != 0);
        let late =
            |transfer: &Transfer| if self.packets_left <= 1 { transfer.irq_late_ns } else { None };
        let coming = self.transfer.as_ref().and_then(|transfer| {
            let begins_ns = transfer.burst_at_ns(self.side, stream, now_ns)?;
            let moves_ns = transfer.at_ns.saturating_add(spec.duration_ns(transfer.left()));
            let late_ns = if transfer.error != 0 { Some(0) } else { late(transfer) };
            Some(begins_ns.max(if self.side == Side::Mm2s { moves_ns } else { 0 }) + late_ns?)
        });
        let posted =
            self.posted.as_ref().and_then(|(at_ns, transfer)| Some(at_ns + late(transfer)?));
        let fetch = self.fetch.at_ns.filter(|_| self.transfer.is_none());
        [line, coming, posted, fetch, self.delay_at_ns]
            .into_iter()
            .flatten()
            .min()
            .filter(|_| enabled != 0)
    }

    /// Begins the next transfer, and decides how it will end.
    fn begin(&mut self, transfer: Transfer, spec: &CoreSpec, bus: &mut SimBus<'_>) {
        let faults = *bus.faults();
        let error = if bus.strikes(faults.error) { pg021::SR_DMA_SLV_ERR } else { 0 };
        let hangs = bus.strikes(faults.hang);
        // A loopback returns exactly what was sent.
        let may_end = matches!(spec.stream.end, StreamEnd::Source(_))
            && self.side == Side::S2mm
            && !self.in_packet;
        let short = may_end && bus.strikes(faults.short);
        let irq_late_ns = bus.irq_delay_ns(99_999);
        let short = short.then(|| transfer.len_bytes.div_ceil(3));
        self.transfer = Some(Transfer { error, hangs, short, irq_late_ns, ..transfer });
    }

    /// Handles a write of LENGTH.
    pub(super) fn start_direct(&mut self, length: u32, spec: &CoreSpec, bus: &mut SimBus<'_>) {
        if !self.runs || self.stops || self.transfer.is_some() {
            return;
        }
        (self.length, self.idle) = (length, false);
        if length == 0 {
            return;
        }
        let at_ns = bus.now_ns() + FETCH_NS;
        let transfer = Transfer {
            addr: self.addr,
            len_bytes: length as usize,
            at_ns,
            ends: self.side == Side::Mm2s,
            ..Transfer::default()
        };
        self.begin(transfer, spec, bus);
    }

    /// Moves one burst.
    pub(super) fn burst(
        &mut self,
        now_ns: u64,
        spec: &CoreSpec,
        stream: &mut SimStream,
        bus: &mut SimBus<'_>,
    ) {
        let Some(mut transfer) = self.transfer.take() else { return };
        let (at, mut bytes) = (DevAddr(transfer.addr + transfer.done as u64), [0; BURST_BYTES]);
        let (buffer, _) = bytes.split_at_mut(transfer.left().min(BURST_BYTES));
        let (moved, over, is_memory) = match self.side {
            Side::Mm2s => {
                let (buffer, _) = buffer.split_at_mut(buffer.len().min(stream.room_bytes()));
                let is_memory = bus.read_words(at, buffer, WORD_BYTES).is_ok();
                let last = transfer.ends && buffer.len() == transfer.left();
                let moved = if is_memory { stream.give(buffer, last) } else { 0 };
                (moved, moved == transfer.left(), is_memory)
            }
            Side::S2mm => {
                let taken = stream.take(now_ns, buffer);
                if self.discards {
                    self.discards = !taken.last;
                    transfer.at_ns = now_ns + if taken.bytes == 0 { RETRY_NS } else { 0 };
                    self.transfer = Some(transfer);
                    return;
                }
                let got = buffer.get(..taken.bytes).unwrap_or_default();
                if transfer.done == 0 && taken.bytes > 0 {
                    transfer.begins = !core::mem::replace(&mut self.in_packet, true);
                    if transfer.begins
                        && spec.error_at.is_some()
                        && packet::number(got) == spec.error_at
                        && self.error_at.is_none()
                    {
                        (transfer.error, self.error_at) = (pg021::SR_DMA_SLV_ERR, spec.error_at);
                    }
                }
                let is_memory = bus.write(at, got).is_ok();
                transfer.ends = taken.last;
                if !taken.last
                    && transfer.short.is_some_and(|short| transfer.done + taken.bytes >= short)
                {
                    (transfer.ends, self.discards) = (true, true);
                }
                (taken.bytes, transfer.ends || taken.bytes == transfer.left(), is_memory)
            }
        };
        transfer.done += moved;
        transfer.at_ns = now_ns + if moved == 0 { RETRY_NS } else { spec.duration_ns(moved) };
        if !is_memory {
            transfer.error = pg021::SR_DMA_DEC_ERR;
        } else if !over {
            self.transfer = Some(transfer);
            return;
        } else if !spec.sg && self.side == Side::S2mm && !transfer.ends {
            // The packet does not end within the buffer.
            transfer.error = pg021::SR_DMA_INT_ERR;
        }
        self.settle(now_ns, spec, bus);
        // This transfer has not been reported yet.
        self.idle = false;
        self.in_packet &= !(transfer.ends && self.side == Side::S2mm);
        if transfer.error != 0 {
            self.fetch.drop_all();
        }
        self.posted = Some((now_ns + WRITE_NS, transfer));
        self.begin_next(transfer.at_ns, spec, bus);
        self.halt_if_free(now_ns);
    }

    /// Reports the end of the transfer whose last byte was moved, if there is one.
    pub(super) fn settle(&mut self, now_ns: u64, spec: &CoreSpec, bus: &mut SimBus<'_>) {
        let Some((_, transfer)) = self.posted.take() else { return };
        let count = match self.side {
            // "On MM2S transferred bytes equals buffer length" (`axi_dma_mm2s_sg_if.vhd`).
            Side::Mm2s => transfer.given_bytes,
            Side::S2mm => u32::try_from(transfer.done).unwrap_or(0) & pg021::BD_BYTES,
        };
        if spec.sg {
            let frame = match self.side {
                Side::Mm2s => 0,
                Side::S2mm => {
                    (if transfer.begins { pg021::BD_RX_SOF } else { 0 })
                        | if transfer.ends { pg021::BD_RX_EOF } else { 0 }
                }
            };
            let error = match transfer.error {
                0 => 0,
                pg021::SR_DMA_DEC_ERR => pg021::BD_DEC_ERR,
                pg021::SR_DMA_SLV_ERR => pg021::BD_SLV_ERR,
                _ => pg021::BD_INT_ERR,
            };
            let status = pg021::BD_CMPLT | frame | count | error;
            if bus
                .write(
                    DevAddr(transfer.descriptor + pg021::BD_STATUS as u64),
                    &status.to_le_bytes(),
                )
                .is_err()
            {
                return self.fail(now_ns, pg021::SR_SG_DEC_ERR, spec, bus);
            }
        } else if self.side == Side::S2mm && transfer.error == 0 {
            self.length = count;
        }
        if transfer.error != 0 {
            return self.fail(now_ns, transfer.error, spec, bus);
        }
        self.idle = self.transfer.is_none() && self.fetch.is_idle();
        self.written += 1;
        if !transfer.ends && spec.sg {
            return;
        }
        self.packets_left = self.packets_left.saturating_sub(1);
        if self.packets_left == 0 || !spec.sg {
            self.packets_left = self.threshold();
            self.delay_at_ns = None;
            self.raise(pg021::SR_IOC_IRQ, transfer.irq_late_ns.map(|late_ns| now_ns + late_ns));
        } else if self.delay() > 0 {
            self.delay_at_ns = Some(now_ns + u64::from(self.delay()) * DELAY_UNIT_NS);
        }
    }

    pub(super) fn raise(&mut self, bit: u32, line_at_ns: Option<u64>) {
        self.status |= bit;
        self.line_at_ns = [self.line_at_ns, line_at_ns].into_iter().flatten().min();
    }

    /// Halts the channel with an error. The previous transfer is reported first.
    fn fail(&mut self, now_ns: u64, bit: u32, spec: &CoreSpec, bus: &mut SimBus<'_>) {
        self.settle(now_ns, spec, bus);
        self.halted();
        self.status |= bit;
        // PG021, DMACR, RS: the core clears it on an error.
        self.control &= !pg021::CR_RS;
        self.raise(pg021::SR_ERR_IRQ, Some(now_ns));
    }
}

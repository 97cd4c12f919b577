#![allow(unsafe_code, reason = "a device that lies about being finished corrupts memory, also a simulated one")]
//! The model: an AXI DMA's receive channel with scatter-gather, and the camera in front of it.

use super::{
    config::{CameraConfig, CameraCounts},
    line::{Line, Reception},
    manual as pg021,
};
use contigo::{
    DevAddr,
    sim::{Model, SimBus},
};

/// From the first run to the first packet: what a sensor's trigger takes.
const TRIGGER_NS: u64 = 1_000;
/// From the last byte's arrival to the end of its write and of the status after it.
const WRITE_NS: u64 = 150;
/// From a cleared RS to the end of the bursts under way, and what a reset takes.
const HALT_NS: u64 = 300;

/// The camera and its channel.
#[derive(Debug)]
pub struct CameraModel {
    config: CameraConfig,
    counts: CameraCounts,
    /// The number of the next packet.
    number: u32,
    channel: Channel,
    line: Line,
    /// A packet whose last byte arrived, and whose write is under way.
    posted: Option<(u64, Reception)>,
    /// RS was cleared or Reset set: when the channel halts.
    halts_at_ns: Option<u64>,
    irq_at_ns: Option<u64>,
}

/// The channel's registers, and where it is in its list.
#[derive(Debug)]
struct Channel {
    /// DMACR, without the bit that is always 1.
    control: u32,
    /// Everything of DMASR except for Halted and Idle.
    status: u32,
    runs: bool,
    idle: bool,
    current: u32,
    tail: u32,
    /// The next descriptor to fetch.
    next: u32,
    /// The tail has not been reached.
    has_work: bool,
}

impl Default for Channel {
    /// After a reset.
    fn default() -> Self {
        let (control, status, current, tail, next) = (pg021::THRESHOLD_RESET, 0, 0, 0, 0);
        Self { control, status, runs: false, idle: false, current, tail, next, has_work: false }
    }
}

impl Default for CameraModel {
    fn default() -> Self {
        Self::new(CameraConfig::default())
    }
}

impl CameraModel {
    /// A camera like `config`.
    #[must_use]
    pub fn new(config: CameraConfig) -> Self {
        let (counts, channel) = (CameraCounts::default(), Channel::default());
        Self { config, counts, number: 0, channel, line: Line::Silent, posted: None, halts_at_ns: None, irq_at_ns: None }
    }

    /// How many packets ended in each way so far.
    #[must_use]
    pub const fn counts(&self) -> CameraCounts {
        self.counts
    }

    /// How many packets began so far, the lost ones included.
    #[must_use]
    pub const fn sent(&self) -> u32 {
        self.number
    }

    const fn duration_ns(&self, bytes: u64) -> u64 {
        bytes * 1_000 / self.config.bytes_per_us
    }

    fn len_bytes(&self, bus: &mut SimBus<'_>) -> usize {
        let short = self.config.short_every.is_some_and(|every| self.number.is_multiple_of(every)) || bus.strikes(bus.faults().short);
        if short { self.config.packet_bytes / 12 * 4 } else { self.config.packet_bytes }
    }

    /// When the next thing happens.
    fn next_at_ns(&self) -> Option<u64> {
        let line = match self.line {
            Line::Silent => None,
            Line::Begins { at_ns, waits: false } => Some(at_ns),
            Line::Begins { at_ns, waits: true } => Some(at_ns + self.duration_ns(self.config.fifo_bytes)),
            Line::Arrives { end_ns, .. } => Some(end_ns),
        };
        [line, self.posted.map(|(at_ns, _)| at_ns), self.halts_at_ns].into_iter().flatten().min()
    }

    /// The thing that happens at `now_ns`.
    fn happen(&mut self, now_ns: u64, bus: &mut SimBus<'_>) {
        if let Some((at_ns, reception)) = self.posted
            && at_ns <= now_ns
        {
            self.posted = None;
            return self.written(now_ns, &reception, bus);
        }
        if self.halts_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            return self.halted(now_ns, bus);
        }
        match self.line {
            Line::Begins { at_ns, waits: false } => {
                self.line = Line::Begins { at_ns, waits: true };
                self.receive(now_ns, bus);
            }
            Line::Begins { at_ns, waits: true } => {
                self.counts.lost += 1;
                self.go_on(at_ns + self.duration_ns(self.config.packet_bytes as u64));
            }
            Line::Arrives { end_ns, reception, .. } => {
                self.channel.next = reception.next;
                self.channel.has_work = self.channel.tail != reception.descriptor;
                if self.channel.has_work {
                    self.channel.current = reception.next;
                }
                self.posted = Some((end_ns + WRITE_NS, reception));
                self.go_on(end_ns);
            }
            Line::Silent => {}
        }
    }

    /// The packet is over, at `end_ns`: the next one.
    fn go_on(&mut self, end_ns: u64) {
        self.number = self.number.wrapping_add(1);
        let more = self.number < self.config.packets;
        self.line = if more { Line::Begins { at_ns: end_ns + self.config.gap_ns, waits: false } } else { Line::Silent };
    }

    /// A packet waits: is there a buffer for it?
    fn receive(&mut self, now_ns: u64, bus: &mut SimBus<'_>) {
        let Line::Begins { at_ns, waits: true } = self.line else { return };
        if !self.channel.runs || !self.channel.has_work || self.halts_at_ns.is_some() {
            return;
        }
        let len_bytes = self.len_bytes(bus);
        match self.fetch(len_bytes, bus) {
            Ok((next, buffer)) => {
                let fails = self.config.error_at == Some(self.number) || bus.strikes(bus.faults().error);
                let hangs = bus.strikes(bus.faults().hang);
                let (number, descriptor) = (self.number, self.channel.current);
                let reception = Reception { number, len_bytes, descriptor, next, buffer, fails };
                let end_ns = if hangs { u64::MAX - WRITE_NS } else { at_ns.max(now_ns) + self.duration_ns(len_bytes as u64) };
                self.line = Line::Arrives { begin_ns: at_ns.max(now_ns), end_ns, reception };
            }
            Err(bit) => self.fail(now_ns, bit, bus),
        }
    }

    /// The next descriptor: what follows it, and its buffer. `Err`: the bit of DMASR.
    fn fetch(&mut self, len_bytes: usize, bus: &mut SimBus<'_>) -> Result<(u32, u64), u32> {
        self.channel.current = self.channel.next;
        let at = u64::from(self.channel.current);
        let mut bytes = [0; 32];
        if at % pg021::BD_ALIGN != 0 || bus.read(DevAddr(at), &mut bytes).is_err() {
            return Err(pg021::SR_SG_DEC_ERR);
        }
        let word = |index: usize| bytes.as_chunks().0.get(index).map_or(0, |word| u32::from_le_bytes(*word));
        if word(7) & pg021::BD_CMPLT != 0 {
            return Err(pg021::SR_SG_INT_ERR);
        }
        // A packet over several descriptors is no matter of this model.
        if ((word(6) & pg021::BD_BYTES) as usize) < len_bytes {
            return Err(pg021::SR_DMA_INT_ERR);
        }
        Ok((word(0), u64::from(word(2)) | u64::from(word(3)) << 32))
    }

    /// The packet's bytes, then the status of its descriptor, which says an error too.
    fn written(&mut self, now_ns: u64, reception: &Reception, bus: &mut SimBus<'_>) {
        let error = if reception.fails {
            Some((pg021::BD_SLV_ERR, pg021::SR_DMA_SLV_ERR))
        } else {
            reception.put(reception.len_bytes, bus).is_err().then_some((pg021::BD_DEC_ERR, pg021::SR_DMA_DEC_ERR))
        };
        let count = u32::try_from(reception.len_bytes).unwrap_or(u32::MAX) & pg021::BD_BYTES;
        let status = pg021::BD_CMPLT | pg021::BD_SOF | pg021::BD_EOF | count | error.map_or(0, |(bit, _)| bit);
        let told = bus.write(DevAddr(u64::from(reception.descriptor) + pg021::BD_STATUS), &status.to_le_bytes());
        if let Some((_, bit)) = error {
            self.counts.cut += 1;
            return self.fail(now_ns, bit, bus);
        }
        if told.is_err() {
            return self.fail(now_ns, pg021::SR_SG_DEC_ERR, bus);
        }
        self.counts.written += 1;
        self.channel.idle = !self.channel.has_work;
        self.channel.status |= pg021::SR_IOC_IRQ;
        if !bus.strikes(bus.faults().lost_irq) {
            let late_ns = if bus.strikes(bus.faults().late_irq) { 10 * self.duration_ns(self.config.packet_bytes as u64) } else { 0 };
            self.irq_at_ns = Some(self.irq_at_ns.unwrap_or(u64::MAX).min(now_ns + late_ns));
        }
    }

    /// An error halts the channel. A packet that arrived before is written first.
    fn fail(&mut self, now_ns: u64, bit: u32, bus: &mut SimBus<'_>) {
        if let Some((_, before)) = self.posted.take() {
            self.written(now_ns, &before, bus);
        }
        self.cut();
        self.channel.status |= bit | pg021::SR_ERR_IRQ;
        // PG021, S2MM_DMACR, RS: "cleared by AXI DMA hardware when an error occurs".
        self.channel.control &= !pg021::CR_RS;
        (self.channel.runs, self.channel.has_work, self.channel.idle) = (false, false, false);
        self.irq_at_ns = Some(now_ns);
    }

    /// The packet under way is lost, and the camera waits for its trigger.
    fn cut(&mut self) {
        if let Line::Arrives { .. } | Line::Begins { waits: true, .. } = self.line {
            self.counts.cut += 1;
            self.number = self.number.wrapping_add(1);
        }
        if let Some((_, _)) = self.posted.take() {
            self.counts.cut += 1;
        }
        self.line = Line::Silent;
    }

    /// The channel halts. The bytes of a packet that arrived until then are in its buffer.
    fn halted(&mut self, now_ns: u64, bus: &mut SimBus<'_>) {
        if let Line::Arrives { begin_ns, reception, .. } = self.line {
            let arrived = (now_ns - begin_ns.min(now_ns)) * self.config.bytes_per_us / 1_000;
            let _ = reception.put(usize::try_from(arrived).unwrap_or(usize::MAX), bus);
        }
        self.halts_at_ns = None;
        self.cut();
        if self.channel.control & pg021::CR_RESET != 0 {
            self.channel = Channel::default();
            self.irq_at_ns = None;
        }
        (self.channel.runs, self.channel.has_work, self.channel.idle) = (false, false, false);
    }

    fn control(&mut self, value: u32, bus: &mut SimBus<'_>) {
        let now_ns = bus.now_ns();
        let ran = self.channel.runs;
        self.channel.control = value;
        if value & pg021::CR_RESET != 0 || value & pg021::CR_RS == 0 && ran {
            // The write under way ends first.
            let written_ns = self.posted.map_or(0, |(at_ns, _)| at_ns);
            self.config.stuck |= ran && bus.strikes(bus.faults().stuck);
            if !(ran && self.config.stuck) {
                self.halts_at_ns = Some((now_ns + HALT_NS).max(written_ns));
            }
        } else if value & pg021::CR_RS != 0 && !ran {
            (self.channel.runs, self.channel.next) = (true, self.channel.current);
            self.line = match self.number < self.config.packets {
                true => Line::Begins { at_ns: now_ns + TRIGGER_NS, waits: false },
                false => Line::Silent,
            };
        }
    }

    fn doorbell(&mut self, value: u32, bus: &mut SimBus<'_>) {
        self.channel.tail = value;
        if !self.channel.runs {
            return;
        }
        if self.channel.idle {
            self.counts.ran_dry += 1;
        }
        (self.channel.has_work, self.channel.idle) = (true, false);
        self.receive(bus.now_ns(), bus);
    }
}

// SAFETY: it touches the descriptors from CURDESC to TAILDESC and the buffers that they name, each
// until its status is written, and nothing while it is halted.
unsafe impl Model for CameraModel {
    const WINDOW_BYTES: usize = pg021::END;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        // Each packet is three things at most, and takes its time.
        while let Some(at_ns) = self.next_at_ns().filter(|&at_ns| at_ns <= bus.now_ns()) {
            self.happen(at_ns, bus);
        }
    }

    fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
        match offset {
            pg021::DMACR => self.channel.control | pg021::CR_ALWAYS,
            pg021::DMASR => {
                let state = if self.channel.runs { 0 } else { pg021::SR_HALTED };
                let threshold = self.channel.control & pg021::THRESHOLD;
                self.channel.status | threshold | pg021::SR_SG_INCLUDED | state | if self.channel.idle { pg021::SR_IDLE } else { 0 }
            }
            pg021::CURDESC => self.channel.current,
            pg021::TAILDESC => self.channel.tail,
            _ => 0,
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match offset {
            pg021::DMACR => self.control(value, bus),
            pg021::DMASR => {
                self.channel.status &= !(value & (pg021::SR_IOC_IRQ | pg021::SR_ERR_IRQ));
                if self.channel.status & (pg021::SR_IOC_IRQ | pg021::SR_ERR_IRQ) == 0 {
                    self.irq_at_ns = None;
                }
            }
            pg021::CURDESC if !self.channel.runs => self.channel.current = value,
            pg021::TAILDESC => self.doorbell(value, bus),
            _ => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        let enabled = self.channel.control & (pg021::CR_IOC_IRQ_EN | pg021::CR_ERR_IRQ_EN) != 0;
        // The packet under way may raise it: an earlier look does no harm.
        let coming = if self.channel.has_work || self.posted.is_some() { self.next_at_ns() } else { None };
        [self.irq_at_ns, coming].into_iter().flatten().min().filter(|_| enabled)
    }

    fn reset(&mut self) {
        self.cut();
        (self.channel, self.halts_at_ns, self.irq_at_ns) = (Channel::default(), None, None);
        self.config.stuck = false;
    }
}

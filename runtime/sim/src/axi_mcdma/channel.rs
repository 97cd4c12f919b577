//! One channel: the descriptors that it has fetched, and its progress in the first of them.

use super::manual as pg288;
use crate::SimBus;
use crate::stream::SimStream;
use contigo_core::types::DevAddr;
use heapless::Deque;

/// How many descriptors a channel fetches ahead.
const PREFETCH: usize = 4;
/// From the doorbell to the first burst.
const LATENCY_NS: u64 = 200;
/// One burst on the data port.
const BURST_BYTES: usize = 256;
/// The time of one burst: 800 MB/s.
const BURST_NS: u64 = 320;
/// One word of MM2S's bus, as Vivado builds it.
const WORD_BYTES: usize = 4;
/// From the last byte to the end of its write, and from there to the write of the status.
const WRITE_NS: u64 = 150;

/// A descriptor that was fetched.
#[derive(Clone, Copy, Debug)]
struct Fetched {
    at: u64,
    buffer: u64,
    control: u32,
}

impl Fetched {
    const fn len_bytes(&self) -> usize {
        (self.control & pg288::BD_BYTES) as usize
    }
}

/// How the descriptor at the head will end.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    drawn: bool,
    fails: bool,
    hangs: bool,
    /// It ends after this many bytes, even if bytes are left.
    ends_after: Option<usize>,
}

/// A channel of either direction.
#[derive(Debug, Default)]
pub(super) struct Channel {
    /// Its direction, 0 or 1, and its number.
    direction: usize,
    number: usize,
    /// The bits of its length register.
    length_mask: u32,
    pub(super) control: u32,
    /// Interrupts that the driver has not acknowledged.
    pub(super) raised: u32,
    pub(super) current: u64,
    pub(super) tail: u64,
    /// The next descriptor to fetch.
    next: u64,
    /// The descriptor at the tail has not been fetched yet.
    has_more: bool,
    queue: Deque<Fetched, PREFETCH>,
    /// Bytes moved for the descriptor at the head.
    moved: usize,
    fate: Fate,
    not_before_ns: u64,
    /// When to write the status of that descriptor, and its bits.
    posts: Option<(u64, u32)>,
    /// A packet has begun and not ended.
    pub(super) in_packet: bool,
    /// The packet's first byte is in the descriptor at the head.
    first_here: bool,
    /// The rest of the current packet is discarded.
    dropping: bool,
    /// The packet is discarded because it was cut short; it has been counted already.
    rest: bool,
    pub(super) dropped: u16,
    pub(super) irq_at_ns: Option<u64>,
}

/// The result of a channel's step.
pub(super) enum Step {
    Nothing,
    /// A packet ended: it was dropped, or moved to memory.
    Dropped,
    Done,
    /// An error, with its bit in the Error Register.
    Failed(u32),
}

impl Channel {
    pub(super) fn new(direction: usize, number: usize, length_mask: u32) -> Self {
        let control = pg288::CR_RESET_VALUE;
        Self { direction, number, length_mask, control, ..Self::default() }
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Its status register.
    pub(super) fn status(&self) -> u32 {
        let empty = self.queue.is_empty();
        let idle = if empty && !self.has_more { pg288::SR_IDLE } else { 0 };
        let short = if empty && self.in_packet { pg288::SR_SHORTFALL } else { 0 };
        self.raised | idle | short
    }

    /// Handles a write to CURDESC, which counts only while the channel does not fetch.
    pub(super) fn point(&mut self, current: u64) {
        if self.control & pg288::RUNSTOP == 0 {
            (self.current, self.next) = (current, current);
        }
    }

    /// Rings the doorbell; `runs` is whether the direction runs.
    pub(super) fn ring(&mut self, runs: bool, bus: &mut SimBus<'_>) -> Step {
        if !runs || self.control & pg288::RUNSTOP == 0 {
            return Step::Nothing;
        }
        if self.queue.is_empty() {
            self.not_before_ns = self.not_before_ns.max(bus.now_ns() + LATENCY_NS);
        }
        self.has_more = true;
        self.fetch(bus)
    }

    fn fetch(&mut self, bus: &mut SimBus<'_>) -> Step {
        while self.has_more && !self.queue.is_full() && self.control & pg288::RUNSTOP != 0 {
            let at = self.next;
            let mut bytes = [0; 52];
            if !at.is_multiple_of(pg288::BD_ALIGN) || bus.read(DevAddr(at), &mut bytes).is_err() {
                self.current = at;
                return Step::Failed(pg288::ERR_SG_DEC);
            }
            let word = |index: usize| {
                bytes.as_chunks().0.get(index).map_or(0, |word| u32::from_le_bytes(*word))
            };
            let address = |index: usize| u64::from(word(index + 1)) << 32 | u64::from(word(index));
            self.current = at;
            if word(if self.direction == 0 { 7 } else { 6 }) & pg288::BD_COMPLETE != 0 {
                return Step::Failed(pg288::ERR_SG_INT);
            }
            // There is room: the loop checked.
            let _ = self.queue.push_back(Fetched {
                at,
                buffer: address(pg288::BD_BUFFER),
                control: word(pg288::BD_CTRL) & (!pg288::BD_BYTES | self.length_mask),
            });
            self.next = address(pg288::BD_NEXT);
            self.has_more = at != self.tail;
        }
        Step::Nothing
    }

    /// When the next step is due, if the direction `runs`. A write that has begun always ends.
    pub(super) fn due_ns(
        &self,
        runs: bool,
        enabled: bool,
        now_ns: u64,
        stream: &SimStream,
    ) -> Option<u64> {
        if let Some((at_ns, _)) = self.posts {
            return Some(at_ns);
        }
        if !runs || self.fate.hangs {
            return None;
        }
        if self.direction == 0 {
            return (enabled && !self.queue.is_empty()).then_some(self.not_before_ns);
        }
        if self.in_packet && self.queue.is_empty() {
            return None;
        }
        let want = self
            .queue
            .front()
            .map_or(BURST_BYTES, |bd| (bd.len_bytes() - self.moved).min(BURST_BYTES));
        stream.ready_at_ns(now_ns, want).map(|at_ns| at_ns.max(self.not_before_ns))
    }

    /// Does the step that is due at `now_ns`.
    pub(super) fn step(
        &mut self,
        now_ns: u64,
        enabled: bool,
        stream: &mut SimStream,
        bus: &mut SimBus<'_>,
    ) -> Step {
        if let Some((at_ns, status)) = self.posts
            && at_ns <= now_ns
        {
            self.posts = None;
            return self.post(status, bus);
        }
        self.not_before_ns = now_ns + BURST_NS;
        if self.direction == 1
            && (self.dropping || !self.in_packet && (self.queue.is_empty() || !enabled))
        {
            return self.drop_packet(now_ns, stream);
        }
        let Some(bd) = self.queue.front().copied() else { return Step::Nothing };
        if !self.fate.drawn {
            self.draw(&bd, bus);
        }
        if bd.len_bytes() == 0 {
            return Step::Failed(pg288::ERR_INTERNAL);
        }
        if self.fate.hangs {
            return Step::Nothing;
        }
        let burst = (self.fate.ends_after.unwrap_or(usize::MAX).min(bd.len_bytes()) - self.moved)
            .min(BURST_BYTES);
        let moved = if self.direction == 0 {
            self.send(&bd, burst, stream, bus)
        } else {
            self.receive(now_ns, &bd, burst, stream, bus)
        };
        match moved {
            Ok(Some(status)) => {
                let error = if self.fate.fails { pg288::BD_SLV_ERR } else { 0 };
                self.posts = Some((now_ns + WRITE_NS, status | error));
                Step::Nothing
            }
            Ok(None) => Step::Nothing,
            Err(()) => {
                self.posts = None;
                let status = self.count() | pg288::BD_DEC_ERR;
                self.post(status, bus)
            }
        }
    }

    fn draw(&mut self, bd: &Fetched, bus: &mut SimBus<'_>) {
        let (fails, hangs) = (bus.strikes(bus.faults().error), bus.strikes(bus.faults().hang));
        let short = self.direction == 1 && bus.strikes(bus.faults().short);
        self.fate = Fate {
            drawn: true,
            fails,
            hangs,
            ends_after: short.then_some((bd.len_bytes() / 3).max(1)),
        };
    }

    fn count(&self) -> u32 {
        u32::try_from(self.moved).unwrap_or(u32::MAX) & pg288::BD_BYTES
    }

    /// Sends a burst of at most `burst` bytes. `Some`: it was the descriptor's last burst.
    fn send(
        &mut self,
        bd: &Fetched,
        burst: usize,
        stream: &mut SimStream,
        bus: &mut SimBus<'_>,
    ) -> Result<Option<u32>, ()> {
        let mut bytes = [0; BURST_BYTES];
        let (bytes, _) = bytes.split_at_mut(burst.min(stream.room_bytes()));
        bus.read_words(DevAddr(bd.buffer + self.moved as u64), bytes, WORD_BYTES)
            .map_err(|_| ())?;
        let over = self.moved + bytes.len() == bd.len_bytes();
        self.moved += stream.give(bytes, over && bd.control & pg288::BD_CTRL_EOF != 0);
        Ok((self.moved == bd.len_bytes()).then(|| self.count()))
    }

    /// Receives at most `burst` bytes. `Some`: they end the descriptor or the packet.
    fn receive(
        &mut self,
        now_ns: u64,
        bd: &Fetched,
        burst: usize,
        stream: &mut SimStream,
        bus: &mut SimBus<'_>,
    ) -> Result<Option<u32>, ()> {
        let mut bytes = [0; BURST_BYTES];
        let (bytes, _) = bytes.split_at_mut(burst);
        let taken = stream.take(now_ns, bytes);
        bus.write(
            DevAddr(bd.buffer + self.moved as u64),
            bytes.get(..taken.bytes).unwrap_or_default(),
        )
        .map_err(|_| ())?;
        if taken.bytes == 0 {
            return Ok(None);
        }
        let first = if self.in_packet { 0 } else { pg288::BD_RXSOF };
        self.moved += taken.bytes;
        let short = self.fate.ends_after == Some(self.moved) && self.moved < bd.len_bytes();
        if short && !taken.last {
            (self.dropping, self.rest) = (true, true);
        }
        let last = taken.last || short;
        if !last && self.moved < bd.len_bytes() {
            // RXSOF belongs to the descriptor with the first byte, and is reported at its end.
            self.first_here |= first != 0;
            self.in_packet = true;
            return Ok(None);
        }
        let first = if core::mem::take(&mut self.first_here) { pg288::BD_RXSOF } else { first };
        self.in_packet = !last;
        Ok(Some(self.count() | first | if last { pg288::BD_RXEOF } else { 0 }))
    }

    /// Discards what arrives, and counts the packet at its end.
    fn drop_packet(&mut self, now_ns: u64, stream: &mut SimStream) -> Step {
        let taken = stream.take(now_ns, &mut [0; BURST_BYTES]);
        self.dropping = !taken.last;
        if !taken.last {
            return Step::Nothing;
        }
        if core::mem::take(&mut self.rest) {
            return Step::Nothing;
        }
        self.dropped = self.dropped.wrapping_add(1);
        self.raised |= pg288::IRQ_PKTDROP;
        Step::Dropped
    }

    /// Writes the status of the descriptor at the head.
    fn post(&mut self, status: u32, bus: &mut SimBus<'_>) -> Step {
        let Some(bd) = self.queue.pop_front() else { return Step::Nothing };
        (self.moved, self.fate) = (0, Fate::default());
        let errors = status & (pg288::BD_SLV_ERR | pg288::BD_DEC_ERR | pg288::BD_INT_ERR);
        let mut words = [0; 8];
        let (first, second) = words.split_at_mut(4);
        first.copy_from_slice(&(status | pg288::BD_COMPLETE).to_le_bytes());
        // TUSER and TID hold the channel's number here.
        let number = u32::try_from(self.number).unwrap_or(0);
        second.copy_from_slice(
            &(number << 24 | number << pg288::SIDEBAND_TDEST_SHIFT | number).to_le_bytes(),
        );
        let (at, len) = (
            bd.at + pg288::BD_STS.get(self.direction).copied().unwrap_or(0),
            if self.direction == 0 { 4 } else { 8 },
        );
        if bus.write(DevAddr(at), words.get(..len).unwrap_or_default()).is_err() {
            return Step::Failed(pg288::ERR_SG_DEC);
        }
        if errors != 0 {
            return Step::Failed(if errors & pg288::BD_DEC_ERR != 0 {
                pg288::ERR_DECODE
            } else {
                pg288::ERR_SLAVE
            });
        }
        if self.direction == 0 || status & pg288::BD_RXEOF != 0 {
            self.raise(pg288::IRQ_IOC, bus);
        }
        match self.fetch(bus) {
            Step::Nothing => Step::Done,
            failed => failed,
        }
    }

    /// Raises an interrupt, sometimes late, and sometimes only in the register.
    pub(super) fn raise(&mut self, bit: u32, bus: &mut SimBus<'_>) {
        self.raised |= bit;
        if !bus.strikes(bus.faults().lost_irq) {
            let late_ns = if bus.strikes(bus.faults().late_irq) {
                10 * 4096 * BURST_NS / BURST_BYTES as u64
            } else {
                0
            };
            self.irq_at_ns = Some(self.irq_at_ns.unwrap_or(u64::MAX).min(bus.now_ns() + late_ns));
        }
    }

    /// When the interrupt rises, or rose.
    pub(super) fn interrupt_ns(&self) -> Option<u64> {
        self.irq_at_ns.filter(|_| self.raised & self.control & pg288::IRQ_ALL != 0)
    }

    /// Acknowledges interrupts.
    pub(super) const fn acknowledge(&mut self, bits: u32) {
        self.raised &= !(bits & pg288::IRQ_ALL);
        if self.raised & self.control & pg288::IRQ_ALL == 0 {
            self.irq_at_ns = None;
        }
    }
}

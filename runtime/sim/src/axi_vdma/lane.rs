//! One channel: its registers, and the frame under way.

use super::{AxiVdmaSpec, manual};
use crate::SimBus;
use crate::faults::{Fate, GARBAGE};
use crate::stream::SimStream;
use contigo_core::types::DevAddr;

/// The most bytes moved in one step.
pub(super) const BURST_BYTES: usize = 256;
/// A word of MM2S's bus, as Vivado builds it.
const WORD_BYTES: usize = 8;
/// How many bytes MM2S moves in a nanosecond.
const BYTES_PER_NS: u64 = 2;
/// From VSIZE to the first byte of MM2S.
const LATENCY_NS: u64 = 300;
/// The time between two polls of a stream that makes the channel wait.
const STREAM_NS: u64 = 1_000;
/// From the last byte to the end of its write, and to Halted.
const HALT_NS: u64 = 200;
/// How long the channel stays halted after RS is set; until then it ignores a VSIZE.
const LAG_NS: u64 = 150;
/// From a reset to its end.
const RESET_NS: u64 = 300;
/// The most frame stores.
const STORES: usize = 32;

/// A frame under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    addr: u64,
    /// Bytes moved of the whole frame.
    moved: usize,
    /// MM2S: when the next burst is due.
    due_ns: u64,
    fate: Fate,
    irq_delay_ns: Option<u64>,
    /// The last burst, written when the channel halts.
    last: Option<(u64, [u8; BURST_BYTES], usize)>,
}

/// How many registers the start addresses have.
const fn built(spec: &AxiVdmaSpec) -> usize {
    if spec.address_bits > 32 { 2 * spec.frame_stores } else { spec.frame_stores }
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    receives: bool,
    control: u32,
    status: u32,
    sizes: [u32; 3],
    high_bank: bool,
    stores: [u32; STORES],
    /// The next frame store.
    store: usize,
    frame: Option<Frame>,
    halted: bool,
    /// When the channel leaves Halted after RS was set.
    lags_until_ns: u64,
    halts_at_ns: Option<u64>,
    resets_at_ns: Option<u64>,
    line_at_ns: Option<u64>,
    /// The stream is in the middle of a frame whose rest is dropped.
    mid_frame: bool,
    now_ns: u64,
}

impl Lane {
    pub(super) fn new(receives: bool) -> Self {
        Self { receives, control: 1 << manual::COUNT_SHIFT, halted: true, ..Self::default() }
    }

    const fn size(&self, at: usize) -> u32 {
        let [vsize, hsize, stride] = self.sizes;
        match at {
            manual::VSIZE => vsize & manual::VSIZE_MASK,
            manual::HSIZE => hsize & manual::HSIZE_MASK,
            _ => stride & manual::HSIZE_MASK,
        }
    }

    const fn frame_bytes(&self) -> usize {
        self.size(manual::VSIZE) as usize * self.size(manual::HSIZE) as usize
    }

    fn is_stuck(&self) -> bool {
        self.frame.is_some_and(|frame| frame.fate == Fate::Stuck)
    }

    const fn is_halted(&self) -> bool {
        self.halted || self.now_ns < self.lags_until_ns
    }

    /// Reads a register of the first block.
    pub(super) fn read(&self, at: usize) -> u32 {
        match at {
            manual::CR => self.control,
            manual::SR => {
                self.status
                    | 1 << manual::COUNT_SHIFT
                    | if self.is_halted() { manual::SR_HALTED } else { 0 }
            }
            manual::INDEX => self.high_bank.into(),
            _ => 0,
        }
    }

    /// Reads a register of the second block.
    pub(super) fn read_size(&self, at: usize) -> u32 {
        match at {
            manual::VSIZE | manual::HSIZE | manual::STRIDE => self.size(at),
            _ => self.stores.get(self.register(at)).copied().unwrap_or(0),
        }
    }

    fn register(&self, at: usize) -> usize {
        at.saturating_sub(manual::START) / 4 + if self.high_bank { manual::BANK } else { 0 }
    }

    pub(super) fn write(&mut self, at: usize, value: u32, spec: &AxiVdmaSpec, bus: &SimBus<'_>) {
        let now_ns = bus.now_ns();
        match at {
            manual::CR if value & manual::CR_RESET != 0 => {
                self.control |= manual::CR_RESET;
                if !self.is_stuck() {
                    self.resets_at_ns = Some(now_ns + RESET_NS);
                }
            }
            manual::CR => {
                let starts = value & manual::CR_RUN != 0 && self.halted;
                self.control = value & !manual::CR_RESET;
                if starts {
                    (self.halted, self.lags_until_ns) = (false, now_ns + LAG_NS);
                } else if value & manual::CR_RUN == 0 && !self.halted {
                    self.halts_at_ns = Some(now_ns + HALT_NS);
                }
            }
            manual::SR => {
                const CLEARS: u32 = manual::IRQ_FRAMES
                    | manual::IRQ_DELAY
                    | manual::IRQ_ERROR
                    | manual::SR_SOF_EARLY
                    | manual::SR_EOL_EARLY
                    | manual::SR_SOF_LATE
                    | manual::SR_EOL_LATE
                    | manual::SR_INTERNAL;
                self.status &= !(value & CLEARS);
                if self.status & (manual::IRQ_FRAMES | manual::IRQ_ERROR) == 0 {
                    self.line_at_ns = None;
                }
            }
            // The register exists only if one bank is too small.
            manual::INDEX => self.high_bank = value & 1 != 0 && built(spec) > manual::BANK,
            _ => {}
        }
    }

    pub(super) fn write_size(
        &mut self,
        at: usize,
        value: u32,
        spec: &AxiVdmaSpec,
        bus: &mut SimBus<'_>,
    ) {
        if at >= manual::START {
            let register = self.register(at);
            if let Some(store) = self.stores.get_mut(register).filter(|_| register < built(spec)) {
                *store = value;
            }
        } else if let Some(size) = self.sizes.get_mut(at / 4) {
            *size = value;
        }
        if at == manual::VSIZE
            && self.control & manual::CR_RUN != 0
            && !self.is_halted()
            && self.frame.is_none()
        {
            self.begin(spec, bus);
        }
    }

    /// The address of frame store `store`.
    fn address(&self, store: usize, spec: &AxiVdmaSpec) -> u64 {
        let word = |at: usize| u64::from(self.stores.get(at).copied().unwrap_or(0));
        if spec.address_bits > 32 {
            word(2 * store + 1) << 32 | word(2 * store)
        } else {
            word(store)
        }
    }

    fn begin(&mut self, spec: &AxiVdmaSpec, bus: &mut SimBus<'_>) {
        let now_ns = bus.now_ns();
        let addr = self.address(self.store, spec);
        if self.control & manual::CR_CIRCULAR != 0 {
            self.store = (self.store + 1) % spec.frame_stores.max(1);
        }
        let fate = match bus.fate() {
            Fate::Good if bus.strikes(bus.faults().error) => {
                let bits = [manual::SR_INTERNAL, manual::SR_SLAVE, manual::SR_DECODE];
                let bit = bits.get(bus.rng().usize(..3)).copied();
                Fate::Error(bit.unwrap_or(manual::SR_INTERNAL))
            }
            fate => fate,
        };
        let irq_delay_ns = bus.irq_delay_ns(19_999);
        self.frame = Some(Frame {
            addr,
            moved: 0,
            due_ns: now_ns + LATENCY_NS,
            fate,
            irq_delay_ns,
            last: None,
        });
        let word = u64::from(spec.data_bits / 8);
        let [hsize, stride] = [manual::HSIZE, manual::STRIDE].map(|at| u64::from(self.size(at)));
        let misaligned =
            !spec.dre && [addr, hsize, stride].iter().any(|value| !value.is_multiple_of(word));
        if self.frame_bytes() == 0 || misaligned {
            self.fail(now_ns, manual::SR_INTERNAL);
        }
    }

    /// Halts the channel with an error.
    fn fail(&mut self, now_ns: u64, bit: u32) {
        self.status |= bit | manual::IRQ_ERROR;
        self.control &= !manual::CR_RUN;
        (self.frame, self.halted, self.halts_at_ns, self.line_at_ns) =
            (None, true, None, Some(now_ns));
    }

    /// The frame's last byte arrived: raises the interrupt; the channel halts a little later.
    fn over(&mut self, now_ns: u64, shape: u32) {
        self.status |= manual::IRQ_FRAMES | shape | if shape != 0 { manual::IRQ_ERROR } else { 0 };
        if self.control & manual::CR_FRAME_COUNT != 0 {
            self.control &= !manual::CR_RUN;
            self.halts_at_ns = Some(now_ns + HALT_NS);
        }
        let delay = self.frame.map_or(Some(0), |frame| frame.irq_delay_ns);
        self.line_at_ns = delay.map(|delay| now_ns + HALT_NS + delay);
    }

    /// The address of byte `moved` of the frame, and how many of `want` bytes are in its line.
    fn place(&self, frame: &Frame, want: usize) -> (u64, usize) {
        let hsize = (self.size(manual::HSIZE) as usize).max(1);
        let (line, column) = (frame.moved / hsize, frame.moved % hsize);
        (
            frame.addr + line as u64 * u64::from(self.size(manual::STRIDE)) + column as u64,
            want.min(hsize - column),
        )
    }

    /// Does everything that is due by now.
    pub(super) fn advance(&mut self, stream: &mut SimStream, bus: &mut SimBus<'_>) {
        let now_ns = bus.now_ns();
        if let Some(Frame { addr, fate: Fate::Stuck, .. }) = self.frame {
            // A stuck channel keeps writing.
            if self.receives {
                let _ = bus.write(DevAddr(addr), &[GARBAGE]);
            }
            return;
        }
        // Nothing happens after a reset or a halt.
        let until_ns = [self.resets_at_ns, self.halts_at_ns]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(u64::MAX)
            .min(now_ns);
        self.go_on(until_ns, stream, bus);
        if self.halts_at_ns.is_some_and(|at| at <= now_ns) {
            self.settle(bus);
            (self.halts_at_ns, self.halted, self.frame) = (None, true, None);
        }
        if self.resets_at_ns.is_some_and(|at| at <= now_ns) {
            self.settle(bus);
            let mid_frame = self.mid_frame
                || self
                    .frame
                    .is_some_and(|frame| frame.moved > 0 && frame.moved < self.frame_bytes());
            *self = Self { mid_frame: self.receives && mid_frame, ..Self::new(self.receives) };
            if self.receives {
                stream.cut(true);
            }
        }
        self.now_ns = now_ns;
    }

    /// Writes the last burst.
    fn settle(&mut self, bus: &mut SimBus<'_>) {
        if let Some((addr, bytes, len)) = self.frame.as_mut().and_then(|frame| frame.last.take()) {
            let _ = bus.write(DevAddr(addr), bytes.get(..len).unwrap_or_default());
        }
    }

    fn go_on(&mut self, until_ns: u64, stream: &mut SimStream, bus: &mut SimBus<'_>) {
        while let Some(frame) = self.frame {
            let half = frame.moved >= self.frame_bytes() / 2;
            if let (Fate::Error(bit), true) = (frame.fate, half) {
                return self.fail(until_ns, bit);
            }
            if frame.fate == Fate::Hang || frame.moved >= self.frame_bytes() || frame.last.is_some()
            {
                return;
            }
            let went_on = if self.receives {
                self.take(frame, until_ns, stream, bus)
            } else {
                self.give(frame, until_ns, stream, bus)
            };
            if !went_on {
                return;
            }
        }
    }

    /// Receives a burst of S2MM, by `until_ns`. A packet of the stream is a frame.
    fn take(
        &mut self,
        mut frame: Frame,
        until_ns: u64,
        stream: &mut SimStream,
        bus: &mut SimBus<'_>,
    ) -> bool {
        let (addr, want) = self.place(&frame, BURST_BYTES);
        let Some(at_ns) = stream.ready_at_ns(self.now_ns, want).filter(|&at_ns| at_ns <= until_ns)
        else {
            return false;
        };
        self.now_ns = self.now_ns.max(at_ns);
        let mut bytes = [0; BURST_BYTES];
        let taken = stream.take(self.now_ns, bytes.get_mut(..want).unwrap_or_default());
        if taken.bytes == 0 {
            return false;
        }
        if self.mid_frame {
            // The channel waits for the beginning of a frame.
            self.mid_frame = !taken.last;
            return true;
        }
        frame.moved += taken.bytes;
        let whole = frame.moved == self.frame_bytes();
        if whole || taken.last {
            frame.last = Some((addr, bytes, taken.bytes));
            self.frame = Some(frame);
            let in_line = !frame.moved.is_multiple_of(self.size(manual::HSIZE) as usize);
            let shape = match (whole, taken.last) {
                (true, true) => 0,
                (true, false) => manual::SR_SOF_LATE,
                _ if in_line => manual::SR_EOL_EARLY,
                _ => manual::SR_SOF_EARLY,
            };
            self.mid_frame = !taken.last;
            self.over(self.now_ns, shape);
        } else if bus.write(DevAddr(addr), bytes.get(..taken.bytes).unwrap_or_default()).is_err() {
            self.fail(self.now_ns, manual::SR_DECODE);
        } else {
            self.frame = Some(frame);
        }
        true
    }

    /// Sends a burst of MM2S, by `until_ns`.
    fn give(
        &mut self,
        mut frame: Frame,
        until_ns: u64,
        stream: &mut SimStream,
        bus: &mut SimBus<'_>,
    ) -> bool {
        if frame.due_ns > until_ns {
            return false;
        }
        let (addr, want) = self.place(&frame, BURST_BYTES.min(stream.room_bytes()));
        let mut bytes = [0; BURST_BYTES];
        let burst = bytes.get_mut(..want).unwrap_or_default();
        if want == 0 {
            frame.due_ns += STREAM_NS;
        } else if bus.read_words(DevAddr(addr), burst, WORD_BYTES).is_err() {
            self.fail(frame.due_ns, manual::SR_DECODE);
            return false;
        } else {
            frame.moved += want;
            let whole = frame.moved == self.frame_bytes();
            stream.give(burst, whole);
            if whole {
                self.over(frame.due_ns, 0);
            }
            frame.due_ns += (want as u64).div_ceil(BYTES_PER_NS);
        }
        self.frame = Some(frame);
        true
    }

    /// When the line rises.
    pub(super) fn irq_at_ns(&self, stream: &SimStream) -> Option<u64> {
        if self.status & self.control & (manual::IRQ_FRAMES | manual::IRQ_ERROR) != 0 {
            return self.line_at_ns;
        }
        let frame = self.frame.filter(|frame| !matches!(frame.fate, Fate::Hang | Fate::Stuck))?;
        let left = self.frame_bytes().saturating_sub(frame.moved);
        let next = if self.receives {
            stream.ready_at_ns(self.now_ns, left.min(BURST_BYTES))
        } else {
            Some(frame.due_ns)
        };
        next.filter(|_| frame.irq_delay_ns.is_some())
    }

    /// Whether a source may start: the channel receives and has a frame.
    pub(super) const fn wants(&self) -> bool {
        self.receives && self.frame.is_some()
    }
}

#![allow(unsafe_code, reason = "a model promises to touch only what it was told of")]
//! A model of an AXI CDMA, by [`manual`]: what its registers do, and what it does to memory.

mod manual;
mod spec;
mod transfer;

use super::{AxiCdma, AxiCdmaConfig, AxiCdmaKeyhole, Keyhole};
use crate::{
    mem::CpuBuf,
    sim::{Model, SimBus, SimDevice, SimWindow, stream::SimStream},
    types::{DevAddr, Refused, Result},
};
pub use spec::AxiCdmaSpec;
use transfer::{Fate, Transfer};

/// Where the simulated board has a FIFO for fixed bursts. Nothing else answers them, so that a
/// keyhole cannot be laid over memory here.
pub const FIFO_ADDR: u64 = 0x43C0_0000;
/// From the doorbell to the first burst; from a descriptor to the next.
const LATENCY_NS: u64 = 300;
/// The bytes that it moves in a nanosecond.
const BYTES_PER_NS: u64 = 2;
/// From a reset to its end.
const RESET_NS: u64 = 300;
/// From the last byte of a descriptor's transfer to its write and its status. The core goes on
/// meanwhile, and CURDESC and Idle with it.
const POST_NS: u64 = 150;
/// Between two looks at a FIFO that makes it wait.
const FIFO_NS: u64 = 1_000;
/// A unit of `IRQDelay`: 125 clocks of 100 MHz.
const DELAY_NS: u64 = 1_250;
/// The byte that a stuck core keeps writing.
const GARBAGE: u8 = 0xEE;

/// A simulated AXI CDMA.
pub type SimAxiCdma<'b> = SimDevice<'b, AxiCdmaModel>;

impl<'p, 'd> AxiCdma<'p, SimWindow<'d, AxiCdmaModel>> {
    /// As [`simple`](AxiCdma::simple), and safe: the type of the window says what is behind it.
    ///
    /// # Errors
    /// As [`simple`](AxiCdma::simple).
    pub fn simple_simulated(window: SimWindow<'d, AxiCdmaModel>, config: AxiCdmaConfig) -> Result<Self> {
        // SAFETY: the model is this core, and `SimDevice::window` gives one window at a time. Where
        // it was built otherwise, it moves fewer bytes or none.
        unsafe { Self::simple(window, config) }
    }

    /// As [`sg`](AxiCdma::sg), and safe: the type of the window says what is behind it.
    ///
    /// # Errors
    /// As [`sg`](AxiCdma::sg).
    pub fn sg_simulated(
        window: SimWindow<'d, AxiCdmaModel>,
        config: AxiCdmaConfig,
        descriptors: CpuBuf<'p>,
    ) -> Result<Self, Refused<CpuBuf<'p>>> {
        // SAFETY: as in `simple_simulated`.
        unsafe { Self::sg(window, config, descriptors) }
    }
}

impl<'p, 'd> AxiCdmaKeyhole<'p, SimWindow<'d, AxiCdmaModel>> {
    /// As [`open`](AxiCdmaKeyhole::open), and safe: the model's fixed bursts reach no memory, and a
    /// FIFO at [`FIFO_ADDR`] alone.
    ///
    /// # Errors
    /// As [`open`](AxiCdmaKeyhole::open).
    pub fn open_simulated(
        window: SimWindow<'d, AxiCdmaModel>,
        config: AxiCdmaConfig,
        keyhole: Keyhole,
        descriptors: Option<CpuBuf<'p>>,
    ) -> Result<Self, Refused<Option<CpuBuf<'p>>>> {
        // SAFETY: as in `AxiCdma::simple_simulated`, and as the comment above says.
        unsafe { Self::open(window, config, keyhole, descriptors) }
    }
}

/// The core's state.
#[derive(Debug)]
pub struct AxiCdmaModel {
    spec: AxiCdmaSpec,
    control: u32,
    /// Errors and interrupts.
    status: u32,
    current: u64,
    tail: u64,
    from: u64,
    to: u64,
    btt: u32,
    /// `SGMode` rose, and the engine has not taken CURDESC yet.
    reloads: bool,
    /// The descriptor after the one that ended last.
    next: u64,
    transfer: Option<Transfer>,
    /// A descriptor's transfer whose last writes are under way, and when they arrive.
    posted: Option<(u64, Transfer)>,
    /// An error halted it.
    halted: bool,
    resets_at_ns: Option<u64>,
    /// Descriptors until the next `IOC_Irq`.
    countdown: u32,
    delay_at_ns: Option<u64>,
    /// When the line rises for what is in `status`; `None`: it got lost.
    line_at_ns: Option<u64>,
    fifo: SimStream,
}

impl Default for AxiCdmaModel {
    fn default() -> Self {
        Self::new(AxiCdmaSpec::default())
    }
}

impl AxiCdmaModel {
    /// As after power-on.
    #[must_use]
    pub fn new(spec: AxiCdmaSpec) -> Self {
        let (control, fifo) = (1 << manual::THRESHOLD_SHIFT, SimStream::new(spec.fifo));
        let (status, current, tail, from, to, btt, next) = (0, 0, 0, 0, 0, 0, 0);
        let (reloads, transfer, posted, halted, resets_at_ns) = (false, None, None, false, None);
        let (countdown, delay_at_ns, line_at_ns) = (1, None, None);
        Self {
            spec,
            control,
            status,
            current,
            tail,
            from,
            to,
            btt,
            reloads,
            next,
            transfer,
            posted,
            halted,
            resets_at_ns,
            countdown,
            delay_at_ns,
            line_at_ns,
            fifo,
        }
    }

    /// The FIFO's counts.
    #[must_use]
    pub const fn fifo(&self) -> crate::sim::stream::StreamCounts {
        self.fifo.counts()
    }

    /// Everything as after power-on, except for the FIFO, which is outside of the core.
    fn restart(&mut self) {
        let fifo = core::mem::take(&mut self.fifo);
        *self = Self { fifo, ..Self::new(self.spec) };
    }

    const fn is_idle(&self) -> bool {
        self.transfer.is_none()
    }

    const fn in_sg_mode(&self) -> bool {
        self.control & manual::CR_SG_MODE != 0
    }

    fn is_stuck(&self) -> bool {
        self.transfer.is_some_and(|transfer| transfer.fate == Fate::Stuck)
    }

    fn threshold(&self) -> u32 {
        (self.control >> manual::THRESHOLD_SHIFT & manual::COUNT_MAX).max(1)
    }

    /// A transfer begins at `now_ns`.
    fn begin(&mut self, now_ns: u64, descriptor: Option<u64>, next: u64, [from, to]: [u64; 2], len: u32, bus: &mut SimBus<'_>) {
        let len_bytes = len as usize;
        let busy_ns = LATENCY_NS + u64::from(len) / BYTES_PER_NS;
        let faults = *bus.faults();
        let fate = if bus.strikes(faults.stuck) {
            Fate::Stuck
        } else if bus.strikes(faults.hang) {
            Fate::Hang
        } else if bus.strikes(faults.error) {
            let bits = [manual::SR_DMA_INT, manual::SR_DMA_SLV, manual::SR_DMA_DEC, manual::SR_SG_SLV];
            let kinds = if descriptor.is_some() { bits.len() } else { 3 };
            Fate::Error(bits.get(bus.rng().usize(..kinds)).copied().unwrap_or(manual::SR_DMA_INT))
        } else {
            Fate::Good
        };
        let irq_delay_ns = if bus.strikes(faults.lost_irq) {
            None
        } else if bus.strikes(faults.late_irq) {
            Some(bus.rng().u64(..=busy_ns * 10))
        } else {
            Some(0)
        };
        let jitter_ns = bus.rng().u64(..=busy_ns / 8);
        let (begins_ns, ends_ns) = (now_ns, now_ns + busy_ns + jitter_ns);
        let transfer = Transfer { descriptor, next, from, to, len_bytes, moved: 0, begins_ns, ends_ns, irq_delay_ns, fate };
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
        let word = |index: usize| raw.as_chunks().0.get(index).map_or(0, |word| u32::from_le_bytes(*word));
        let addr = |index: usize| self.spec.held(u64::from(word(index + 1)) << 32 | u64::from(word(index)));
        if word(7) & manual::BD_COMPLETE != 0 {
            return self.fail(now_ns, manual::SR_SG_INT, bus);
        }
        let sides = [addr(2), addr(4)];
        self.begin(now_ns, Some(at), addr(0), sides, word(6) & self.spec.length_mask(), bus);
    }

    /// TAILDESC was written.
    fn doorbell(&mut self, bus: &mut SimBus<'_>) {
        if self.halted || !self.in_sg_mode() || !self.is_idle() || self.resets_at_ns.is_some() {
            return;
        }
        let at = if core::mem::take(&mut self.reloads) { self.current } else { self.next };
        self.fetch(bus.now_ns(), at, bus);
    }

    /// An error halts it.
    fn fail(&mut self, now_ns: u64, bit: u32, bus: &mut SimBus<'_>) {
        if let Some(Transfer { descriptor: Some(at), .. }) = self.transfer.take()
            && bit & (manual::SR_DMA_INT | manual::SR_DMA_SLV | manual::SR_DMA_DEC) != 0
        {
            let told = match bit {
                manual::SR_DMA_INT => manual::BD_INT,
                manual::SR_DMA_SLV => manual::BD_SLV,
                _ => manual::BD_DEC,
            };
            let _ = bus.write(DevAddr(at + manual::BD_STATUS), &(manual::BD_COMPLETE | told).to_le_bytes());
        }
        self.halted = true;
        self.status |= bit | manual::IRQ_ERROR;
        self.line_at_ns = Some(now_ns);
    }

    /// The transfer's time is over: its last writes are under way, and the next one begins.
    fn ends(&mut self, now_ns: u64, bus: &mut SimBus<'_>) {
        self.settle(bus);
        let keyhole = self.control & (manual::CR_KEYHOLE_READ | manual::CR_KEYHOLE_WRITE) != 0;
        match self.transfer {
            Some(transfer) if transfer.fate == Fate::Good && transfer.descriptor.is_some() && !keyhole => {
                (self.transfer, self.next) = (None, transfer.next);
                self.posted = Some((now_ns + POST_NS, transfer));
                self.go_on(now_ns, &transfer, bus);
            }
            Some(transfer) => self.finish(now_ns, transfer, bus),
            None => {}
        }
    }

    /// The last writes arrive, and the status after them.
    fn settle(&mut self, bus: &mut SimBus<'_>) {
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

    /// The descriptor after that of `transfer`, where that was not the last one.
    fn go_on(&mut self, now_ns: u64, transfer: &Transfer, bus: &mut SimBus<'_>) {
        if transfer.descriptor.is_some_and(|at| at != self.tail) {
            self.fetch(now_ns, transfer.next, bus);
        }
    }

    /// As [`ends`](Self::ends), of a transfer that is over at once, fails, or waits for a FIFO.
    fn finish(&mut self, now_ns: u64, mut transfer: Transfer, bus: &mut SimBus<'_>) {
        let limit = if let Fate::Error(_) = transfer.fate { transfer.len_bytes / 2 } else { transfer.len_bytes };
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
            && bus.write(DevAddr(at + manual::BD_STATUS), &manual::BD_COMPLETE.to_le_bytes()).is_err()
        {
            return self.fail(now_ns, manual::SR_SG_DEC, bus);
        }
        self.transfer = None;
        self.next = transfer.next;
        self.tell(now_ns, &transfer);
        self.go_on(now_ns, &transfer, bus);
    }

    /// A transfer ended well: its interrupt, or one of several that are counted.
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

    fn raise(&mut self, at_ns: Option<u64>) {
        if let Some(at_ns) = at_ns {
            self.line_at_ns = Some(self.line_at_ns.unwrap_or(u64::MAX).min(at_ns));
        }
    }

    /// The reset is over. Memory has the bytes that were moved until then.
    fn reset_ends(&mut self, now_ns: u64, bus: &mut SimBus<'_>) {
        self.settle(bus);
        if let Some(mut transfer) = self.transfer
            && transfer.fate != Fate::Hang
        {
            let _ = transfer.run(transfer.moved_by(now_ns), self.control, &mut self.fifo, bus);
        }
        self.restart();
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
            // Kept only where `SGMode` was set before.
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

    /// One half of an address.
    fn half(&self, addr: u64, offset: usize, value: u32) -> u64 {
        let halves =
            if offset.is_multiple_of(8) { addr >> 32 << 32 | u64::from(value) } else { addr & 0xFFFF_FFFF | u64::from(value) << 32 };
        self.spec.held(halves)
    }

    /// When the next thing happens.
    fn next_at_ns(&self) -> Option<u64> {
        let ends = self.transfer.filter(|transfer| !matches!(transfer.fate, Fate::Hang | Fate::Stuck)).map(|transfer| transfer.ends_ns);
        let posted = self.posted.map(|(at_ns, _)| at_ns);
        [ends, posted, self.resets_at_ns, self.delay_at_ns].into_iter().flatten().min()
    }
}

// SAFETY: it reads and writes only where its registers and the descriptors up to TAILDESC say, in
// `Transfer::run`, `fetch`, the status of a descriptor, and while it is stuck. Idle is told and
// Cmplt written after that, and a reset ends with no transfer.
unsafe impl Model for AxiCdmaModel {
    const WINDOW_BYTES: usize = manual::BTT + 4;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        if self.is_stuck() {
            // It runs on behind everybody's back.
            if let Some(Transfer { to, .. }) = self.transfer.filter(|_| self.control & manual::CR_KEYHOLE_WRITE == 0) {
                let _ = bus.write(DevAddr(to), &[GARBAGE]);
            }
            return;
        }
        while let Some(at_ns) = self.next_at_ns().filter(|&at_ns| at_ns <= bus.now_ns()) {
            if self.posted.is_some_and(|(posted_ns, _)| posted_ns == at_ns) {
                self.settle(bus);
            } else if self.resets_at_ns == Some(at_ns) {
                self.reset_ends(at_ns, bus);
            } else if self.delay_at_ns == Some(at_ns) {
                self.delay_at_ns = None;
                self.status |= manual::IRQ_DELAY;
                self.raise(Some(at_ns));
            } else {
                self.ends(at_ns, bus);
            }
        }
    }

    fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
        let half = |addr: u64| (addr >> (offset % 8 * 8)) as u32;
        let sg = |bit: u32| if self.spec.sg { bit } else { 0 };
        match offset {
            manual::CDMACR => self.control | sg(manual::CR_TAIL_POINTER),
            manual::CDMASR => {
                let idle = if self.is_idle() && self.resets_at_ns.is_none() { manual::SR_IDLE } else { 0 };
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

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
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
            // The others can be written only while it is idle.
            _ if !self.is_idle() => {}
            manual::CURDESC | manual::CURDESC_MSB if self.in_sg_mode() => self.current = self.half(self.current, offset, value),
            manual::SA | manual::SA_MSB => self.from = self.half(self.from, offset, value),
            manual::DA | manual::DA_MSB => self.to = self.half(self.to, offset, value),
            manual::BTT => self.write_btt(value, bus),
            _ => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        if self.status & self.control & manual::IRQ_ALL != 0 {
            return self.line_at_ns;
        }
        let enabled = self.control & manual::IRQ_ALL != 0;
        let posted = self.posted.and_then(|(at_ns, transfer)| Some(at_ns + transfer.irq_delay_ns?));
        let coming = self.transfer.filter(|transfer| !matches!(transfer.fate, Fate::Hang | Fate::Stuck));
        let ends = coming.and_then(|transfer| Some(transfer.ends_ns + transfer.irq_delay_ns?));
        [ends, posted, self.delay_at_ns].into_iter().flatten().min().filter(|_| enabled)
    }

    fn reset(&mut self) {
        self.restart();
    }
}

#![allow(unsafe_code, reason = "a model promises to touch only what it was told of")]
//! A model of one DMA of a card, by LitePCIe's gateware: a reader, a writer, their tables, the
//! loopback, and MSI. A reader counts a descriptor before the host answers. The writer of a card
//! that is not ordered counts one before its bytes are in memory.

mod lane;
mod manual;

use self::lane::Lane;
use self::manual as litepcie;
use crate::stream::{SimStream, StreamConfig};
use crate::{Model, SimBus, SimWindow};
use contigo_core::job::CoreChannel;
use contigo_core::types::Result;
use contigo_drivers::litepcie::{Litepcie, LitepcieConfig, LitepcieCore, Side};

impl SimWindow<LitepcieModel> {
    /// As [`open`](Litepcie::open), with its errors, but safe: the window's type proves what is
    /// behind it.
    pub fn driver(self, side: Side) -> Result<Litepcie<Self>> {
        let config = self.ask(|model| model.spec.config)?;
        // SAFETY: the model is this card, answers in time, and has one window at a time.
        unsafe { Litepcie::open(self, side, config) }
    }

    /// As [`open`](LitepcieCore::open), with its errors, but safe: the window's type proves what is
    /// behind it.
    pub fn core(self) -> Result<LitepcieCore<Self>> {
        // SAFETY: the model is this card, answers in time, and has one window at a time.
        unsafe { LitepcieCore::open(self) }
    }
}

/// As [`channel`](LitepcieCore::channel) of `core`, with its errors, but safe: its window's type
/// proves the card.
pub fn channel(
    core: &LitepcieCore<SimWindow<LitepcieModel>>,
    side: Side,
) -> Result<Litepcie<CoreChannel<SimWindow<LitepcieModel>>>> {
    let config = core.device().ask(|model| model.spec.config)?;
    // SAFETY: this core's model is built with this configuration.
    unsafe { core.channel(side, config) }
}

/// The parameters of a simulated card. Its registers are at the default offsets.
#[derive(Clone, Copy, Debug, Default)]
pub struct LitepcieSpec {
    /// The settings that its driver gets.
    pub config: LitepcieConfig,
    /// The other end of its stream, while the loopback is off.
    pub stream: StreamConfig,
}

/// The card.
#[derive(Debug)]
pub struct LitepcieModel {
    spec: LitepcieSpec,
    /// The other end of its stream.
    pub stream: SimStream,
    between: SimStream,
    /// The writer, then the reader.
    lanes: [Lane; 2],
    loops: bool,
    msi_enable: u32,
    irq_at_ns: Option<u64>,
    now_ns: u64,
}

impl Default for LitepcieModel {
    fn default() -> Self {
        Self::new(LitepcieSpec::default())
    }
}

/// The lanes after a reset: the writer, then the reader.
fn lanes(spec: &LitepcieSpec) -> [Lane; 2] {
    [Lane::new(false, spec.config.ordered), Lane::new(true, spec.config.ordered)]
}

impl LitepcieModel {
    /// A card built as `spec` describes.
    #[must_use]
    pub fn new(spec: LitepcieSpec) -> Self {
        let (stream, between) = (SimStream::new(spec.stream), SimStream::default());
        let lanes = lanes(&spec);
        Self {
            spec,
            stream,
            between,
            lanes,
            loops: false,
            msi_enable: 0,
            irq_at_ns: None,
            now_ns: 0,
        }
    }

    fn next_ns(&self) -> Option<(u64, usize)> {
        let stream = if self.loops { &self.between } else { &self.stream };
        let due = |index: usize| {
            self.lanes
                .get(index)
                .and_then(|lane| lane.due_ns(self.now_ns, stream))
                .map(|at_ns| (at_ns, index))
        };
        [due(0), due(1)].into_iter().flatten().min()
    }

    /// A register's lane, and its offset there.
    fn place(offset: usize) -> Option<(usize, usize)> {
        let at = offset.checked_sub(litepcie::DMA0)?;
        let (lane, at) = if at >= litepcie::READER { (1, at - litepcie::READER) } else { (0, at) };
        (at < litepcie::READER).then_some((lane, at))
    }
}

// SAFETY: a lane touches a descriptor's bytes until it counts the descriptor, and nothing after it
// reports idle. A reader does so a little longer, and so does the writer of a card that is not
// ordered; their driver waits for that.
unsafe impl Model for LitepcieModel {
    const WINDOW_BYTES: usize = 0x1_0000;

    fn fits(&self, setting: &str, _: usize) -> Option<(u64, u64)> {
        let config = &self.spec.config;
        let only = match setting {
            "reader_at" => config.reader_at,
            "writer_at" => config.writer_at,
            "loopback_at" => config.loopback_at,
            "msi_at" => config.msi_at,
            "reader_irq" => config.reader_irq.into(),
            "writer_irq" => config.writer_irq.into(),
            _ => return None,
        };
        Some((only.into(), only.into()))
    }

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        let now_ns = bus.now_ns();
        while let Some((at_ns, index)) = self.next_ns().filter(|(at_ns, _)| *at_ns <= now_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            let stream = if self.loops { &mut self.between } else { &mut self.stream };
            let Some(lane) = self.lanes.get_mut(index) else { break };
            let irq =
                if index == 0 { self.spec.config.writer_irq } else { self.spec.config.reader_irq };
            let ended = lane.step(self.now_ns, stream, bus);
            if ended && self.msi_enable >> irq & 1 != 0 && !bus.strikes(bus.faults().lost_irq) {
                let late_ns = if bus.strikes(bus.faults().late_irq) { 50_000 } else { 0 };
                self.irq_at_ns =
                    Some(self.irq_at_ns.unwrap_or(u64::MAX).min(self.now_ns + late_ns));
            }
        }
        self.now_ns = now_ns;
    }

    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        // MSI is an edge: a driver that reads a register has received the interrupt.
        self.irq_at_ns = self.irq_at_ns.filter(|at_ns| *at_ns > bus.now_ns());
        match (offset, Self::place(offset)) {
            (litepcie::MSI, _) => self.msi_enable,
            (_, Some((index, at))) => self.lanes.get(index).map_or(0, |lane| lane.read(at)),
            _ if offset == litepcie::DMA0 + litepcie::LOOPBACK => self.loops.into(),
            _ => 0,
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match (offset, Self::place(offset)) {
            (litepcie::MSI, _) => self.msi_enable = value,
            (_, Some((index, at))) => {
                let Some(lane) = self.lanes.get_mut(index) else { return };
                let ran = lane.runs();
                lane.write(at, value, bus);
                match (index, ran, lane.runs()) {
                    (0, false, true) => self.stream.trigger(bus.now_ns()),
                    // The bytes that the writer had taken are lost.
                    (0, true, false) => [&mut self.stream, &mut self.between]
                        .into_iter()
                        .for_each(|stream| stream.cut(false)),
                    _ => {}
                }
            }
            _ if offset == litepcie::DMA0 + litepcie::LOOPBACK => self.loops = value & 1 != 0,
            _ => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        // The next request may raise the interrupt. To poll too early does no harm.
        [self.irq_at_ns, self.next_ns().map(|(at_ns, _)| at_ns)].into_iter().flatten().min()
    }

    fn reset(&mut self) {
        self.lanes = lanes(&self.spec);
        (self.loops, self.msi_enable, self.irq_at_ns) = (false, 0, None);
        self.stream.cut(false);
        self.between = SimStream::default();
    }
}

#![allow(unsafe_code, reason = "a model promises to touch only what it was told of")]
//! A model of the core with two channels in each direction: what its registers do, and what it does
//! to memory and to its streams. MM2S channel `n` sends to stream `n`, and S2MM channel `n`
//! receives from it.

mod channel;
mod manual;

use self::channel::{Channel, Step};
use self::manual as pg288;
use crate::stream::{SimStream, StreamConfig};
use crate::{Model, SimBus, SimWindow};
use contigo_core::mem::CpuBuf;
use contigo_core::types::Result;
use contigo_drivers::axi_mcdma::{Mcdma, McdmaChannel, McdmaConfig, Way};

/// PG288, "Width of Buffer Length Register": up to 26 bits.
const LENGTH_BITS: u8 = 26;
/// How many channels it has in each direction.
const PAIRS: usize = 2;
/// How long each direction reports a reset. Data may move until both resets are over.
const RESET_NS: [u64; 2] = [300, 600];

impl SimWindow<McdmaModel> {
    /// As [`open`](Mcdma::open), with its errors, but safe: the window's type proves that the model
    /// is behind it.
    pub fn core(self) -> Result<Mcdma<Self>> {
        let config = self.ask(McdmaModel::config)?;
        // SAFETY: the model is this core in this configuration, and has one window at a time.
        unsafe { Mcdma::open(self, config) }
    }

    /// As [`open`](McdmaChannel::open), with its errors, but safe: the window's type proves what is
    /// behind it.
    pub fn channel(self, way: Way, descriptors: CpuBuf) -> Result<McdmaChannel<Self>> {
        let config = self.ask(McdmaModel::config)?;
        // SAFETY: the model is this core in this configuration, and has one window at a time.
        unsafe { McdmaChannel::open(self, way, config, descriptors) }
    }
}

/// The parameters of a simulated core.
#[derive(Clone, Copy, Debug, Default)]
pub struct McdmaSpec {
    /// How the core is built. The model takes any address and any length, as a core with DRE does.
    pub config: McdmaConfig,
    /// The other ends of its streams.
    pub streams: [StreamConfig; PAIRS],
}

/// The registers that the channels of a direction share.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    runs: bool,
    enable: u32,
    error: u32,
    in_progress: u32,
    served: u32,
    dropped: u32,
}

/// The core.
#[derive(Debug)]
pub struct McdmaModel {
    spec: McdmaSpec,
    /// The other ends of its streams.
    pub streams: [SimStream; PAIRS],
    sides: [Side; 2],
    channels: [[Channel; PAIRS]; 2],
    /// When the reset of each direction ends; `u64::MAX`: never.
    resets_at_ns: Option<[u64; 2]>,
    now_ns: u64,
}

impl Default for McdmaModel {
    fn default() -> Self {
        Self::new(McdmaSpec::default())
    }
}

/// The channels after a reset.
fn channels(spec: &McdmaSpec) -> [[Channel; PAIRS]; 2] {
    let length_mask = (1 << spec.config.length_bits.min(LENGTH_BITS)) - 1;
    [0, 1].map(|direction| [0, 1].map(|number| Channel::new(direction, number, length_mask)))
}

impl McdmaModel {
    /// A core built as `spec` describes.
    #[must_use]
    pub fn new(spec: McdmaSpec) -> Self {
        let (streams, sides) = (spec.streams.map(SimStream::new), [Side::default(); 2]);
        Self { spec, streams, sides, channels: channels(&spec), resets_at_ns: None, now_ns: 0 }
    }

    fn config(&self) -> McdmaConfig {
        self.spec.config
    }

    /// When the next step is due, and the direction and channel that take it.
    fn next(&self, now_ns: u64) -> Option<(u64, usize, usize)> {
        let mut next: Option<(u64, usize, usize)> = None;
        for (direction, (side, channels)) in self.sides.iter().zip(&self.channels).enumerate() {
            for (number, (channel, stream)) in channels.iter().zip(&self.streams).enumerate() {
                let due = channel.due_ns(side.runs, side.enable >> number & 1 != 0, now_ns, stream);
                if let Some(at_ns) =
                    due.filter(|at_ns| next.is_none_or(|(first, ..)| *at_ns < first))
                {
                    next = Some((at_ns, direction, number));
                }
            }
        }
        next
    }

    /// Handles the result of a channel's step.
    fn settle(&mut self, direction: usize, number: usize, step: Step, bus: &mut SimBus<'_>) {
        let (Some(side), Some(channels)) =
            (self.sides.get_mut(direction), self.channels.get_mut(direction))
        else {
            return;
        };
        match step {
            Step::Nothing => {}
            Step::Dropped => side.dropped = side.dropped.wrapping_add(1),
            Step::Done => {
                (side.served, side.in_progress) = (side.served | 1 << number, 1 << number)
            }
            Step::Failed(bit) => {
                // The whole direction halts, and keeps its state until a reset.
                (side.runs, side.error, side.in_progress) = (false, side.error | bit, 1 << number);
                for (index, channel) in channels.iter_mut().enumerate() {
                    channel.raise(
                        if index == number { pg288::IRQ_ERROR } else { pg288::IRQ_OTHER },
                        bus,
                    );
                }
            }
        }
    }

    /// Resets everything to the state after power-on. A loopback's FIFO is outside of the core.
    fn clear(&mut self) {
        (self.sides, self.channels, self.resets_at_ns) =
            ([Side::default(); 2], channels(&self.spec), None);
        for stream in &mut self.streams {
            stream.cut(true);
        }
    }

    fn control(&mut self, direction: usize, value: u32, bus: &mut SimBus<'_>) {
        if value & pg288::CCR_RESET != 0 && self.resets_at_ns.is_none() {
            let busy = self.channels.as_flattened().iter().any(Channel::is_busy);
            let stuck = busy && bus.strikes(bus.faults().stuck);
            let mut ends_ns = RESET_NS.map(|takes_ns| bus.now_ns() + takes_ns);
            // Only the direction that was written gets stuck; the other one shows nothing of it.
            if let Some(end_ns) = ends_ns.get_mut(direction).filter(|_| stuck) {
                *end_ns = u64::MAX;
            }
            self.resets_at_ns = Some(ends_ns);
            // The registers are cleared at once.
            self.channels
                .as_flattened_mut()
                .iter_mut()
                .for_each(|channel| channel.control = pg288::CR_RESET_VALUE);
        }
        if let Some(side) = self.sides.get_mut(direction).filter(|_| self.resets_at_ns.is_none()) {
            // An error halts it until a reset.
            side.runs = value & pg288::RUNSTOP != 0 && side.error == 0;
        }
    }

    /// Returns whether a direction reports that it is in reset.
    fn is_reset(&self, direction: usize) -> bool {
        self.resets_at_ns
            .and_then(|ends_ns| ends_ns.get(direction).copied())
            .is_some_and(|end_ns| end_ns > self.now_ns)
    }

    /// When the whole core's reset ends.
    fn reset_ends_ns(&self) -> Option<u64> {
        self.resets_at_ns.and_then(|ends_ns| ends_ns.into_iter().max())
    }

    fn common(&mut self, direction: usize, offset: usize) -> u32 {
        let resets = self.is_reset(direction);
        let busy = self
            .channels
            .get(direction)
            .is_some_and(|channels| channels.iter().any(Channel::is_busy));
        let raised = |channel: &Channel| channel.raised & channel.control & pg288::IRQ_ALL != 0;
        let Some((side, channels)) =
            self.sides.get_mut(direction).zip(self.channels.get(direction))
        else {
            return 0;
        };
        match offset {
            pg288::CCR => u32::from(side.runs) | if resets { pg288::CCR_RESET } else { 0 },
            pg288::CSR => {
                (if side.runs { 0 } else { pg288::CSR_HALTED })
                    | if busy { 0 } else { pg288::CSR_IDLE }
            }
            pg288::CHEN => side.enable,
            pg288::CHSER => side.in_progress,
            pg288::ERR => side.error,
            pg288::ALL_PKTDROP if direction == 1 => side.dropped,
            _ if pg288::SERVED.get(direction) == Some(&offset) => core::mem::take(&mut side.served),
            _ if pg288::INT_SER.get(direction) == Some(&offset) => channels
                .iter()
                .rev()
                .fold(0, |bits, channel| bits << 1 | u32::from(raised(channel))),
            _ => 0,
        }
    }

    fn write_channel(
        &mut self,
        direction: usize,
        number: usize,
        offset: usize,
        value: u32,
        bus: &mut SimBus<'_>,
    ) {
        let (wide, now_ns) = (self.spec.config.address_bits > 32, bus.now_ns());
        let side = self.sides.get(direction).copied().unwrap_or_default();
        let channels = self.channels.get_mut(direction);
        let (Some(channel), Some(stream)) =
            (channels.and_then(|all| all.get_mut(number)), self.streams.get_mut(number))
        else {
            return;
        };
        let (low, high) = (u64::from(value), u64::from(value) << 32);
        let mut rings = false;
        match offset {
            pg288::CR => channel.control = value & pg288::CR_BITS,
            pg288::SR => channel.acknowledge(value),
            pg288::CDESC => channel.point(channel.current >> 32 << 32 | low),
            pg288::CDESC_MSB if wide => channel.point(channel.current & 0xFFFF_FFFF | high),
            pg288::TDESC => (channel.tail, rings) = (channel.tail >> 32 << 32 | low, !wide),
            pg288::TDESC_MSB if wide => {
                (channel.tail, rings) = (channel.tail & 0xFFFF_FFFF | high, true)
            }
            _ => {}
        }
        if rings {
            if direction == 1 && side.runs {
                stream.trigger(now_ns);
            }
            let step = channel.ring(side.runs, bus);
            self.settle(direction, number, step, bus);
        }
    }

    /// A register's direction, its channel if it belongs to one, and its offset in channel 0.
    const fn place(offset: usize) -> (usize, Option<usize>, usize) {
        let (direction, offset) =
            if offset >= pg288::RX { (1, offset - pg288::RX) } else { (0, offset) };
        match offset / pg288::NEXT_CHANNEL {
            0 => (direction, None, offset),
            channel => {
                (direction, Some(channel - 1), pg288::NEXT_CHANNEL + offset % pg288::NEXT_CHANNEL)
            }
        }
    }
}

// SAFETY: a channel touches the descriptors from CURDESC to its tail and the buffers that these
// name, each until its status is written, and nothing after a reset.
unsafe impl Model for McdmaModel {
    const WINDOW_BYTES: usize = pg288::END;

    fn fits(&self, setting: &str, _: usize) -> Option<(u64, u64)> {
        match setting {
            "length_bits" => Some((8, self.spec.config.length_bits.into())),
            // With wider addresses another register is the doorbell.
            "address_bits" if self.spec.config.address_bits > 32 => Some((33, 64)),
            "address_bits" => Some((32, 32)),
            _ => None,
        }
    }

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        let now_ns = bus.now_ns();
        // Every step of a channel takes time, even a drop.
        while let Some((at_ns, direction, number)) =
            self.next(self.now_ns).filter(|(at_ns, ..)| *at_ns <= now_ns)
        {
            if self.reset_ends_ns().is_some_and(|resets_ns| resets_ns <= at_ns) {
                break;
            }
            let enabled =
                self.sides.get(direction).is_some_and(|side| side.enable >> number & 1 != 0);
            let channels = self.channels.get_mut(direction);
            let (Some(channel), Some(stream)) =
                (channels.and_then(|all| all.get_mut(number)), self.streams.get_mut(number))
            else {
                break;
            };
            self.now_ns = self.now_ns.max(at_ns);
            let step = channel.step(self.now_ns, enabled, stream, bus);
            self.settle(direction, number, step, bus);
        }
        self.now_ns = now_ns;
        if self.reset_ends_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            self.clear();
        }
    }

    fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
        let (direction, number, offset) = Self::place(offset);
        let Some(number) = number else { return self.common(direction, offset) };
        let Some(channel) =
            self.channels.get_mut(direction).and_then(|channels| channels.get_mut(number))
        else {
            return 0;
        };
        #[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
        match offset {
            pg288::CR => channel.control,
            pg288::SR => channel.status(),
            pg288::CDESC => channel.current as u32,
            pg288::CDESC_MSB => (channel.current >> 32) as u32,
            pg288::TDESC => channel.tail as u32,
            pg288::TDESC_MSB => (channel.tail >> 32) as u32,
            pg288::PKTDROP if direction == 1 => core::mem::take(&mut channel.dropped).into(),
            _ => 0,
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        let (direction, number, offset) = Self::place(offset);
        match (number, offset) {
            (Some(number), _) => self.write_channel(direction, number, offset, value, bus),
            (None, pg288::CCR) => self.control(direction, value, bus),
            (None, pg288::CHEN) => {
                if let Some(side) = self.sides.get_mut(direction) {
                    side.enable = value & ((1 << PAIRS) - 1);
                }
            }
            _ => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        let raised = self.channels.as_flattened().iter().filter_map(Channel::interrupt_ns).min();
        // The next burst may raise the interrupt. To poll too early does no harm.
        let coming = self.next(self.now_ns).map(|(at_ns, ..)| at_ns);
        [raised, coming, self.reset_ends_ns()].into_iter().flatten().min()
    }

    fn reset(&mut self) {
        self.clear();
    }
}

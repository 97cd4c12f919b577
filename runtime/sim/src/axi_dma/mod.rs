#![allow(
    unsafe_code,
    reason = "a device that lies about being finished corrupts memory, also a simulated one"
)]
//! A model of the core: both channels, in direct register mode or with scatter-gather, and the
//! other end of their streams.
//!
//! | file | purpose |
//! |---|---|
//! | `mod.rs` | the core: how it is built, which channel does the next thing, and a reset of both |
//! | `channel.rs` | a channel's registers, and its way from RS to Halted |
//! | `fetch.rs` | a transfer, and descriptors that are fetched ahead |
//! | `transfer.rs` | its bursts, their descriptor's status, and interrupts |
//! | `manual.rs` | its own table of registers |

mod channel;
mod fetch;
mod manual;
#[cfg(test)]
mod tests;
mod transfer;

use crate::stream::{SimStream, SourceConfig, StreamConfig, StreamEnd};
use crate::{Model, SimBus, SimWindow};
use channel::Channel;
use contigo_core::mem::CpuBuf;
use contigo_core::types::Result;
use contigo_drivers::axi_dma::{AxiDma, AxiDmaChannel, AxiDmaConfig, AxiDmaCore, Side};
use manual as pg021;

/// How long a reset takes; the bursts under way end within it.
const RESET_NS: u64 = 300;

impl SimWindow<AxiDmaModel> {
    /// As [`open`](AxiDma::open), with its errors, but safe: the window's type proves that the
    /// model is behind it. If the configuration differs from the model's, only the model
    /// misbehaves.
    pub fn driver(self, config: AxiDmaConfig, memory: Option<CpuBuf>) -> Result<AxiDma<Self>> {
        // SAFETY: the model is an AXI DMA, and `SimDevice::window` gives one window at a time. It
        // touches no byte outside of the programmed lengths, whatever its register can hold.
        unsafe { AxiDma::open(self, config, memory) }
    }

    /// As [`alone`](AxiDmaChannel::alone), with its errors, but safe: the window's type proves what
    /// is behind it.
    pub fn channel(
        self,
        side: Side,
        config: AxiDmaConfig,
        memory: Option<CpuBuf>,
    ) -> Result<AxiDmaChannel<Self>> {
        // SAFETY: as in `driver`.
        unsafe { AxiDmaChannel::alone(self, side, config, memory) }
    }

    /// As [`open`](AxiDmaCore::open), but safe: the window's type proves what is behind it.
    ///
    /// # Errors
    /// None today.
    pub fn core(self) -> Result<AxiDmaCore<Self>> {
        // SAFETY: as in `driver`.
        unsafe { AxiDmaCore::open(self) }
    }
}

/// How a core is built, what its streams connect to, and which faults it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreSpec {
    /// Scatter-gather; otherwise direct register mode.
    pub sg: bool,
    /// The core has the channel that sends.
    pub has_mm2s: bool,
    /// The core has the channel that receives.
    pub has_s2mm: bool,
    /// How many bits a length has, 8 to 26; the core ignores higher bits.
    pub length_bits: u32,
    /// The bits of an address.
    pub address_bits: u32,
    /// The other end of the streams.
    pub stream: StreamConfig,
    /// A reset of the core also resets the other end.
    pub resets_stream: bool,
    /// How fast a channel moves data.
    pub bytes_per_us: u64,
    /// The write of this packet of a source gets an error response, once.
    pub error_at: Option<u32>,
    /// Memory answers this fetch of a descriptor of S2MM with an error; 0 is the first fetch.
    pub fetch_error_at: Option<u32>,
    /// Once the core runs, it stops only when its reset line is pulled.
    pub stuck: bool,
}

impl Default for CoreSpec {
    /// A core as Vivado builds it, with a loopback: 800 MB/s.
    fn default() -> Self {
        Self {
            sg: true,
            has_mm2s: true,
            has_s2mm: true,
            length_bits: 14,
            address_bits: 32,
            stream: StreamConfig::default(),
            resets_stream: true,
            bytes_per_us: 800,
            error_at: None,
            fetch_error_at: None,
            stuck: false,
        }
    }
}

impl CoreSpec {
    /// Only the receive channel, with scatter-gather, behind a camera whose FIFO holds
    /// `fifo_bytes`: a packet that is not taken in time is lost.
    #[must_use]
    pub fn camera(source: SourceConfig, fifo_bytes: usize) -> Self {
        Self {
            has_mm2s: false,
            stream: StreamConfig::source(source, fifo_bytes),
            ..Self::default()
        }
    }

    fn duration_ns(&self, bytes: usize) -> u64 {
        (bytes as u64).saturating_mul(1_000).div_ceil(self.bytes_per_us.max(1))
    }

    /// Keeps the bits of a length that the core has.
    const fn length(&self, value: u32) -> u32 {
        value & ((1 << self.length_bits) - 1)
    }
}

/// The core, and the other end of its streams.
#[derive(Debug)]
pub struct AxiDmaModel {
    spec: CoreSpec,
    mm2s: Channel,
    s2mm: Channel,
    /// The other end of its stream.
    pub stream: SimStream,
    /// The time of the last event.
    now_ns: u64,
    /// When the reset ends.
    resets_at_ns: Option<u64>,
    /// The core neither halts nor resets before its reset line is pulled.
    stuck: bool,
}

impl Default for AxiDmaModel {
    /// Scatter-gather, both channels, a loopback.
    fn default() -> Self {
        Self::new(CoreSpec::default())
    }
}

impl AxiDmaModel {
    /// A core built as `spec` describes.
    #[must_use]
    pub fn new(spec: CoreSpec) -> Self {
        let (mm2s, s2mm) = (Channel::new(Side::Mm2s), Channel::new(Side::S2mm));
        let (now_ns, resets_at_ns, stuck) = (0, None, false);
        Self { mm2s, s2mm, stream: SimStream::new(spec.stream), spec, now_ns, resets_at_ns, stuck }
    }

    /// How many buffers S2MM filled with a packet or a part of one, and reported.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.s2mm.written
    }

    /// How many underruns S2MM had: a doorbell added a descriptor after it had run out of them.
    #[must_use]
    pub const fn underruns(&self) -> u64 {
        self.s2mm.underruns
    }

    const fn channel(&mut self, side: Side) -> &mut Channel {
        match side {
            Side::Mm2s => &mut self.mm2s,
            Side::S2mm => &mut self.s2mm,
        }
    }

    /// The channel whose registers are at `offset`, and the offset there.
    const fn place(&self, offset: usize) -> Option<(Side, usize)> {
        match offset {
            pg021::MM2S..pg021::S2MM if self.spec.has_mm2s => {
                Some((Side::Mm2s, offset - pg021::MM2S))
            }
            pg021::S2MM..pg021::END if self.spec.has_s2mm => {
                Some((Side::S2mm, offset - pg021::S2MM))
            }
            _ => None,
        }
    }

    /// When the next event is due, and in which channel; `None`: the reset ends.
    fn next(&self) -> Option<(u64, Option<Side>)> {
        let of = |channel: &Channel| {
            Some((channel.next_at_ns(&self.stream, self.now_ns)?, Some(channel.side)))
        };
        let reset = self.resets_at_ns.map(|at_ns| (at_ns, None));
        [reset, of(&self.s2mm), of(&self.mm2s)]
            .into_iter()
            .flatten()
            .min_by_key(|(at_ns, _)| *at_ns)
    }

    /// Resets both channels, and the stream if the core's reset reaches it. Statuses under way are
    /// written first.
    fn reset_core(&mut self, bus: &mut SimBus<'_>) {
        for side in [Side::Mm2s, Side::S2mm] {
            let (spec, now_ns) = (self.spec, self.now_ns);
            let channel = self.channel(side);
            channel.settle(now_ns, &spec, bus);
            channel.power_on();
        }
        if self.spec.resets_stream {
            self.stream.cut(false);
        }
        self.resets_at_ns = None;
    }

    /// A failed channel halts the other one.
    const fn hold(&mut self, now_ns: u64) {
        let stuck = self.stuck || self.spec.stuck;
        if self.mm2s.has_failed() {
            self.s2mm.hold(now_ns, stuck);
        }
        if self.s2mm.has_failed() {
            self.mm2s.hold(now_ns, stuck);
        }
    }

    fn control(&mut self, side: Side, value: u32, bus: &mut SimBus<'_>) {
        let now_ns = bus.now_ns();
        let runs = self.mm2s.runs || self.s2mm.runs;
        if value & pg021::CR_RESET != 0 {
            self.stuck |= runs && (self.spec.stuck || bus.strikes(bus.faults().stuck));
            self.channel(side).resets();
            if !self.stuck {
                self.resets_at_ns = Some(now_ns + RESET_NS);
            }
            return;
        }
        let (was, stuck) = (self.channel(side).runs, self.stuck || self.spec.stuck);
        self.channel(side).control(value, now_ns, stuck);
        if side == Side::S2mm && !was && self.s2mm.runs {
            self.stream.trigger(now_ns);
        }
    }
}

// SAFETY: it touches the descriptors from CURDESC to TAILDESC and the buffers that these name, each
// until its status is written. In direct register mode it touches the transfer's bytes, until Idle.
// A halted channel touches nothing.
unsafe impl Model for AxiDmaModel {
    const WINDOW_BYTES: usize = pg021::END;

    fn fits(&self, setting: &str, _: usize) -> Option<(u64, u64)> {
        match setting {
            // If a driver uses fewer bits of a length, the others are 0.
            "length_bits" => Some((8, self.spec.length_bits.into())),
            // With wider addresses another register is the doorbell.
            "address_bits" if self.spec.address_bits > 32 => Some((33, 64)),
            "address_bits" => Some((32, 32)),
            "status_stream" | "status_driven" | "status_length" => Some((0, 0)),
            // A sink sends nothing to receive.
            "channel" if self.spec.stream.end == StreamEnd::Sink => Some((0, 0)),
            _ => None,
        }
    }

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        // Each burst takes time, so the loop reaches the present.
        while let Some((at_ns, side)) = self.next().filter(|(at_ns, _)| *at_ns <= bus.now_ns()) {
            self.now_ns = self.now_ns.max(at_ns);
            let (now_ns, spec) = (self.now_ns, self.spec);
            match side {
                None => self.reset_core(bus),
                Some(Side::Mm2s) => self.mm2s.happen(now_ns, &spec, &mut self.stream, bus),
                Some(Side::S2mm) => self.s2mm.happen(now_ns, &spec, &mut self.stream, bus),
            }
            self.hold(now_ns);
        }
        self.now_ns = self.now_ns.max(bus.now_ns());
    }

    fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
        let spec = self.spec;
        self.place(offset).map_or(0, |(side, offset)| self.channel(side).read(offset, &spec))
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        let (spec, Some((side, offset))) = (self.spec, self.place(offset)) else { return };
        match offset {
            pg021::DMACR => self.control(side, value, bus),
            _ if self.resets_at_ns.is_some() => {}
            _ => self.channel(side).write(offset, value, &spec, bus),
        }
        self.hold(bus.now_ns());
    }

    fn irq_at_ns(&self) -> Option<u64> {
        let [send, receive] = [&self.mm2s, &self.s2mm]
            .map(|channel| channel.irq_at_ns(&self.stream, self.now_ns, &self.spec));
        [send, receive].into_iter().flatten().min()
    }

    fn reset(&mut self) {
        self.mm2s.power_on();
        self.s2mm.power_on();
        self.stream.cut(false);
        (self.resets_at_ns, self.stuck, self.spec.stuck) = (None, false, false);
    }
}

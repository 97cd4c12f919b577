#![allow(
    unsafe_code,
    reason = "a device that lies about being finished corrupts memory, also a simulated one"
)]
//! A model of the core: both channels, in direct register mode or with scatter-gather, and what is
//! at the other end of their streams.
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

use crate::{
    Model, SimBus, SimDevice, SimWindow,
    stream::{SimStream, SourceConfig, StreamConfig, StreamCounts, StreamEnd},
};
use channel::Channel;
use contigo_core::{mem::CpuBuf, types::Result};
use contigo_drivers::axi_dma::{AxiDma, AxiDmaChannel, AxiDmaConfig, AxiDmaCore, Side};
use manual as pg021;

/// From a reset's beginning to its end: the bursts under way end in it.
const RESET_NS: u64 = 300;

/// A simulated AXI DMA.
pub type SimAxiDma = SimDevice<AxiDmaModel>;

impl SimWindow<AxiDmaModel> {
    /// As [`open`](AxiDma::open), and safe: the type of the window says what is behind it, and a
    /// configuration that is not the model's is an error of the model's.
    ///
    /// # Errors
    /// As [`open`](AxiDma::open).
    pub fn driver(self, config: AxiDmaConfig, memory: Option<CpuBuf>) -> Result<AxiDma<Self>> {
        // SAFETY: the model is an AXI DMA, and `SimDevice::window` gives one window at a time. It
        // touches no byte outside of the lengths that it was told, whatever its register holds.
        unsafe { AxiDma::open(self, config, memory) }
    }

    /// As [`alone`](AxiDmaChannel::alone), and safe: the type of the window says what is behind it.
    ///
    /// # Errors
    /// As [`alone`](AxiDmaChannel::alone).
    pub fn channel(
        self,
        side: Side,
        config: AxiDmaConfig,
        memory: Option<CpuBuf>,
    ) -> Result<AxiDmaChannel<Self>> {
        // SAFETY: as in `driver`.
        unsafe { AxiDmaChannel::alone(self, side, config, memory) }
    }

    /// As [`open`](AxiDmaCore::open), and safe: the type of the window says what is behind it.
    ///
    /// # Errors
    /// None today.
    pub fn core(self) -> Result<AxiDmaCore<Self>> {
        // SAFETY: as in `driver`.
        unsafe { AxiDmaCore::open(self) }
    }
}

/// How a core is built, what its streams lead to, and what goes wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreSpec {
    /// Scatter-gather; otherwise direct register mode.
    pub sg: bool,
    /// It has the channel that sends.
    pub has_mm2s: bool,
    /// It has the channel that receives.
    pub has_s2mm: bool,
    /// The bits of a length, 8 to 26: others are cut off.
    pub length_bits: u32,
    /// The bits of an address.
    pub address_bits: u32,
    /// The other end.
    pub stream: StreamConfig,
    /// A reset of the core resets what is at the other end.
    pub resets_stream: bool,
    /// How fast a channel moves data.
    pub bytes_per_us: u64,
    /// The write of this packet of a source is answered with an error, once.
    pub error_at: Option<u32>,
    /// Memory answers this fetch of a descriptor of S2MM with an error; the first one is 0.
    pub fetch_error_at: Option<u32>,
    /// Once it runs it does not stop before its reset line is pulled.
    pub stuck: bool,
}

impl Default for CoreSpec {
    /// As Vivado builds one, and a loopback: 800 MB/s.
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
    /// The receive channel alone, with scatter-gather, behind a camera whose FIFO holds
    /// `fifo_bytes`: one that is not taken in time is lost.
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

    /// The bits of a length that the core has.
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
    stream: SimStream,
    /// The time of the last thing that happened.
    now_ns: u64,
    /// When a reset is over.
    resets_at_ns: Option<u64>,
    /// It neither halts nor resets before its reset line is pulled.
    stuck: bool,
}

impl Default for AxiDmaModel {
    /// Scatter-gather, both channels, a loopback.
    fn default() -> Self {
        Self::new(CoreSpec::default())
    }
}

impl AxiDmaModel {
    /// A core like `spec`.
    #[must_use]
    pub fn new(spec: CoreSpec) -> Self {
        let (mm2s, s2mm) = (Channel::new(Side::Mm2s), Channel::new(Side::S2mm));
        let (now_ns, resets_at_ns, stuck) = (0, None, false);
        Self { mm2s, s2mm, stream: SimStream::new(spec.stream), spec, now_ns, resets_at_ns, stuck }
    }

    /// The counts of its stream.
    #[must_use]
    pub const fn stream(&self) -> StreamCounts {
        self.stream.counts()
    }

    /// How many buffers S2MM filled with a packet, or with a part of one, and told.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.s2mm.written
    }

    /// How often a descriptor came to S2MM when it had none left.
    #[must_use]
    pub const fn ran_dry(&self) -> u64 {
        self.s2mm.ran_dry
    }

    const fn channel(&mut self, side: Side) -> &mut Channel {
        match side {
            Side::Mm2s => &mut self.mm2s,
            Side::S2mm => &mut self.s2mm,
        }
    }

    /// Which channel has registers at `offset`, and where in its own.
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

    /// When the next thing happens, and where; `None` for the place: a reset is over.
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

    /// Both channels as after power-on, and the stream where the core's reset reaches it. Statuses
    /// under way are written before.
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

    /// A channel that failed halts the other.
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

// SAFETY: it touches the descriptors from CURDESC to TAILDESC and the buffers that they name, each
// until its status is written. In direct register mode it touches the transfer's bytes, until Idle.
// While it is halted it touches nothing.
unsafe impl Model for AxiDmaModel {
    const WINDOW_BYTES: usize = pg021::END;

    fn fits(&self, setting: &str, _: usize) -> Option<(u64, u64)> {
        match setting {
            // A driver that uses fewer bits of a length finds the rest 0.
            "length_bits" => Some((8, self.spec.length_bits.into())),
            // Behind wider addresses another register is the doorbell.
            "address_bits" if self.spec.address_bits > 32 => Some((33, 64)),
            "address_bits" => Some((32, 32)),
            "status_stream" | "status_driven" | "status_length" => Some((0, 0)),
            // What sends nothing has nothing to receive.
            "channel" if self.spec.stream.end == StreamEnd::Sink => Some((0, 0)),
            _ => None,
        }
    }

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        // Each burst takes its time, so the present is reached.
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

#![allow(
    unsafe_code,
    reason = "a device that lies about being finished corrupts memory, also a simulated one"
)]
//! The model: dispatcher, masters and prefetcher, as the core's own Verilog has them.
//!
//! Like the core, the model sees no memory errors. So the board's fault "error" is an error bit of
//! the stream for a receiver; otherwise the bridge to the registers is gone until a reset.

mod dispatcher;
mod fetch;
mod manual;
mod masters;

use crate::faults::GARBAGE;
use crate::stream::{SimStream, StreamConfig};
use crate::{Model, SimBus, SimWindow};
use contigo_core::mem::CpuBuf;
use contigo_core::types::{DevAddr, Refused, Result};
use contigo_drivers::msgdma::{Msgdma, MsgdmaConfig, MsgdmaMode};
use dispatcher::Dispatcher;
use fetch::Fetch;

/// The most descriptors that the model's FIFO holds. Platform Designer offers up to 1,024.
const JOBS_MAX: usize = 128;

/// How the model is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsgdmaBuild {
    /// The options of Platform Designer, and where the ports lie. The FIFO holds 128 descriptors at
    /// most.
    pub config: MsgdmaConfig,
    /// The other end of its stream.
    pub stream: StreamConfig,
    /// A newer core, whose registers report how it is built.
    pub tells: bool,
    /// Seen on cores with write responses: stopping the masters inside a descriptor suppresses
    /// writes that were counted. No later descriptor ends before an external reset.
    pub stop_loses_responses: bool,
    /// How long after its interrupt a descriptor is written back, in an interconnect that does not
    /// answer writes.
    pub late_write_back_ns: u64,
}

impl Default for MsgdmaBuild {
    /// A newer core by the driver's default configuration, with the behaviour seen on cores.
    fn default() -> Self {
        Self {
            config: MsgdmaConfig::default(),
            stream: StreamConfig::default(),
            tells: true,
            stop_loses_responses: true,
            late_write_back_ns: 0,
        }
    }
}

/// A core, its stream, and the slave ports in its window.
#[derive(Debug)]
pub struct MsgdmaModel {
    build: MsgdmaBuild,
    dispatcher: Dispatcher,
    fetch: Fetch,
    /// The other end of its stream.
    pub stream: SimStream,
    /// The last write whose answer the core does not wait for: its arrival time, address and byte.
    posted: Option<(u64, u64, u8)>,
    /// The core waits for answers to writes that it never made.
    owed: bool,
    /// The bridge is off: every register reads ones.
    gone: bool,
}

impl Default for MsgdmaModel {
    fn default() -> Self {
        Self::new(MsgdmaBuild::default())
    }
}

impl MsgdmaModel {
    /// A core as after power-on.
    #[must_use]
    pub fn new(build: MsgdmaBuild) -> Self {
        let depth = build.config.depth.clamp(1, JOBS_MAX);
        let stream = SimStream::new(build.stream);
        Self {
            build,
            dispatcher: Dispatcher::new(depth),
            fetch: Fetch::default(),
            stream,
            posted: None,
            owed: false,
            gone: false,
        }
    }

    const fn mode(&self) -> MsgdmaMode {
        self.build.config.mode
    }

    /// Returns the port at `offset`, and the offset in the port.
    fn port(&self, offset: usize) -> Option<(Slave, usize)> {
        let config = &self.build.config;
        let descriptor = config.prefetcher_at.is_none().then_some(config.desc_at);
        let ports = [
            (Slave::Csr, Some(config.csr_at), 0x20),
            (Slave::Descriptor, descriptor, if config.extended { 0x20 } else { 0x10 }),
            (Slave::Response, config.resp_at, 8),
            (Slave::Prefetcher, config.prefetcher_at, 0x20),
        ];
        ports.into_iter().find_map(|(slave, at, len)| {
            let inside = offset.checked_sub(at?)?;
            (inside < len).then_some((slave, inside))
        })
    }

    fn config_words(&self) -> (u32, u32, u32) {
        if !self.build.tells {
            let sequence = self.dispatcher.sequence();
            return (sequence, sequence, sequence);
        }
        let config = &self.build.config;
        let mode = match self.mode() {
            MsgdmaMode::Copy => 0,
            MsgdmaMode::Send => 1,
            MsgdmaMode::Receive => 2,
        };
        let first = mode << manual::CONFIG_1_MODE_SHIFT
            | if config.extended { manual::CONFIG_1_ENHANCED } else { 0 };
        let second = if config.prefetcher_at.is_some() { manual::CONFIG_2_PREFETCHER } else { 0 };
        (first, second, manual::TYPE_VERSION)
    }
}

/// A slave port of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slave {
    Csr,
    Descriptor,
    Response,
    Prefetcher,
}

impl SimWindow<MsgdmaModel> {
    /// As [`open`](Msgdma::open), with its errors, but safe: the window's type proves that the
    /// model is behind it. If the configuration differs from the model's, only the model
    /// misbehaves.
    pub fn driver(self, config: MsgdmaConfig) -> Result<Msgdma<Self>> {
        // SAFETY: the model is this core, and has one window at a time. The board counts each
        // access outside of the memory that was mapped for it.
        unsafe { Msgdma::open(self, config) }
    }

    /// As [`prefetched`](Msgdma::prefetched), with its errors, and safe as
    /// [`driver`](Self::driver).
    pub fn prefetched(
        self,
        config: MsgdmaConfig,
        descriptors: CpuBuf,
    ) -> Result<Msgdma<Self>, Refused<CpuBuf>> {
        // SAFETY: as in `driver`.
        unsafe { Msgdma::prefetched(self, config, descriptors) }
    }
}

// SAFETY: the model reads and writes only where descriptors say, from go bit to response, and
// fetches and writes back descriptors only where the prefetcher's registers and the earlier
// descriptors say. After a reset no descriptor is left, and without one it touches nothing.
unsafe impl Model for MsgdmaModel {
    const WINDOW_BYTES: usize = 0x100;

    fn fits(&self, setting: &str, _: usize) -> Option<(u64, u64)> {
        let config = &self.build.config;
        let only = match setting {
            "mode" => match config.mode {
                MsgdmaMode::Copy => 0,
                MsgdmaMode::Send => 1,
                MsgdmaMode::Receive => 2,
            },
            "extended" => config.extended.into(),
            "csr_at" => config.csr_at as u64,
            "desc_at" => config.desc_at as u64,
            "resp_at" => config.resp_at.unwrap_or(0) as u64,
            "prefetcher_at" => config.prefetcher_at.unwrap_or(0) as u64,
            "depth" => return Some((1, config.depth as u64)),
            _ => return None,
        };
        Some((only, only))
    }

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        let now_ns = bus.now_ns();
        // Each round handles one event, in the order of their times.
        while !self.gone {
            let Some(at_ns) = self.next_at_ns().filter(|&at_ns| at_ns <= now_ns) else { break };
            self.happen(at_ns, bus);
        }
        if self.gone {
            return self.land(now_ns, bus);
        }
        if let Some(addr) = self.dispatcher.stuck_at() {
            let _ = bus.write(DevAddr(addr), &[GARBAGE]);
        }
    }

    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        if self.gone {
            return u32::MAX;
        }
        match self.port(offset) {
            Some((Slave::Csr, at)) => self.read_csr(at, bus.now_ns()),
            Some((Slave::Response, manual::RESPONSE_ACTUAL_BYTES)) => self.dispatcher.response().0,
            Some((Slave::Response, manual::RESPONSE_ERRORS)) => self.dispatcher.pop_response(),
            Some((Slave::Prefetcher, at)) => self.fetch.read(at),
            // The descriptor port is write-only, and elsewhere there is no port.
            Some((Slave::Descriptor | Slave::Response, _)) | None => 0,
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        if self.gone {
            return;
        }
        match self.port(offset) {
            Some((Slave::Csr, at)) => self.write_csr(at, value, bus.now_ns()),
            Some((Slave::Descriptor, at)) => {
                let extended = self.build.config.extended;
                self.dispatcher.write_descriptor(at, value, extended, bus.now_ns());
                self.begin_next(bus.now_ns(), bus);
            }
            Some((Slave::Prefetcher, at)) => self.fetch.write(at, value, bus.now_ns()),
            Some((Slave::Response, _)) | None => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        if self.gone {
            return None;
        }
        let line = if self.build.config.prefetcher_at.is_some() {
            self.fetch.line_at_ns()
        } else {
            self.dispatcher.line_at_ns()
        };
        line.or_else(|| self.expected_ns())
    }

    fn reset(&mut self) {
        self.dispatcher = Dispatcher::new(self.build.config.depth.clamp(1, JOBS_MAX));
        self.fetch = Fetch::default();
        self.stream.cut(false);
        (self.owed, self.gone) = (false, false);
    }
}

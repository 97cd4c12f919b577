#![allow(unsafe_code, reason = "a model promises to touch only what it was told of")]
//! A model of an AXI CDMA, by `manual.rs`: what its registers do, and what it does to memory.

mod engine;
mod manual;
mod transfer;

use crate::faults::{Fate, GARBAGE};
use crate::stream::{SimStream, StreamConfig};
use crate::{Model, SimBus, SimWindow};
use contigo_core::mem::CpuBuf;
use contigo_core::types::{DevAddr, Refused, Result};
use contigo_drivers::axi_cdma::{AxiCdma, AxiCdmaConfig, AxiCdmaKeyhole, Keyhole};
use transfer::Transfer;

/// The address of the board's FIFO for fixed bursts. Fixed bursts reach nothing else, so a keyhole
/// cannot overwrite memory here.
pub const FIFO_ADDR: u64 = 0x43C0_0000;
/// From the doorbell to the first burst; also from each descriptor to the next.
const LATENCY_NS: u64 = 300;
/// How many bytes the core moves in a nanosecond.
const BYTES_PER_NS: u64 = 2;
/// From a reset to its end.
const RESET_NS: u64 = 300;
/// From the last byte of a descriptor's transfer to its write and its status. Meanwhile the core
/// goes on, and updates CURDESC and Idle.
const POST_NS: u64 = 150;
/// The time between two polls of a FIFO that makes the core wait.
const FIFO_NS: u64 = 1_000;
/// A unit of `IRQDelay`: 125 clocks of 100 MHz.
const DELAY_NS: u64 = 1_250;

impl SimWindow<AxiCdmaModel> {
    /// As [`simple`](AxiCdma::simple), with its errors, but safe: the window's type proves what is
    /// behind it.
    pub fn simple(self, config: AxiCdmaConfig) -> Result<AxiCdma<Self>> {
        // SAFETY: the model is this core, and `SimDevice::window` gives one window at a time. If it
        // was built differently, it moves fewer bytes or none.
        unsafe { AxiCdma::simple(self, config) }
    }

    /// As [`sg`](AxiCdma::sg), with its errors, but safe: the window's type proves what is behind
    /// it.
    pub fn sg(
        self,
        config: AxiCdmaConfig,
        descriptors: CpuBuf,
    ) -> Result<AxiCdma<Self>, Refused<CpuBuf>> {
        // SAFETY: as in `simple`.
        unsafe { AxiCdma::sg(self, config, descriptors) }
    }

    /// As [`open`](AxiCdmaKeyhole::open), with its errors, but safe: the model's fixed bursts reach
    /// no memory, only a FIFO at [`FIFO_ADDR`].
    pub fn keyhole(
        self,
        config: AxiCdmaConfig,
        keyhole: Keyhole,
        descriptors: Option<CpuBuf>,
    ) -> Result<AxiCdmaKeyhole<Self>, Refused<Option<CpuBuf>>> {
        // SAFETY: as in `simple`, and as the comment above says.
        unsafe { AxiCdmaKeyhole::open(self, config, keyhole, descriptors) }
    }
}

/// The parameters of the simulated core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxiCdmaSpec {
    /// `C_INCLUDE_SG`.
    pub sg: bool,
    /// How many bits BTT has: 26 in version 4.1.
    pub length_bits: u32,
    /// `C_ADDR_WIDTH`.
    pub address_bits: u32,
    /// `C_M_AXI_DATA_WIDTH`.
    pub data_bits: u32,
    /// `C_INCLUDE_DRE`.
    pub dre: bool,
    /// `C_USE_DATAMOVER_LITE`, and the longest burst in beats.
    pub lite_beats: Option<u32>,
    /// The FIFO at [`FIFO_ADDR`], for fixed bursts.
    pub fifo: StreamConfig,
}

impl Default for AxiCdmaSpec {
    /// Every option, so that a driver of any configuration works: scatter-gather, realignment, 26
    /// bits of length, 64 of addresses, and a FIFO that loops back.
    fn default() -> Self {
        Self {
            sg: true,
            length_bits: 26,
            address_bits: 64,
            data_bits: 32,
            dre: true,
            lite_beats: None,
            fifo: StreamConfig::default(),
        }
    }
}

impl AxiCdmaSpec {
    const fn word_bytes(&self) -> u64 {
        self.data_bits as u64 / 8
    }

    const fn length_mask(&self) -> u32 {
        (1 << self.length_bits) - 1
    }

    /// Returns `addr` as the registers hold it.
    const fn held(&self, addr: u64) -> u64 {
        if self.address_bits >= 64 { addr } else { addr & ((1 << self.address_bits) - 1) }
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
    /// `SGMode` was set, and the engine has not read CURDESC since.
    reloads: bool,
    /// The descriptor after the one that ended last.
    next: u64,
    /// The tail has not been fetched since the doorbell.
    has_work: bool,
    transfer: Option<Transfer>,
    /// A descriptor's transfer whose last writes are under way, and when they arrive.
    posted: Option<(u64, Transfer)>,
    /// An error halted it.
    halted: bool,
    resets_at_ns: Option<u64>,
    /// How many descriptors remain until the next `IOC_Irq`.
    countdown: u32,
    delay_at_ns: Option<u64>,
    /// When the line rises for the bits in `status`; `None`: the interrupt got lost.
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
        Self {
            spec,
            control: 1 << manual::THRESHOLD_SHIFT,
            status: 0,
            current: 0,
            tail: 0,
            from: 0,
            to: 0,
            btt: 0,
            reloads: false,
            next: 0,
            has_work: false,
            transfer: None,
            posted: None,
            halted: false,
            resets_at_ns: None,
            countdown: 1,
            delay_at_ns: None,
            line_at_ns: None,
            fifo: SimStream::new(spec.fifo),
        }
    }

    /// Resets everything but the FIFO, which is outside of the core, to the state after power-on.
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

    /// When the next event is due.
    fn next_at_ns(&self) -> Option<u64> {
        let ends = self
            .transfer
            .filter(|transfer| !matches!(transfer.fate, Fate::Hang | Fate::Stuck))
            .map(|transfer| transfer.ends_ns);
        let posted = self.posted.map(|(at_ns, _)| at_ns);
        [ends, posted, self.resets_at_ns, self.delay_at_ns].into_iter().flatten().min()
    }
}

// SAFETY: it reads and writes only where its registers and the descriptors up to TAILDESC say, in
// `Transfer::run`, `fetch`, a descriptor's status, and while it is stuck. Idle is set and Cmplt
// written after the last access, and a reset ends with no transfer.
unsafe impl Model for AxiCdmaModel {
    const WINDOW_BYTES: usize = manual::BTT + 4;

    fn fits(&self, setting: &str, _: usize) -> Option<(u64, u64)> {
        match setting {
            "length_bits" => Some((8, self.spec.length_bits.into())),
            "address_bits" => Some((32, self.spec.address_bits.into())),
            "data_bits" if !self.spec.dre => Some((self.spec.data_bits.into(), 1024)),
            "dre" => Some((0, self.spec.dre.into())),
            _ => None,
        }
    }

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        if self.is_stuck() {
            // A stuck core keeps writing.
            if let Some(Transfer { to, .. }) =
                self.transfer.filter(|_| self.control & manual::CR_KEYHOLE_WRITE == 0)
            {
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
        self.read(offset)
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        self.write(offset, value, bus);
    }

    fn irq_at_ns(&self) -> Option<u64> {
        if self.status & self.control & manual::IRQ_ALL != 0 {
            return self.line_at_ns;
        }
        let enabled = self.control & manual::IRQ_ALL != 0;
        let posted = self.posted.and_then(|(at_ns, transfer)| Some(at_ns + transfer.irq_delay_ns?));
        let coming =
            self.transfer.filter(|transfer| !matches!(transfer.fate, Fate::Hang | Fate::Stuck));
        let ends = coming.and_then(|transfer| Some(transfer.ends_ns + transfer.irq_delay_ns?));
        [ends, posted, self.delay_at_ns].into_iter().flatten().min().filter(|_| enabled)
    }

    fn reset(&mut self) {
        self.restart();
    }
}

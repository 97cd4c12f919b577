#![allow(
    unsafe_code,
    reason = "a device that lies about being finished corrupts memory, also a simulated one"
)]
//! The model: the register map, the queue, and the mover of data.
//!
//! Like the core, the model reports no memory errors. For the board's fault "error" the bridge is
//! gone instead: every register reads ones until a reset.

mod manager;
mod manual;
mod mover;
mod queue;

use crate::faults::GARBAGE;
use crate::stream::{SimStream, StreamConfig};
use crate::{Model, SimBus, SimWindow};
use contigo_core::mem::CpuBuf;
use contigo_core::types::{DevAddr, Refused, Result};
use contigo_drivers::axi_dmac::{AxiDmac, DmacConfig};
use manual as m;
use mover::{Active, Descriptor};
use queue::{Queue, Request};

/// A side of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// AXI memory.
    Memory,
    /// An AXI stream.
    Stream,
    /// ADI's FIFO interface, which marks no ends.
    Fifo,
}

/// How the model is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxiDmacBuild {
    /// VERSION.
    pub version: u32,
    /// `DMA_TYPE_SRC` and `DMA_TYPE_DEST`.
    pub sides: [Side; 2],
    /// `DMA_DATA_WIDTH_SRC` and `DMA_DATA_WIDTH_DEST`, in bytes.
    pub words: [usize; 2],
    /// `MAX_BYTES_PER_BURST`.
    pub burst_bytes: usize,
    /// `FIFO_SIZE`, in bursts.
    pub fifo_bursts: u32,
    /// `DMA_LENGTH_WIDTH`.
    pub length_bits: u32,
    /// Every length is a multiple of this.
    pub length_align: u32,
    /// `DMA_AXI_ADDR_WIDTH`, 16 to 64.
    pub address_bits: u32,
    /// `DMA_2D_TRANSFER`.
    pub rows: bool,
    /// `DMA_SG_TRANSFER`.
    pub lists: bool,
    /// How much later memory answers the read of a descriptor.
    pub fetch_ns: u64,
    /// `CACHE_COHERENT`.
    pub coherent: bool,
    /// Not `DISABLE_DEBUG_REGISTERS`.
    pub debug: bool,
    /// The other end of its stream.
    pub stream: StreamConfig,
    /// A flaw, seen on cores with memory that is slow or answers at irregular times; like the three
    /// below, the core's page does not mention it. Four IDs serve the rows under way, and each ID
    /// notes whether its row is the last of a job. With more rows a note is overwritten: one end is
    /// reported early while rows are still being written, and another one never.
    pub row_ids: bool,
    /// A flaw: a job, a row or a piece of one burst to memory that was queued behind another takes
    /// its successor's length, or waits for a successor for ever.
    pub single_bursts: bool,
    /// A flaw: a packet that ends within the last three bursts of its buffer may hang the next
    /// buffer in the queue.
    pub late_packet_ends: bool,
    /// A flaw: if the source's word is wider, a length that is not a multiple of it ends a burst
    /// early. The interconnect of this model then waits for the rest.
    pub early_last: bool,
}

impl Default for AxiDmacBuild {
    /// Version 4.5 from memory to memory, 64 bits, with every option and all flaws. Bursts have 64
    /// bytes, and any length is valid.
    fn default() -> Self {
        Self {
            version: 0x0004_0564,
            sides: [Side::Memory; 2],
            words: [8; 2],
            burst_bytes: 64,
            fifo_bursts: 8,
            length_bits: 24,
            length_align: 1,
            address_bits: 32,
            rows: true,
            lists: true,
            fetch_ns: 0,
            coherent: true,
            debug: true,
            stream: StreamConfig::default(),
            row_ids: true,
            single_bursts: true,
            late_packet_ends: true,
            early_last: true,
        }
    }
}

/// The state of the reset manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    Reset,
    Startup(u64),
    Enabled,
    Shutdown(u64),
}

/// The core, and its stream.
#[derive(Debug)]
pub struct AxiDmacModel {
    build: AxiDmacBuild,
    manager: Manager,
    control: u32,
    irq_mask: u32,
    irq_source: u32,
    line_at_ns: Option<u64>,
    scratch: u32,
    /// The transfer in the registers.
    request: Request,
    queue: Queue,
    active: Option<Active>,
    /// The memory's answer to the read of a descriptor that a reset made the core forget.
    owed: Option<Descriptor>,
    /// The other end of its stream.
    pub stream: SimStream,
    /// A packet ended so late in its buffer that the next transfer hangs.
    rewound: bool,
    /// The bridge is off: every register reads ones.
    gone: bool,
}

impl Default for AxiDmacModel {
    fn default() -> Self {
        Self::new(AxiDmacBuild::default())
    }
}

impl AxiDmacModel {
    /// A core as after power-on.
    #[must_use]
    pub fn new(build: AxiDmacBuild) -> Self {
        Self {
            build,
            manager: Manager::Reset,
            control: 0,
            irq_mask: m::TRANSFER_QUEUED | m::TRANSFER_COMPLETED,
            irq_source: 0,
            line_at_ns: None,
            scratch: 0,
            request: Request { x_length: build.length_align - 1, ..Request::default() },
            queue: Queue::default(),
            active: None,
            owed: None,
            stream: SimStream::new(build.stream),
            rewound: false,
            gone: false,
        }
    }

    const fn interface(&self) -> u32 {
        const fn kind(side: Side) -> u32 {
            match side {
                Side::Memory => 0,
                Side::Stream => 1,
                Side::Fifo => 2,
            }
        }
        let AxiDmacBuild {
            sides: [source, destination],
            words: [source_word, destination_word],
            burst_bytes,
            ..
        } = self.build;
        let burst =
            if self.build.version & 0xFF00 >= 0x0500 { burst_bytes.trailing_zeros() } else { 0 };
        let source = kind(source) << 12 | source_word.trailing_zeros() << 8;
        burst << 16 | source | kind(destination) << 4 | destination_word.trailing_zeros()
    }

    fn raise(&mut self, what: u32, line_at_ns: Option<u64>) {
        if self.irq_source & !self.irq_mask == 0 {
            self.line_at_ns = line_at_ns;
        }
        self.irq_source |= what;
    }
}

impl SimWindow<AxiDmacModel> {
    /// As [`open`](AxiDmac::open), with its errors, but safe: the window's type proves what is
    /// behind it.
    pub fn driver(self, config: DmacConfig) -> Result<AxiDmac<Self>> {
        // SAFETY: the model is this core, and has one window at a time.
        unsafe { AxiDmac::open(self, config) }
    }

    /// As [`listed`](AxiDmac::listed), with its errors, and safe as [`driver`](Self::driver).
    pub fn listed(
        self,
        config: DmacConfig,
        descriptors: CpuBuf,
    ) -> Result<AxiDmac<Self>, Refused<CpuBuf>> {
        // SAFETY: as in `driver`.
        unsafe { AxiDmac::listed(self, config, descriptors) }
    }
}

// SAFETY: it reads and writes only where submitted transfers and their descriptors say, from SUBMIT
// to DONE, or to the end of a shutdown, which its debug word reports.
unsafe impl Model for AxiDmacModel {
    const WINDOW_BYTES: usize = 0x800;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        let now_ns = bus.now_ns();
        // Each round handles one event, in the order of their times.
        while !self.gone {
            let Some(at_ns) = self.next_at_ns().filter(|&at_ns| at_ns <= now_ns) else { break };
            self.happen(at_ns, bus);
        }
        if let Some(addr) = self.active.as_ref().and_then(Active::stuck_at).filter(|_| !self.gone) {
            let _ = bus.write(DevAddr(addr), &[GARBAGE]);
        }
    }

    fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
        if self.gone {
            return u32::MAX;
        }
        match offset {
            m::VERSION => self.build.version,
            m::SCRATCH => self.scratch,
            m::IDENTIFICATION => m::IDENTITY,
            m::INTERFACE_DESCRIPTION_1 if self.build.version & 0xFF00 >= 0x0300 => self.interface(),
            m::INTERFACE_DESCRIPTION_2
                if self.build.version & 0xFF00 >= 0x0400 && self.build.coherent =>
            {
                m::CACHE_COHERENT
            }
            m::IRQ_MASK => self.irq_mask,
            m::IRQ_PENDING => self.irq_source & !self.irq_mask,
            m::IRQ_SOURCE => self.irq_source,
            m::CONTROL => self.control,
            m::DEBUG_STATUS => self.state(),
            m::PARTIAL_TRANSFER_ID => self.queue.take_report(),
            _ => self.queue.read(offset).unwrap_or_else(|| self.request.read(offset, &self.build)),
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        if self.gone {
            return;
        }
        match offset {
            m::SCRATCH => self.scratch = value,
            m::IRQ_MASK => self.irq_mask = value & (m::TRANSFER_QUEUED | m::TRANSFER_COMPLETED),
            m::IRQ_PENDING | m::IRQ_SOURCE => self.irq_source &= !value,
            m::CONTROL => self.write_control(value, bus.now_ns()),
            m::TRANSFER_SUBMIT if value & 1 != 0 && self.control & m::ENABLE != 0 => {
                self.queue.submit(bus.now_ns())
            }
            _ => self.request.write(offset, value, &self.build),
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        if self.gone {
            return None;
        }
        if self.irq_source & !self.irq_mask != 0 {
            return self.line_at_ns;
        }
        if self.irq_mask & m::TRANSFER_COMPLETED == 0 { self.expected_ns() } else { None }
    }

    fn reset(&mut self) {
        let stream = core::mem::take(&mut self.stream);
        *self = Self { stream, ..Self::new(self.build) };
        self.stream.cut(false);
    }
}

//! Harnesses on the simulated board: its own memory, and any other backend's.
#![allow(unsafe_code, reason = "a bus master that is simulated, and its one register")]

use super::{Failure, Harness};
use contigo::names::{AnyMemory, DeviceName, MemoryName, OpenDevice};
use contigo::sim::{BusError, Model, OnBoard, Sim, SimBoard, SimBus, SimDevice, SimSpec};
use contigo::{Backend, DevAddr, Error, Mmio, Port, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// The methods of a harness whose bus master is a simulated board's.
macro_rules! by_board {
    (|$this:ident| $board:expr) => {
        fn port(&self) -> Port {
            self.port
        }
        fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
            let $this = self;
            read($board?, self.port, addr, bytes)
        }
        fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
            let $this = self;
            write($board?, self.port, addr, bytes)
        }
        fn probe(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
            let $this = self;
            transfer($board?, self.port, addr, Transfer::Probe(bytes))
        }
        fn unowned_accesses(&self) -> Option<u64> {
            let $this = self;
            let board: Result<&SimBoard, BusError> = $board;
            board.ok().map(|board| board.counts().unowned_accesses)
        }
    };
}

/// The simulated board's own memory: two memories a block, or snooped through a coherent port.
#[derive(Debug)]
pub struct OnSim {
    board: SimBoard,
    port: Port,
    spec: SimSpec,
}

impl OnSim {
    /// Blocks like `spec`, through one of the board's ports.
    pub fn new(seed: u64, port: fn(&SimBoard) -> Port, spec: SimSpec) -> Self {
        let board = SimBoard::new(seed);
        Self { port: port(&board), board, spec }
    }

    /// The board.
    pub const fn board(&self) -> &SimBoard {
        &self.board
    }
}

impl Harness for OnSim {
    type Backend = Sim;

    fn open(&self, len_bytes: usize) -> Result<Sim, Failure> {
        Ok(self.board.memory_with(SimSpec { len_bytes, ..self.spec })?)
    }
    by_board!(|this| Ok(&this.board));
}

/// Memory that one device's opening serves, by names.
#[derive(Debug)]
pub struct OnName {
    device: OpenDevice,
    name: MemoryName,
    port: Port,
}

impl OnName {
    /// Blocks of `memory`, from `device`.
    pub fn new(device: &str, memory: &str) -> Result<Self> {
        let device = device.parse::<DeviceName>()?.open()?;
        let port =
            device.port().ok_or(Error::NotFound { what: "port of the device", among: 0.into() })?;
        Ok(Self { name: memory.parse()?, port, device })
    }

    fn board(&self) -> Result<&SimBoard, BusError> {
        self.device.board().ok_or(BusError { addr: DevAddr(0) })
    }
}

impl Harness for OnName {
    type Backend = AnyMemory;

    fn open(&self, len_bytes: usize) -> Result<AnyMemory, Failure> {
        Ok(self.device.memory(&self.name, len_bytes)?)
    }
    by_board!(|this| this.board());
}

/// Memory that is real, under a simulated master that sees what the CPU sees.
#[derive(Debug)]
pub struct OnMemory<F> {
    board: SimBoard,
    port: Port,
    open: F,
}

impl<F> OnMemory<F> {
    /// Blocks that `open` makes. The master snoops, and has all 64 address bits.
    pub fn new(open: F) -> Self {
        let board = SimBoard::new(1);
        let port = Port {
            name: "any-memory",
            addr_bits: 64,
            window: (0, u64::MAX),
            ..board.coherent_port()
        };
        Self { board, port, open }
    }
}

/// Opens a block of real memory.
pub trait Open: Sync {
    /// Its backend.
    type Backend: Backend + 'static;

    /// A new block of at least `len_bytes`.
    fn open(&self, len_bytes: usize) -> Result<Self::Backend, Failure>;
}

impl<B: Backend + 'static, F: Fn(usize) -> Result<B, Failure> + Sync> Open for F {
    type Backend = B;
    fn open(&self, len_bytes: usize) -> Result<B, Failure> {
        self(len_bytes)
    }
}

impl<F: Open> Harness for OnMemory<F> {
    type Backend = OnBoard<F::Backend>;

    fn open(&self, len_bytes: usize) -> Result<Self::Backend, Failure> {
        Ok(OnBoard::new(&self.board, self.open.open(len_bytes)?)?)
    }
    by_board!(|this| Ok(&this.board));
}

/// Memory that is not coherent, on another board's bus. The engine of that board is a program on
/// the CPU, so it writes through the caches that the memory's own board has.
#[derive(Debug)]
pub struct OnOtherBoard {
    memory: SimBoard,
    bus: SimBoard,
    port: Port,
}

impl OnOtherBoard {
    /// Blocks of one board's default memory, on another board's port that does not snoop.
    pub fn new(seed: u64) -> Self {
        let bus = SimBoard::new(seed);
        Self { memory: SimBoard::new(seed), port: bus.port(), bus }
    }
}

impl Harness for OnOtherBoard {
    type Backend = OnBoard<Sim>;

    fn open(&self, len_bytes: usize) -> Result<Self::Backend, Failure> {
        Ok(OnBoard::new(&self.bus, self.memory.memory(len_bytes)?)?)
    }
    by_board!(|this| Ok(&this.bus));
}

/// Bytes on the bus: what a master reads through `port`.
pub fn read(board: &SimBoard, port: Port, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
    transfer(board, port, addr, Transfer::Read(bytes))
}

/// Bytes on the bus: what a master writes through `port`.
pub fn write(board: &SimBoard, port: Port, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
    transfer(board, port, addr, Transfer::Write(bytes))
}

enum Transfer<'t> {
    Probe(&'t mut [u8]),
    Read(&'t mut [u8]),
    Write(&'t [u8]),
}

/// A master of one transfer, made when its only register is written.
struct Master<'t> {
    addr: DevAddr,
    transfer: Transfer<'t>,
    answered: &'t AtomicBool,
}

fn transfer(
    board: &SimBoard,
    port: Port,
    addr: DevAddr,
    transfer: Transfer<'_>,
) -> Result<(), BusError> {
    let answered = AtomicBool::new(false);
    let master = Master { addr, transfer, answered: &answered };
    let device = SimDevice::with_model(board, port, master);
    let window = device.window().map_err(|_| BusError { addr })?;
    // SAFETY: a harness's device touches what it was handed, or memory without an owner, which was
    // leaked or freed.
    unsafe { window.write32(0, 1) };
    drop(window);
    if answered.load(Ordering::Relaxed) { Ok(()) } else { Err(BusError { addr }) }
}

// SAFETY: one transfer, at the address it was made with, during the write of its register.
unsafe impl Model for Master<'_> {
    const WINDOW_BYTES: usize = 4;

    fn advance(&mut self, _bus: &mut SimBus<'_>) {}

    fn read32(&mut self, _offset: usize, _bus: &mut SimBus<'_>) -> u32 {
        0
    }

    fn write32(&mut self, _offset: usize, _value: u32, bus: &mut SimBus<'_>) {
        let answer = match &mut self.transfer {
            Transfer::Probe(bytes) => bus.probe(self.addr, bytes),
            Transfer::Read(bytes) => bus.read(self.addr, bytes),
            Transfer::Write(bytes) => bus.write(self.addr, bytes),
        };
        self.answered.store(answer.is_ok(), Ordering::Relaxed);
    }

    fn irq_at_ns(&self) -> Option<u64> {
        None
    }

    fn reset(&mut self) {}
}

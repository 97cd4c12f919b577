//! The simulated board: bus, clock and seed.

use super::SimSpec;
use super::{Faults, Sim, Struck, block::SimBlock, bus::Master, holder::Mark};
use contigo_core::{
    mem::{Holder, Port, WrongAccesses},
    types::{BaseAddr, Bus, DevAddr, Error, PhysAddr, Result, lock, shared::Shared},
};
use core::{
    fmt,
    mem::MaybeUninit,
    ops::Range,
    sync::atomic::{AtomicU32, Ordering},
};
use fastrand::Rng;
use heapless::Vec;
use spin::{Mutex, MutexGuard};

/// How many ports the board tells apart when it looks who was given a byte. Those beyond count as
/// any port; boards have fewer.
const MAX_PORTS: usize = 30;
/// How many blocks a board has at once, at most: more than any board has memories.
const MAX_BLOCKS: usize = 32;
/// How many devices' wrong accesses are told apart: as many as a board has. Those of one more are
/// every device's.
const MAX_ASTRAY: usize = 32;
/// Virtual time that one register access takes: what an uncached read across an SoC's AXI costs.
const ACCESS_NS: u64 = 100;
/// Where the first block lies: above where Zynq and Cyclone V have their DDR's first megabyte,
/// below 4 GiB.
const FIRST_BASE: u64 = 0x1000_0000;
/// Blocks begin at multiples of this, with a hole after each, so that running past one is seen.
const BASE_STEP: u64 = 0x0010_0000;

/// The settings of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimConfig {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// How often each thing goes wrong.
    pub faults: Faults,
}

/// A handle to a simulated board: its bus, its blocks of memory, the clock and the seed. Clones are
/// handles to the same board. Its memory and its devices have one each, so the board lasts as long
/// as the last of them. It lies in pages from the kernel, or in memory that the program gives
/// ([`in_memory`](Self::in_memory)).
///
/// ```
/// use contigo::{Region, sim::{Faults, SimBoard, SimConfig}};
/// let board = SimBoard::with(SimConfig { seed: 42, faults: Faults::OFTEN });
/// let region = Region::new(board.memory(1 << 20)?)?;
/// drop(board);
/// assert_eq!(region.len_bytes(), 1 << 20);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone)]
pub struct SimBoard {
    board: Shared<Board>,
}

/// What the handles share.
struct Board {
    state: Mutex<BoardState>,
    /// A hand-over was not heard, after so many tries for the lock. 0: all were.
    unheard: AtomicU32,
    faults: Faults,
    seed: u64,
    bus: Bus,
}

pub(super) struct BoardState {
    pub(super) rng: Rng,
    pub(super) now_ns: u64,
    blocks: Vec<SimBlock, MAX_BLOCKS>,
    /// The ports through which memory was handed over.
    ports: Vec<Port, MAX_PORTS>,
    next_base: u64,
    next_id: u32,
    pub(super) counts: SimCounts,
    pub(super) struck: Struck,
    /// The program provokes wrong accesses: they end no job.
    allows_wrong: bool,
    astray: Vec<Astray, MAX_ASTRAY>,
    /// Of the devices for which `astray` has no room.
    others: WrongAccesses,
}

/// A device that has touched what was not handed over to it.
struct Astray {
    device: u32,
    count: WrongAccesses,
}

/// The counts of a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimCounts {
    /// Accesses by a device to addresses where no memory is: each would be a bus error, or reach
    /// another owner's memory.
    pub stray_accesses: u64,
    /// Accesses by a device to memory that was not handed over to a device behind its port, or was
    /// handed over only to be read and is written. Behind a port that snoops too, and the driver's
    /// own memory included. No sync tells of these: the hand-over does. The rest of the bus words
    /// of an operand's first and last byte is none where a model says that it reads whole words
    /// ([`SimBus::read_words`](super::SimBus::read_words)). A job during which its device makes one
    /// fails ([`Error::WrongAccess`]).
    pub unowned_accesses: u64,
    /// Dirty lines that left the cache over what a device had written: each is a sync that was
    /// missing.
    pub evictions: u64,
    /// Lines of a driver's own memory ([`DriverBuf`](contigo_core::mem::DriverBuf)) that were
    /// cleaned over what a device had written beside the words meant: each is a status that the
    /// driver misses.
    pub lost_writes: u64,
    /// Bytes that devices read.
    pub bytes_read: u64,
    /// Bytes beside those, in the same words of the bus: read, and dropped.
    pub bytes_beside: u64,
    /// Bytes that devices wrote.
    pub bytes_written: u64,
}

impl SimCounts {
    const UNKNOWN: Self = Self {
        stray_accesses: u64::MAX,
        unowned_accesses: u64::MAX,
        evictions: u64::MAX,
        lost_writes: u64::MAX,
        bytes_read: u64::MAX,
        bytes_beside: u64::MAX,
        bytes_written: u64::MAX,
    };
}

/// No memory answers at that address: AXI's DECERR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusError {
    /// The first byte's address.
    pub addr: DevAddr,
}

impl SimBoard {
    /// A board on which nothing goes wrong; `seed` decides the evictions and the times.
    ///
    /// # Panics
    /// As [`with`](Self::with).
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with(SimConfig { seed, faults: Faults::NONE })
    }

    /// A board on which things go wrong.
    ///
    /// # Panics
    /// Where [`try_with`](Self::try_with) is an error.
    #[must_use]
    pub fn with(config: SimConfig) -> Self {
        Self::try_with(config).unwrap_or_else(|error| no_memory(error))
    }

    /// As [`with`](Self::with), for a program that goes on where there is no memory for it.
    ///
    /// # Errors
    /// [`Error::Os`]: the kernel has no memory. [`Error::Unsupported`]: the runtime was built
    /// without one (feature `linux`); [`in_memory`](Self::in_memory) needs none.
    pub fn try_with(config: SimConfig) -> Result<Self> {
        Ok(Self { board: Shared::new(Board::new(config))? })
    }

    /// As [`with`](Self::with), in memory that the program gives for ever, for a processor with no
    /// kernel below: 16 KiB are enough.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: `memory` is too small.
    pub fn in_memory(config: SimConfig, memory: &'static mut [MaybeUninit<u8>]) -> Result<Self> {
        Ok(Self { board: Shared::given(Board::new(config), memory)? })
    }

    /// A block of `len_bytes` of its memory: non-coherent, in 64-byte lines, synchronised by range.
    ///
    /// # Errors
    /// As [`memory_with`](Self::memory_with).
    pub fn memory(&self, len_bytes: usize) -> Result<Sim> {
        self.memory_with(SimSpec { len_bytes, ..SimSpec::default() })
    }

    /// A block of its memory as `spec` says, which may be one that no program should accept.
    ///
    /// # Errors
    /// [`Error::Os`] where the kernel has no memory; [`Error::TooMany`] past 32 blocks;
    /// [`Error::BlockSize`].
    pub fn memory_with(&self, spec: SimSpec) -> Result<Sim> {
        Sim::map(self, spec)
    }

    /// A block of its memory over `memory`, for a processor with no kernel below. A quarter of
    /// `memory`, in whole lines, becomes the CPU's view; the rest is what the bus sees, what the
    /// cache remembers, and who holds each byte.
    ///
    /// # Errors
    /// [`Error::BlockSize`] where `memory` is too small; [`Error::TooMany`] past 32 blocks.
    pub fn memory_over(&self, memory: &'static mut [u8]) -> Result<Sim> {
        Sim::over(self, memory)
    }

    /// Its port that does not snoop: 32 address bits and no offset, as Zynq's HP0.
    #[must_use]
    pub fn port(&self) -> Port {
        Port {
            name: "sim-hp0",
            bus: self.bus(),
            offset: 0,
            addr_bits: 32,
            window: (0, 0xFFFF_FFFF),
            coherent: false,
        }
    }

    /// Its port that snoops, as Zynq's ACP.
    #[must_use]
    pub fn coherent_port(&self) -> Port {
        Port { name: "sim-acp", coherent: true, ..self.port() }
    }

    /// Its bus. No other board's addresses are valid on it.
    #[must_use]
    pub fn bus(&self) -> Bus {
        self.board.bus
    }

    /// The seed, to print and to rerun with.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.board.seed
    }

    /// The counts so far. All `u64::MAX` where another thread has the board: no number
    /// of accesses.
    #[must_use]
    pub fn counts(&self) -> SimCounts {
        self.lock().map_or(SimCounts::UNKNOWN, |state| state.counts)
    }

    /// How often each of the board's faults struck a model so far: how often [`SimBus::strikes`]
    /// was true with its number. Two kinds that have one number count together. So a test whose
    /// numbers differ knows which faults it has seen.
    ///
    /// # Errors
    /// [`Error::Contended`].
    ///
    /// [`SimBus::strikes`]: super::SimBus::strikes
    pub fn struck(&self) -> Result<Struck> {
        Ok(self.lock()?.struck)
    }

    /// Virtual time since the board was made, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.lock().map(|state| state.now_ns).unwrap_or(u64::MAX)
    }

    /// Lets jobs end well whose device touches bytes that were not handed over to it, or no memory
    /// at all: for a test that provokes that and looks at [`counts`](Self::counts). Without it such
    /// a job ends with [`Error::WrongAccess`], and its device has been stopped.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub fn allow_wrong_accesses(&self, allow: bool) -> Result<()> {
        self.lock()?.allows_wrong = allow;
        Ok(())
    }

    /// How often `device`, or else any device, touched what was not handed over, except while the
    /// program allowed it. [`Error::Contended`] also where the board did not hear of a hand-over
    /// since this was asked last.
    pub(super) fn wrong_accesses(&self, device: Option<u32>) -> Result<WrongAccesses> {
        let state = self.lock()?;
        if let tries @ 1.. = self.board.unheard.swap(0, Ordering::Relaxed) {
            return Err(Error::Contended { tries });
        }
        let of_it = |astray: &&Astray| device.is_none_or(|device| astray.device == device);
        Ok(state.astray.iter().filter(of_it).fold(state.others, |sum, Astray { count, .. }| {
            WrongAccesses { unowned: sum.unowned + count.unowned, stray: sum.stray + count.stray }
        }))
    }

    /// What goes wrong.
    pub(super) fn faults(&self) -> &Faults {
        &self.board.faults
    }

    pub(super) fn lock(&self) -> Result<MutexGuard<'_, BoardState>> {
        lock::acquire(&self.board.state)
    }

    /// Puts a block on the bus and returns its number.
    pub(super) fn attach(&self, block: SimBlock) -> Result<SimBlock> {
        if self.bus() == Bus::Sim(0) {
            return Err(Error::TooMany {
                what: "simulated boards in the life of a program",
                most: u32::MAX.into(),
            });
        }
        let mut state = self.lock()?;
        let block = SimBlock { id: state.next_id, ..block };
        state.blocks.push(block).map_err(|_| Error::TooMany {
            what: "blocks on one simulated board",
            most: MAX_BLOCKS as u64,
        })?;
        state.next_id = state.next_id.wrapping_add(1);
        Ok(block)
    }

    /// `holder` has `range` of `block` from here on. Where the board's lock cannot be had, nothing
    /// changes, and the next `wrong_accesses` is an error.
    pub(super) fn hold(&self, block: &SimBlock, range: Range<usize>, holder: Holder<'_>) {
        match self.lock() {
            Ok(mut state) => state.hold(block, range, holder),
            Err(Error::Contended { tries }) => self.board.unheard.store(tries, Ordering::Relaxed),
            Err(_) => {}
        }
    }

    /// Takes a block from the bus: a device that still uses its addresses is now astray.
    pub(super) fn detach(&self, id: u32) {
        // A lock that cannot be had leaves the block on the bus, so its memory must stay: see
        // `Sim`'s `Drop`.
        if let Ok(mut state) = self.lock() {
            state.blocks.retain(|block| block.id != id);
        }
    }

    pub(super) fn is_attached(&self, id: u32) -> bool {
        self.lock().map_or(true, |state| state.blocks.iter().any(|block| block.id == id))
    }

    /// The next free place on the bus for `len_bytes`.
    pub(super) fn place(&self, len_bytes: usize) -> Result<BaseAddr> {
        let mut state = self.lock()?;
        let base = state.next_base;
        let room = (len_bytes as u64).checked_next_multiple_of(BASE_STEP).unwrap_or(u64::MAX);
        // A base that no port reaches is refused when a job starts, with its numbers.
        state.next_base = base.saturating_add(room).saturating_add(BASE_STEP);
        Ok(BaseAddr::Phys(PhysAddr(base)))
    }
}

impl Board {
    fn new(config: SimConfig) -> Self {
        let state = BoardState {
            rng: Rng::with_seed(config.seed),
            now_ns: 0,
            blocks: Vec::new(),
            ports: Vec::new(),
            next_base: FIRST_BASE,
            next_id: 1,
            counts: SimCounts::default(),
            struck: Struck::default(),
            allows_wrong: false,
            astray: Vec::new(),
            others: WrongAccesses::default(),
        };
        Self {
            state: Mutex::new(state),
            unheard: AtomicU32::new(0),
            faults: config.faults,
            seed: config.seed,
            bus: next_bus(),
        }
    }
}

/// As a heap ends a program that it has no memory for.
#[cold]
#[allow(
    clippy::panic,
    reason = "a test has nothing to do without its board; other programs call the functions with errors"
)]
pub(super) fn no_memory(error: Error) -> ! {
    panic!("no memory for a simulated board, or for a device on it: {error}")
}

/// A number that no other board in this process has. When all are used up, 0, on which no memory is
/// granted.
fn next_bus() -> Bus {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    Bus::Sim(
        NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1))
            .unwrap_or(0),
    )
}

impl BoardState {
    /// One register access takes its time.
    pub(super) const fn tick(&mut self) {
        self.now_ns = self.now_ns.saturating_add(ACCESS_NS);
    }

    pub(super) fn read(
        &mut self,
        master: Master<'_>,
        addr: DevAddr,
        to: &mut [u8],
        beat: bool,
    ) -> Result<(), BusError> {
        let (block, offset) = self.access(master, addr, to.len())?;
        let (range, port) = (offset..offset + to.len(), self.number(master.port));
        let held = if beat {
            block.is_partly_held(range, port)
        } else {
            block.is_held(range, port, false)
        };
        self.look_who_holds(held, master);
        block.device_read(offset, to, master.port.coherent);
        self.counts.bytes_read += to.len() as u64;
        Ok(())
    }

    pub(super) fn read_beside(
        &mut self,
        master: Master<'_>,
        addr: DevAddr,
        len: usize,
    ) -> Result<(), BusError> {
        self.access(master, addr, len)?;
        self.counts.bytes_beside += len as u64;
        Ok(())
    }

    pub(super) fn probe(
        &mut self,
        port: &Port,
        addr: DevAddr,
        to: &mut [u8],
    ) -> Result<(), BusError> {
        let (block, offset) = self.find(port, addr, to.len()).ok_or(BusError { addr })?;
        block.device_read(offset, to, port.coherent);
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        master: Master<'_>,
        addr: DevAddr,
        from: &[u8],
    ) -> Result<(), BusError> {
        let (block, offset) = self.access(master, addr, from.len())?;
        self.look_who_holds(
            block.is_held(offset..offset + from.len(), self.number(master.port), true),
            master,
        );
        block.device_write(offset, from, master.port.coherent);
        self.counts.bytes_written += from.len() as u64;
        Ok(())
    }

    /// `holder` has `range` of a block from here on.
    pub(super) fn hold(&mut self, block: &SimBlock, range: Range<usize>, holder: Holder<'_>) {
        let mark = match holder {
            Holder::None => Mark::NONE,
            Holder::Device { port, writes } => {
                if let Some(port) = port
                    && !self.ports.contains(port)
                {
                    // A full table makes it any port: less is noticed, and nothing wrongly.
                    let _ = self.ports.push(*port);
                }
                Mark::device(port.and_then(|port| self.number(port)), writes)
            }
        };
        block.mark(range, mark);
    }

    fn number(&self, port: &Port) -> Option<usize> {
        self.ports.iter().position(|known| known == port)
    }

    fn look_who_holds(&mut self, held: bool, master: Master<'_>) {
        if !held {
            self.counts.unowned_accesses += 1;
            self.astray(master.device, WrongAccesses { unowned: 1, stray: 0 });
        }
    }

    /// A device's access: a stray one is counted.
    fn access(
        &mut self,
        master: Master<'_>,
        addr: DevAddr,
        len: usize,
    ) -> Result<(SimBlock, usize), BusError> {
        self.find(master.port, addr, len).ok_or_else(|| {
            self.counts.stray_accesses += 1;
            self.astray(master.device, WrongAccesses { unowned: 0, stray: 1 });
            BusError { addr }
        })
    }

    /// A device has touched what was not handed over to it: the job layer asks at the job's end.
    #[cold]
    fn astray(&mut self, device: u32, WrongAccesses { unowned, stray }: WrongAccesses) {
        if self.allows_wrong {
            return;
        }
        let known = self.astray.iter().position(|astray| astray.device == device);
        let at = known.or_else(|| {
            let new = Astray { device, count: WrongAccesses::default() };
            self.astray.push(new).ok().map(|()| self.astray.len() - 1)
        });
        let count = match at.and_then(|at| self.astray.get_mut(at)) {
            Some(astray) => &mut astray.count,
            None => &mut self.others,
        };
        count.unowned += unowned;
        count.stray += stray;
    }

    fn find(&self, port: &Port, addr: DevAddr, len: usize) -> Option<(SimBlock, usize)> {
        let mut found = self.blocks.iter().filter_map(|block| {
            block.find(addr.0, len, port.offset).map(|offset| (*block, offset))
        });
        // Where two blocks answer to one address, neither does: it could be the wrong one.
        match (found.next(), found.next()) {
            (Some(only), None) if port.carries(addr, len) => Some(only),
            _ => None,
        }
    }
}

impl fmt::Debug for SimBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimBoard")
            .field("seed", &self.board.seed)
            .field("faults", &self.board.faults)
            .finish_non_exhaustive()
    }
}

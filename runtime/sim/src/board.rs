//! The simulated board: bus, clock and seed.

use super::block::SimBlock;
use super::faults::Faults;
use super::state::{Astray, BASE_STEP, BoardState, MAX_BLOCKS, SimCounts};
use contigo_core::mem::{Holder, Port, WrongAccesses};
use contigo_core::types::shared::Shared;
use contigo_core::types::{BaseAddr, Bus, Error, PhysAddr, Result, lock};
use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use spin::{Mutex, MutexGuard};

/// A handle to a simulated board: its bus, its blocks of memory, the clock and the seed. Clones are
/// handles to the same board. Each memory and each device of the board holds one, so the board
/// lives until the last of them is dropped. It lies in pages from the kernel, or in memory that the
/// program gives ([`in_memory`](Self::in_memory)).
///
/// ```
/// use contigo::{Region, sim::{Faults, SimBoard}};
/// let board = SimBoard::with(42, Faults::OFTEN);
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
    /// Not 0: the board missed a hand-over after so many tries for the lock. 0: it missed none.
    unheard: AtomicU32,
    faults: Faults,
    seed: u64,
    bus: Bus,
}

impl SimBoard {
    /// A board on which nothing goes wrong; `seed` decides the evictions and the times.
    ///
    /// # Panics
    /// As [`with`](Self::with).
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with(seed, Faults::NONE)
    }

    /// A board on which things go wrong, as often as `faults` says; `seed` decides everything that
    /// is left to chance.
    ///
    /// # Panics
    /// Where [`try_with`](Self::try_with) is an error.
    #[must_use]
    pub fn with(seed: u64, faults: Faults) -> Self {
        Self::try_with(seed, faults).unwrap_or_else(|error| no_memory(error))
    }

    /// As [`with`](Self::with), for a program that continues if there is no memory for the board.
    ///
    /// # Errors
    /// [`Error::Os`]: the kernel has no memory. [`Error::Unsupported`]: the runtime was built
    /// without a kernel (feature `linux`); [`in_memory`](Self::in_memory) needs none.
    pub fn try_with(seed: u64, faults: Faults) -> Result<Self> {
        Ok(Self { board: Shared::new(Board::new(seed, faults))? })
    }

    /// As [`with`](Self::with), in memory that the program gives up for good, for a processor
    /// without a kernel: 16 KiB are enough.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: `memory` is too small.
    pub fn in_memory(
        seed: u64,
        faults: Faults,
        memory: &'static mut [MaybeUninit<u8>],
    ) -> Result<Self> {
        Ok(Self { board: Shared::given(Board::new(seed, faults), memory)? })
    }

    /// The board's port that does not snoop: 32 address bits and no offset, as Zynq's HP0.
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

    /// The board's port that snoops, as Zynq's ACP.
    #[must_use]
    pub fn coherent_port(&self) -> Port {
        Port { name: "sim-acp", coherent: true, ..self.port() }
    }

    /// The board's bus. No other board's addresses are valid on it.
    #[must_use]
    pub fn bus(&self) -> Bus {
        self.board.bus
    }

    /// The seed, to print and to rerun with.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.board.seed
    }

    /// The counts so far. All are `u64::MAX`, which no count reaches, if another thread holds the
    /// board.
    #[must_use]
    pub fn counts(&self) -> SimCounts {
        self.lock().map_or(SimCounts::UNKNOWN, |state| state.counts)
    }

    /// Virtual time since the board was made, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.lock().map(|state| state.now_ns).unwrap_or(u64::MAX)
    }

    /// Lets a job succeed though its device touched bytes that were not handed over to it, or no
    /// memory at all: for a test that provokes that and reads [`counts`](Self::counts). Without it
    /// such a job ends with [`Error::WrongAccess`], and its device has been stopped.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub fn allow_wrong_accesses(&self, allow: bool) -> Result<()> {
        self.lock()?.allows_wrong = allow;
        Ok(())
    }

    /// How often `device` (`None`: any device) touched memory that was not handed over to it,
    /// except while the program allowed it. [`Error::Contended`] also if the board missed a
    /// hand-over since the last call.
    pub(super) fn wrong_accesses(&self, device: Option<u32>) -> Result<WrongAccesses> {
        let state = self.lock()?;
        if let tries @ 1.. = self.board.unheard.swap(0, Ordering::Relaxed) {
            return Err(Error::Contended { tries });
        }
        let of_it = |astray: &&Astray| device.is_none_or(|device| astray.device == device);
        Ok(state.astray.iter().filter(of_it).fold(state.others, |sum, Astray { count, .. }| {
            WrongAccesses {
                unowned: sum.unowned + count.unowned,
                stray: sum.stray + count.stray,
                uncomputed: sum.uncomputed + count.uncomputed,
            }
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

    /// Records that `holder` holds `range` of `block` from now on. If the board's lock cannot be
    /// acquired, nothing changes, and the next `wrong_accesses` returns an error.
    pub(super) fn hold(&self, block: &SimBlock, range: Range<usize>, holder: Holder<'_>) {
        match self.lock() {
            Ok(mut state) => state.hold(block, range, holder),
            Err(Error::Contended { tries }) => self.board.unheard.store(tries, Ordering::Relaxed),
            Err(_) => {}
        }
    }

    /// Removes a block from the bus. A device that still uses its addresses is then astray.
    pub(super) fn detach(&self, id: u32) {
        // If the lock cannot be acquired, the block stays on the bus, so its memory must stay: see
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
    fn new(seed: u64, faults: Faults) -> Self {
        Self {
            state: Mutex::new(BoardState::new(seed)),
            unheard: AtomicU32::new(0),
            faults,
            seed,
            bus: next_bus(),
        }
    }
}

/// Ends the program, as a failed heap allocation does.
#[cold]
#[allow(
    clippy::panic,
    reason = "a test has nothing to do without its board; other programs call the functions with \
        errors"
)]
pub(super) fn no_memory(error: Error) -> ! {
    panic!("no memory for a simulated board, or for a device on it: {error}")
}

/// A number that no other board in this process has; once all are used, 0, on which no memory is
/// granted.
fn next_bus() -> Bus {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    Bus::Sim(
        NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1))
            .unwrap_or(0),
    )
}

impl fmt::Debug for SimBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimBoard")
            .field("seed", &self.board.seed)
            .field("faults", &self.board.faults)
            .finish_non_exhaustive()
    }
}

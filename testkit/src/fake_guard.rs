//! The kernel module `contigo` as its header describes it, with files in memory in the place of
//! dma-bufs: what a test of the runtime asks that has no board. The module itself is tested in the
//! lab.
#![allow(unsafe_code, reason = "the fake is a kernel: what it says of addresses is what its device reads")]
#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a call that the real module would refuse in another way is a test's mistake"
)]

use contigo::{
    Align, Error, Guard,
    linux::guard::seam::{
        Fd, GuardKernel, INFO_COHERENT, INFO_TRANSLATED, Info, MAX_STEPS, Request, STEP_POLL, STEP_POLL_NOT, STEP_WRITE, SegmentAt, Step,
        SyncRange,
    },
};
use nix::libc;
use std::{
    fs::File,
    os::{
        fd::{AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::FileExt,
    },
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The name that is bound where a test names none.
pub const NAME: &str = "40000000.dma-port";
/// Where the first import lies; each further one 16 MiB higher.
const FIRST_ADDR: u64 = 0x1000_0000;
const STEP: u64 = 0x100_0000;
/// The offset that `dma-ranges` adds where it translates.
pub const OFFSET: u64 = 0x8000_0000;
const MAX_IMPORTS: usize = 256;
/// `CONTIGO_MAX_POLL_US`.
const MAX_POLL_US: u64 = 1_000_000;

/// The device and the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardConfig {
    /// The name that is bound.
    pub name: &'static str,
    /// `dma-coherent`.
    pub coherent: bool,
    /// `dma-ranges`.
    pub translated: bool,
    /// The module's ABI.
    pub abi: u32,
    /// An import lies in runs of so many bytes, with a hole after each; 0: in one.
    pub run_bytes: u64,
    /// The machine's cache write-back granule.
    pub granule: Align,
    /// A module that lies: it says that it wrote so many segments more than it did.
    pub more_segments: u32,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self { name: NAME, coherent: false, translated: false, abi: 1, run_bytes: 0, granule: Align::LINE, more_segments: 0 }
    }
}

/// A call, to be refused or found in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Open,
    Duplicate,
    GetInfo,
    SetDmaBits,
    Import,
    GetSegments,
    Release,
    Sync,
    Arm,
    SetBusMaster,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Imported {
        handle: u32,
        addr: u64,
        len_bytes: u64,
    },
    Released(u32),
    /// A range of an import, for the CPU or for the device.
    Synced {
        handle: u32,
        for_cpu: bool,
        start: u64,
        end: u64,
    },
    Armed(Vec<Step>),
    DmaBits(u32),
    BusMaster(bool),
    Closed,
}

#[derive(Debug)]
struct Imported {
    handle: u32,
    addr: u64,
    len_bytes: u64,
    file: File,
}

#[derive(Debug, Default)]
struct State {
    refuse: Option<(Call, i32)>,
    imports: Vec<Imported>,
    log: Vec<Event>,
    open: bool,
    imported: u32,
}

/// The kernel. Clones share it.
#[derive(Clone, Debug)]
pub struct FakeGuard {
    config: GuardConfig,
    state: Arc<Mutex<State>>,
}

/// The guard's open file: closing it gives up everything.
#[derive(Debug)]
struct GuardFile {
    guard: FakeGuard,
    _fd: OwnedFd,
}

impl Drop for GuardFile {
    fn drop(&mut self) {
        let mut state = self.guard.lock();
        state.open = false;
        state.imports.clear();
        state.log.push(Event::Closed);
    }
}

impl FakeGuard {
    /// A kernel with this one guard.
    #[must_use]
    pub fn new(config: GuardConfig) -> Self {
        Self { config, state: Arc::default() }
    }

    /// Opens the guard.
    ///
    /// # Errors
    /// As [`Guard::open`].
    pub fn open_guard(&self) -> Result<Guard, Error> {
        Guard::open_from(Arc::new(self.clone()), self.config.name)
    }

    /// From now on this call fails.
    pub fn refuse(&self, call: Call, errno: i32) {
        self.lock().refuse = Some((call, errno));
    }

    /// The events since the last time.
    pub fn log(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock().log)
    }

    /// How many dma-bufs are imported.
    pub fn imports(&self) -> usize {
        self.lock().imports.len()
    }

    /// The device reads; the address that was refused.
    ///
    /// # Errors
    /// Nothing is imported there.
    pub fn device_read(&self, addr: u64, bytes: &mut [u8]) -> Result<(), u64> {
        let state = self.lock();
        let (import, at) = self.find(&state, addr, bytes.len()).ok_or(addr)?;
        import.file.read_exact_at(bytes, at).map_err(|_| addr)
    }

    /// The device writes.
    ///
    /// # Errors
    /// As [`device_read`](Self::device_read).
    pub fn device_write(&self, addr: u64, bytes: &[u8]) -> Result<(), u64> {
        let state = self.lock();
        let (import, at) = self.find(&state, addr, bytes.len()).ok_or(addr)?;
        import.file.write_all_at(bytes, at).map_err(|_| addr)
    }

    fn find<'s>(&self, state: &'s State, addr: u64, len: usize) -> Option<(&'s Imported, u64)> {
        assert_eq!(self.config.run_bytes, 0, "a device here reads what is contiguous");
        let inside = |import: &&Imported| import.addr <= addr && addr + len as u64 <= import.addr + import.len_bytes;
        state.imports.iter().find(inside).map(|import| (import, addr - import.addr))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runs(&self, import: &Imported) -> Vec<SegmentAt> {
        match self.config.run_bytes {
            0 => vec![SegmentAt { addr: import.addr, len_bytes: import.len_bytes }],
            run => (0..import.len_bytes.div_ceil(run)).map(|n| SegmentAt { addr: import.addr + 2 * n * run, len_bytes: run }).collect(),
        }
    }
}

fn refused(state: &State, call: Call) -> Result<(), i32> {
    match state.refuse {
        Some((refused, errno)) if refused == call => Err(errno),
        _ => Ok(()),
    }
}

// SAFETY: 1. The fake's device reads and writes the file at exactly the addresses that were said,
// until the release. 2. It has no caches: nothing is to be done.
unsafe impl GuardKernel for FakeGuard {
    fn open(&self, name: &str) -> Result<Fd, Error> {
        let mut state = self.lock();
        let os = |errno| Error::Os { call: "open(/dev/contigo/)", errno };
        refused(&state, Call::Open).map_err(os)?;
        if name != self.config.name {
            return Err(Error::NotFound { what: "guard of the kernel module contigo", among: 1 });
        }
        if std::mem::replace(&mut state.open, true) {
            return Err(Error::InUse { errno: libc::EBUSY });
        }
        let fd = File::open("/dev/null").map_err(|error| os(error.raw_os_error().unwrap_or(libc::EMFILE)))?;
        // SAFETY: the file has its descriptor until it is dropped.
        Ok(unsafe { Fd::owned_by(fd.as_raw_fd(), GuardFile { guard: self.clone(), _fd: fd.into() }) })
    }

    fn duplicate(&self, fd: i32) -> Result<Fd, i32> {
        refused(&self.lock(), Call::Duplicate)?;
        // SAFETY: a test's descriptor, open while the runtime calls; a wrong one is refused by the
        // kernel.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let fd = fd.try_clone_to_owned().map_err(|error| error.raw_os_error().unwrap_or(libc::EBADF))?;
        // SAFETY: the descriptor is its own owner.
        Ok(unsafe { Fd::owned_by(fd.as_raw_fd(), fd) })
    }

    fn granule(&self) -> Align {
        self.config.granule
    }

    fn ioctl(&self, file: &Fd, request: Request<'_>) -> Result<(), i32> {
        assert!(file.owner::<GuardFile>().is_some(), "a guard's call");
        let mut state = self.lock();
        match request {
            Request::GetInfo(info) => {
                refused(&state, Call::GetInfo)?;
                let flags = if self.config.coherent { INFO_COHERENT } else { 0 } | if self.config.translated { INFO_TRANSLATED } else { 0 };
                *info = Info { abi: self.config.abi, flags, dma_bits: 32, dma_limit: u64::MAX, ..Info::default() };
                info.window_len_bytes[0] = 0x1000;
            }
            Request::SetDmaBits(bits) => {
                refused(&state, Call::SetDmaBits)?;
                if !state.imports.is_empty() {
                    return Err(libc::EBUSY);
                }
                if !(12..=64).contains(&bits) {
                    return Err(libc::EINVAL);
                }
                state.log.push(Event::DmaBits(bits));
            }
            Request::Import(import) => {
                refused(&state, Call::Import)?;
                if import.flags != 0 {
                    return Err(libc::EINVAL);
                }
                if state.imports.len() == MAX_IMPORTS {
                    return Err(libc::ENOSPC);
                }
                // SAFETY: as in `duplicate`.
                let fd = unsafe { BorrowedFd::borrow_raw(import.fd) };
                let file = File::from(fd.try_clone_to_owned().map_err(|_| libc::EBADF)?);
                let len_bytes = file.metadata().map_err(|error| error.raw_os_error().unwrap_or(libc::EBADF))?.len();
                let offset = if self.config.translated { OFFSET } else { 0 };
                let addr = FIRST_ADDR + u64::from(state.imported) * STEP + offset;
                state.imported += 1;
                let handle = state.imported;
                let imported = Imported { handle, addr, len_bytes, file };
                (import.handle, import.addr, import.len_bytes) = (handle, addr, len_bytes);
                import.segments = self.runs(&imported).len().try_into().map_err(|_| libc::E2BIG)?;
                state.imports.push(imported);
                state.log.push(Event::Imported { handle, addr, len_bytes });
            }
            Request::GetSegments { handle, first, found, count } => {
                refused(&state, Call::GetSegments)?;
                let import = state.imports.iter().find(|import| import.handle == handle).ok_or(libc::ENOENT)?;
                let runs = self.runs(import);
                let rest = runs.get(first as usize..).unwrap_or_default();
                let some = rest.len().min(found.len());
                found[..some].copy_from_slice(&rest[..some]);
                *count = u32::try_from(some).map_err(|_| libc::E2BIG)?.wrapping_add(self.config.more_segments);
            }
            Request::Release(handle) => {
                refused(&state, Call::Release)?;
                let at = state.imports.iter().position(|import| import.handle == handle).ok_or(libc::ENOENT)?;
                state.imports.remove(at);
                state.log.push(Event::Released(handle));
            }
            Request::Sync(ranges) => {
                refused(&state, Call::Sync)?;
                for range in ranges {
                    let event = synced(&state, range)?;
                    state.log.push(event);
                }
            }
            Request::Arm(steps) => {
                refused(&state, Call::Arm)?;
                armable(steps)?;
                state.log.push(Event::Armed(steps.to_vec()));
            }
            Request::SetBusMaster(on) => {
                refused(&state, Call::SetBusMaster)?;
                state.log.push(Event::BusMaster(on));
            }
        }
        Ok(())
    }
}

/// `contigo_sync`'s checks.
fn synced(state: &State, range: &SyncRange) -> Result<Event, i32> {
    let import = state.imports.iter().find(|import| import.handle == range.handle).ok_or(libc::ENOENT)?;
    let end = range.offset_bytes.checked_add(range.len_bytes).ok_or(libc::EINVAL)?;
    if range.len_bytes == 0 || end > import.len_bytes || ![1, 2].contains(&range.flags) {
        return Err(libc::EINVAL);
    }
    Ok(Event::Synced { handle: range.handle, for_cpu: range.flags == 1, start: range.offset_bytes, end })
}

/// `contigo_program_check`'s checks, for one window of 4 KiB.
fn armable(steps: &[Step]) -> Result<(), i32> {
    if steps.len() > MAX_STEPS {
        return Err(libc::E2BIG);
    }
    for step in steps {
        let is_poll = [STEP_POLL, STEP_POLL_NOT].contains(&step.kind);
        let untimely = !is_poll && step.timeout_us != 0;
        if !(is_poll || step.kind == STEP_WRITE) || step.mask == 0 || step.value & !step.mask != 0 || untimely {
            return Err(libc::EINVAL);
        }
        if step.window != 0 || step.offset_bytes >= 0x1000 || step.offset_bytes % 4 != 0 {
            return Err(libc::ENXIO);
        }
    }
    let polled: u64 = steps.iter().map(|step| u64::from(step.timeout_us)).sum();
    if polled > MAX_POLL_US { Err(libc::EINVAL) } else { Ok(()) }
}

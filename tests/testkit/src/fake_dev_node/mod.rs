//! The kernel module `contigo` as its header describes it, with files in memory in the place of
//! dma-bufs: what a test of the runtime asks that has no board. The module itself is tested in the
//! lab.
#![allow(
    unsafe_code,
    reason = "the fake is a kernel: what it says of addresses is what its device reads"
)]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a call that the real module would refuse in another way is a test's mistake"
)]

#[allow(dead_code, unreachable_pub, reason = "the runtime uses what the fake does not")]
#[path = "../../../../runtime/core/src/linux/dev_node/abi.rs"]
mod abi;
mod request;

pub use self::abi::Step;

use self::abi::{Alloc, EventFd, Info, SegmentAt, SyncRange, Window};
use self::request::Request;
use crate::fake_dma_heap::{check_flags, page_bytes};
use contigo::Error;
use contigo::linux::dev_node::DevNode;
use contigo::linux::os::seam::{Fd, MmapRaw, Running, SystemCalls};
use nix::libc;
use nix::sys::ioctl::ioctl_num_type;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

// The numbers of `kernel-helpers/uapi/contigo.h`, by the fake's own reading of it.
const MAX_BUFFERS: u32 = 256;
const MAX_STEPS: usize = 32;
const MAX_WINDOWS: usize = 6;
const WINDOW_MMAP: u32 = 1;
const WINDOW_STOP: u32 = 1 << 1;
const INFO_COHERENT: u32 = 1;
const INFO_TRANSLATED: u32 = 1 << 2;
const INFO_RESET: u32 = 1 << 3;
const INFO_ARMED: u32 = 1 << 7;
const ALLOC_COHERENT: u32 = 1;
const STEP_WRITE: u32 = 1;
const STEP_POLL: u32 = 2;
const STEP_POLL_NOT: u32 = 3;
const STEP_ELSE: u32 = 4;
/// `sizeof(struct contigo_info)`.
const INFO_BYTES: u32 = 184;

/// The name that is bound where a test names none.
pub const NAME: &str = "40000000.gemm8";
/// How long each window of registers is, and how far apart the windows are in the file.
pub const WINDOW_BYTES: u64 = 0x1000;
const WINDOW_STEP: u64 = 0x1_0000;
/// Where the first import lies; each further one 16 MiB higher.
const FIRST_ADDR: u64 = 0x1000_0000;
const STEP: u64 = 0x100_0000;
/// The offset that `dma-ranges` adds where it translates.
pub const OFFSET: u64 = 0x8000_0000;
/// Where the memory that is allocated first is in the contigo device's file, as the module has it.
const HANDLE_STEP: u64 = 1 << 35;
/// `CONTIGO_MAX_POLL_US`.
const MAX_POLL_US: u64 = 1_000_000;

/// The device and the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevNodeConfig {
    /// The name that is bound.
    pub name: &'static str,
    /// `dma-coherent`.
    pub coherent: bool,
    /// `dma-ranges`.
    pub translated: bool,
    /// An import lies in runs of so many bytes, with a hole after each; 0: in one.
    pub run_bytes: u64,
    /// `granule_bytes`.
    pub granule_bytes: u32,
    /// `max_mib`, in bytes: what is allocated, imported and kept together.
    pub max_bytes: u64,
    /// A module that lies: so much is added to where allocated memory is in its file.
    pub more_offset: u64,
    /// A module that lies: it says that it wrote so many segments more than it did.
    pub more_segments: u32,
    /// A module that lies: how much of its structure it says it wrote.
    pub argsz: u32,
    /// How many windows of registers there are.
    pub windows: u32,
    /// Bit N: window N cannot be mapped.
    pub hidden: u32,
    /// A module that lies: window 1 begins where window 0 does.
    pub overlapping: bool,
    /// How many interrupts there are.
    pub interrupts: u32,
    /// It has a reset.
    pub can_reset: bool,
}

impl Default for DevNodeConfig {
    fn default() -> Self {
        Self {
            name: NAME,
            coherent: false,
            translated: false,
            run_bytes: 0,
            granule_bytes: 64,
            max_bytes: 1 << 30,
            more_offset: 0,
            more_segments: 0,
            argsz: INFO_BYTES,
            windows: 1,
            hidden: 0,
            overlapping: false,
            interrupts: 1,
            can_reset: false,
        }
    }
}

/// What was done. `Closed`: the last descriptor is gone, and so many buffers are kept, because
/// nothing stopped the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Allocated { handle: u32, addr: u64, len_bytes: u64, coherent: bool },
    Exported(u32),
    Imported { handle: u32, addr: u64, len_bytes: u64 },
    Released(u32),
    Synced { handle: u32, for_cpu: bool, start: u64, end: u64 },
    Armed(Vec<Step>),
    DmaBits(u32),
    Unmasked(u32),
    Reset,
    Closed { kept: usize },
}

/// Whose memory a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Imported,
    Allocated { coherent: bool },
}

#[derive(Debug)]
struct Imported {
    whose: Whose,
    handle: u32,
    addr: u64,
    len_bytes: u64,
    file: File,
}

#[derive(Debug, Default)]
struct State {
    refuse: Option<(&'static str, i32)>,
    imports: Vec<Imported>,
    kept: Vec<Imported>,
    log: Vec<Event>,
    open: bool,
    taken_away: bool,
    armed: Vec<Step>,
    imported: u32,
    /// Bit N: interrupt N is masked; waits to be unmasked; came, and was not read yet.
    masked: u32,
    pending: u32,
    came: u32,
    /// Bit N: a call waits for interrupt N, whose eventfd is not signalled then.
    waited: u32,
    events: Vec<(u32, File)>,
    /// The kernel's end of the open file: a byte to read there is an interrupt that has come.
    bell: Option<UnixStream>,
}

/// The kernel. Clones share it.
#[derive(Clone, Debug)]
pub struct FakeDevNode {
    config: DevNodeConfig,
    state: Arc<Mutex<State>>,
    /// The registers.
    registers: Arc<File>,
    /// `SET_EVENTFD` is asked, and is not answered before this is false.
    held: Arc<AtomicBool>,
}

/// The contigo device's open file: a socket, for its poll. Closing it is the end, as the header has
/// it. A mapping does not hold it here.
#[derive(Debug)]
struct DevNodeFile {
    dev_node: FakeDevNode,
    bell: UnixStream,
}

impl Drop for DevNodeFile {
    fn drop(&mut self) {
        self.dev_node.close();
    }
}

impl FakeDevNode {
    /// A kernel with this one contigo device.
    pub fn new(config: DevNodeConfig) -> Self {
        let registers = memfd_create("contigo-registers", MFdFlags::MFD_CLOEXEC).unwrap();
        let registers = File::from(registers);
        registers.set_len(WINDOW_STEP * MAX_WINDOWS as u64).unwrap();
        Self { config, state: Arc::default(), registers: Arc::new(registers), held: Arc::default() }
    }

    /// The program ends: its file is closed, whatever it forgot that has a handle to it.
    pub fn end_program(&self) {
        self.close();
    }

    fn close(&self) {
        let mut state = self.lock();
        (state.open, state.bell, state.came) = (false, None, 0);
        state.events.clear();
        let imports = std::mem::take(&mut state.imports);
        if self.config.can_reset || !std::mem::take(&mut state.armed).is_empty() {
            state.kept.clear();
        } else {
            state.kept.extend(imports);
        }
        let kept = state.kept.len();
        state.log.push(Event::Closed { kept });
    }

    /// The register at `offset` of window `window`, as the device has it.
    pub fn register(&self, window: u32, offset: u64) -> u32 {
        let mut word = [0; 4];
        self.registers.read_exact_at(&mut word, at(window) + offset).unwrap();
        u32::from_ne_bytes(word)
    }

    /// The device changes it.
    pub fn set_register(&self, window: u32, offset: u64, value: u32) {
        self.registers.write_all_at(&value.to_ne_bytes(), at(window) + offset).unwrap();
    }

    /// The device raises an interrupt; one that is masked waits.
    pub fn interrupt(&self, number: u32) {
        let mut state = self.lock();
        state.pending |= 1 << number;
        state.ring();
    }

    /// `CONTIGO_WAIT`.
    fn wait(&self, file: &Fd, interrupts: u32, timeout_us: u32) -> Result<u32, i32> {
        let file = file.owner::<DevNodeFile>().unwrap_or_else(|| panic!("a contigo device's file"));
        let deadline = Instant::now() + Duration::from_micros(timeout_us.into());
        let mut state = self.lock();
        refused(&state, "ioctl(CONTIGO_WAIT)")?;
        if interrupts == 0 || interrupts >> self.config.interrupts != 0 {
            return Err(libc::EINVAL);
        }
        if timeout_us > 0 {
            state.waited |= interrupts;
            state.masked &= !interrupts;
            state.log.push(Event::Unmasked(interrupts));
            state.ring();
        }
        while state.came & interrupts == 0 && !state.taken_away && Instant::now() < deadline {
            drop(state);
            std::thread::sleep(Duration::from_micros(100));
            state = self.lock();
        }
        let came = state.came & interrupts;
        state.waited &= !interrupts;
        state.came &= !came;
        if came != 0 && state.came == 0 {
            let _ = (&file.bell).read(&mut [0; 64]);
        }
        if state.taken_away { Err(libc::ENODEV) } else { Ok(came) }
    }

    /// Which interrupts are masked.
    pub fn masked(&self) -> u32 {
        self.lock().masked
    }

    /// From now on, who asks for an eventfd waits, until the same with `false`.
    pub fn hold_eventfds(&self, hold: bool) {
        self.held.store(hold, Ordering::Release);
    }

    /// How many eventfds there are.
    pub fn eventfds(&self) -> usize {
        self.lock().events.len()
    }

    /// The device is taken from the file: every call answers ENODEV, poll says POLLHUP, and the
    /// registers are ones.
    pub fn take_away(&self) {
        let mut state = self.lock();
        (state.taken_away, state.bell) = (true, None);
        for (_, event) in &mut state.events {
            let _ = event.write(&1_u64.to_ne_bytes());
        }
        let ones = vec![0xFF; usize::try_from(WINDOW_STEP).unwrap() * MAX_WINDOWS];
        self.registers.write_all_at(&ones, 0).unwrap();
    }

    /// How many buffers are kept, because nothing stopped the device.
    pub fn kept(&self) -> usize {
        self.lock().kept.len()
    }

    /// Opens the contigo device.
    pub fn open_dev_node(&self) -> Result<DevNode, Error> {
        DevNode::open_from(Arc::new(self.clone()), self.config.name)
    }

    /// From now on this call fails, which has its name in the runtime's errors, and no other one.
    pub fn refuse(&self, call: &'static str, errno: i32) {
        self.lock().refuse = Some((call, errno));
    }

    /// From now on no call fails.
    pub fn refuse_none(&self) {
        self.lock().refuse = None;
    }

    /// The events since the last time.
    pub fn log(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock().log)
    }

    /// How many buffers the file holds, imported and allocated.
    pub fn imports(&self) -> usize {
        self.lock().imports.len()
    }

    /// The device reads; the address that was refused.
    pub fn device_read(&self, addr: u64, bytes: &mut [u8]) -> Result<(), u64> {
        let state = self.lock();
        let (import, at) = self.find(&state, addr, bytes.len()).ok_or(addr)?;
        import.file.read_exact_at(bytes, at).map_err(|_| addr)
    }

    /// The device writes.
    pub fn device_write(&self, addr: u64, bytes: &[u8]) -> Result<(), u64> {
        let state = self.lock();
        let (import, at) = self.find(&state, addr, bytes.len()).ok_or(addr)?;
        import.file.write_all_at(bytes, at).map_err(|_| addr)
    }

    fn find<'s>(&self, state: &'s State, addr: u64, len: usize) -> Option<(&'s Imported, u64)> {
        assert_eq!(self.config.run_bytes, 0, "a device here reads what is contiguous");
        let inside = |import: &&Imported| {
            import.addr <= addr && addr + len as u64 <= import.addr + import.len_bytes
        };
        state.imports.iter().find(inside).map(|import| (import, addr - import.addr))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runs(&self, import: &Imported) -> Vec<SegmentAt> {
        let run = self.config.run_bytes;
        if run == 0 || import.whose != Whose::Imported {
            return vec![SegmentAt { addr: import.addr, len_bytes: import.len_bytes }];
        }
        let at = |n| SegmentAt { addr: import.addr + 2 * n * run, len_bytes: run };
        (0..import.len_bytes.div_ceil(run)).map(at).collect()
    }
}

/// Where window `window` is in the file of the registers.
fn at(window: u32) -> u64 {
    u64::from(window) * WINDOW_STEP
}

impl State {
    fn buffer(&self, handle: u32) -> Result<&Imported, i32> {
        self.imports.iter().find(|import| import.handle == handle).ok_or(libc::ENOENT)
    }

    /// Tells of interrupts that have come and are not masked, and masks them.
    fn ring(&mut self) {
        let now = self.pending & !self.masked;
        self.masked |= now;
        self.pending &= !now;
        self.came |= now;
        if now != 0 {
            if let Some(bell) = &mut self.bell {
                let _ = bell.write(&[0]);
            }
            for (number, event) in &mut self.events {
                if now & !self.waited & 1 << *number != 0 {
                    let _ = event.write(&1_u64.to_ne_bytes());
                }
            }
        }
    }
}

fn refused(state: &State, call: &str) -> Result<(), i32> {
    match state.refuse {
        Some((refused, errno)) if refused == call => Err(errno),
        _ if state.taken_away => Err(libc::ENODEV),
        _ => Ok(()),
    }
}

// SAFETY: 1. The fake's device reads and writes the file at exactly the addresses that were said,
// until the release. 2. It has no caches: nothing is to be done. 3. The registers are a file of
// this fake's.
unsafe impl SystemCalls for FakeDevNode {
    fn open(&self, path: &CStr, flags: c_int) -> Result<Fd, i32> {
        let path = path.to_str().map_err(|_| libc::ENOENT)?;
        if path == "/sys/class/contigo" {
            check_flags(flags, libc::O_RDONLY | libc::O_DIRECTORY)?;
            return self.class();
        }
        let name = path.strip_prefix("/dev/contigo/").ok_or(libc::ENOENT)?;
        let mut state = self.lock();
        refused(&state, "open(/dev/contigo/)")?;
        if name != self.config.name {
            return Err(libc::ENOENT);
        }
        // A read of interrupts must not block an event loop; the module itself asks for O_RDWR
        // alone.
        check_flags(flags, libc::O_RDWR | libc::O_NONBLOCK)?;
        if std::mem::replace(&mut state.open, true) {
            return Err(libc::EBUSY);
        }
        let (bell, kernels) = UnixStream::pair().unwrap();
        bell.set_nonblocking(true).unwrap();
        (state.bell, state.masked) = (Some(kernels), u32::MAX);
        (state.pending, state.came, state.waited) = (0, 0, 0);
        let file = DevNodeFile { dev_node: self.clone(), bell };
        // SAFETY: the file has its descriptor until it is dropped.
        Ok(unsafe { Fd::owned_by(file.bell.as_raw_fd(), file) })
    }

    fn duplicate(&self, raw: c_int) -> Result<Fd, i32> {
        refused(&self.lock(), "fcntl(F_DUPFD_CLOEXEC)")?;
        Running.duplicate(raw)
    }

    /// No writer is under way; where ETIMEDOUT is refused, one is, and the time is over at once.
    /// That is no errno of ppoll(2).
    fn wait_readable(&self, _: &Fd, _: u32) -> Result<bool, i32> {
        match refused(&self.lock(), "ppoll(dma-buf)") {
            Err(libc::ETIMEDOUT) => Ok(false),
            answer => answer.map(|()| true),
        }
    }

    /// The registers, and each buffer at its own place, as the module has them.
    fn map(
        &self,
        file: &Fd,
        offset_bytes: u64,
        len_bytes: usize,
        call: &'static str,
    ) -> Result<MmapRaw, Error> {
        if file.owner::<DevNodeFile>().is_none() {
            return Running.map(file, offset_bytes, len_bytes, call);
        }
        let os = |errno| Error::Os { call, errno };
        let state = self.lock();
        refused(&state, call).map_err(os)?;
        let Ok(handle @ 1..) = u32::try_from(offset_bytes / HANDLE_STEP) else {
            self.window(offset_bytes, len_bytes as u64).map_err(os)?;
            let registers = duplicated(&self.registers).map_err(os)?;
            return Running.map(&registers, offset_bytes, len_bytes, call);
        };
        let own = state.buffer(handle).map_err(|_| os(libc::EINVAL))?;
        let inside = offset_bytes.is_multiple_of(HANDLE_STEP) && len_bytes as u64 <= own.len_bytes;
        if own.whose == Whose::Imported || !inside {
            return Err(os(libc::EINVAL));
        }
        Running.map(&duplicated(&own.file).map_err(os)?, 0, len_bytes, call)
    }

    unsafe fn ioctl(
        &self,
        file: &Fd,
        request: ioctl_num_type,
        argument: *mut c_void,
    ) -> Result<c_int, i32> {
        assert!(file.owner::<DevNodeFile>().is_some(), "a contigo device's call");
        // SAFETY: the caller's promise.
        let request = unsafe { Request::of(request, argument) }?;
        if let Request::Wait(wait) = request {
            wait.interrupts = self.wait(file, wait.interrupts, wait.timeout_us)?;
            return Ok(0);
        }
        while matches!(request, Request::SetEventFd(_)) && self.held.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut state = self.lock();
        refused(&state, request.name())?;
        match request {
            Request::GetInfo(info) => {
                if info.argsz < 40 {
                    return Err(libc::EINVAL);
                }
                *info = self.info(&state);
            }
            Request::SetDmaBits(bits) => {
                if !state.imports.is_empty() {
                    return Err(libc::EBUSY);
                }
                if !(32..=64).contains(&bits) {
                    return Err(libc::EINVAL);
                }
                state.log.push(Event::DmaBits(bits));
            }
            Request::Alloc(alloc) => self.alloc(&mut state, alloc)?,
            Request::Export(export) => {
                let own = state.buffer(export.handle)?;
                match own.whose {
                    Whose::Imported => return Err(libc::EINVAL),
                    Whose::Allocated { coherent: true } => return Err(libc::EOPNOTSUPP),
                    Whose::Allocated { coherent: false } => {
                        export.fd = borrowed(own.file.as_raw_fd())?.into_raw_fd();
                    }
                }
                state.log.push(Event::Exported(export.handle));
            }
            Request::Import(import) => {
                if import.flags != 0 {
                    return Err(libc::EINVAL);
                }
                let file = borrowed(import.fd)?;
                let facts = file.metadata().unwrap();
                let is_it = |held: &&Imported| held.file.metadata().unwrap().ino() == facts.ino();
                if let Some(held) = state.imports.iter().chain(&state.kept).find(is_it) {
                    let is_import = held.whose == Whose::Imported;
                    return Err(if is_import { libc::EBUSY } else { libc::EINVAL });
                }
                let len_bytes = facts.len();
                let (handle, addr) = self.room(&mut state, len_bytes)?;
                let imported = Imported { whose: Whose::Imported, handle, addr, len_bytes, file };
                (import.handle, import.addr, import.len_bytes) = (handle, addr, len_bytes);
                import.segments = self.runs(&imported).len().try_into().map_err(|_| libc::E2BIG)?;
                state.imports.push(imported);
                state.log.push(Event::Imported { handle, addr, len_bytes });
            }
            Request::GetSegments(ask, room) => {
                let (mut start, mut some) = (0, 0);
                for SegmentAt { addr, len_bytes } in self.runs(state.buffer(ask.handle)?) {
                    let into = ask.offset_bytes.wrapping_sub(start);
                    if into < len_bytes {
                        room[0] = SegmentAt { addr: addr + into, len_bytes: len_bytes - into };
                        some = 1;
                        break;
                    }
                    start += len_bytes;
                }
                ask.count = self.config.more_segments.wrapping_add(some);
            }
            Request::Release(handle) => {
                state.buffer(handle)?;
                state.imports.retain(|import| import.handle != handle);
                state.log.push(Event::Released(handle));
            }
            Request::Sync(ranges) => {
                for range in ranges {
                    let event = synced(&state, range)?;
                    state.log.push(event);
                }
            }
            Request::Arm(steps) => {
                armable(steps, self.config.windows)?;
                state.armed = steps.to_vec();
                state.log.push(Event::Armed(steps.to_vec()));
            }
            Request::Unmask(interrupts) => {
                if interrupts >> self.config.interrupts != 0 {
                    return Err(libc::EINVAL);
                }
                state.masked &= !interrupts;
                state.log.push(Event::Unmasked(interrupts));
                state.ring();
            }
            Request::SetEventFd(&EventFd { interrupt, fd }) => {
                if interrupt >= self.config.interrupts {
                    return Err(libc::EINVAL);
                }
                // It takes the place of the one before.
                state.events.retain(|(of, _)| *of != interrupt);
                state.events.push((interrupt, borrowed(fd)?));
            }
            Request::Reset => {
                if !self.config.can_reset {
                    return Err(libc::EOPNOTSUPP);
                }
                state.kept.clear();
                state.log.push(Event::Reset);
            }
            Request::Wait(_) => return Err(libc::ENOTTY),
        }
        Ok(0)
    }
}

impl FakeDevNode {
    /// `contigo_registers_mmap`'s checks: a mapping is inside one window, which can be mapped.
    fn window(&self, offset_bytes: u64, len_bytes: u64) -> Result<(), i32> {
        let (number, start) = (offset_bytes / WINDOW_STEP, offset_bytes % WINDOW_STEP);
        let end = start.checked_add(len_bytes).ok_or(libc::EINVAL)?;
        // A mapping is of whole pages, and so is its bound.
        let is_inside = end <= WINDOW_BYTES.next_multiple_of(page_bytes());
        if number >= self.config.windows.into() || !is_inside {
            return Err(libc::EINVAL);
        }
        if self.config.hidden >> number & 1 == 0 { Ok(()) } else { Err(libc::EACCES) }
    }

    /// The folder that lists the module's devices.
    fn class(&self) -> Result<Fd, i32> {
        let folder = tempfile::tempdir().map_err(|_| libc::ENOENT)?;
        File::create(folder.path().join(self.config.name)).map_err(|_| libc::ENOENT)?;
        let file = File::open(folder.path()).map_err(|_| libc::ENOENT)?;
        // SAFETY: the file has its descriptor until it is dropped.
        Ok(unsafe { Fd::owned_by(file.as_raw_fd(), (file, folder)) })
    }

    /// A handle for one more buffer of so many bytes, and its address.
    fn room(&self, state: &mut State, len_bytes: u64) -> Result<(u32, u64), i32> {
        let held = || state.imports.iter().chain(&state.kept);
        if held().count() == MAX_BUFFERS as usize {
            return Err(libc::ENOSPC);
        }
        if held().map(|import| import.len_bytes).sum::<u64>() + len_bytes > self.config.max_bytes {
            return Err(libc::EDQUOT);
        }
        let offset = if self.config.translated { OFFSET } else { 0 };
        let addr = FIRST_ADDR + u64::from(state.imported) * STEP + offset;
        state.imported += 1;
        Ok((state.imported, addr))
    }

    fn alloc(&self, state: &mut State, alloc: &mut Alloc) -> Result<(), i32> {
        let len_bytes = alloc.len_bytes;
        if alloc.flags & !ALLOC_COHERENT != 0
            || len_bytes == 0
            || !len_bytes.is_multiple_of(page_bytes())
        {
            return Err(libc::EINVAL);
        }
        let (handle, addr) = self.room(state, len_bytes)?;
        let file = File::from(memfd_create("contigo-memory", MFdFlags::MFD_CLOEXEC).unwrap());
        file.set_len(len_bytes).map_err(|_| libc::ENOMEM)?;
        let coherent = alloc.flags & ALLOC_COHERENT != 0;
        (alloc.handle, alloc.addr) = (handle, addr);
        alloc.mmap_offset = u64::from(handle) * HANDLE_STEP + self.config.more_offset;
        let whose = Whose::Allocated { coherent };
        state.imports.push(Imported { whose, handle, addr, len_bytes, file });
        state.log.push(Event::Allocated { handle, addr, len_bytes, coherent });
        Ok(())
    }

    fn info(&self, state: &State) -> Info {
        let DevNodeConfig { coherent, translated, can_reset, .. } = self.config;
        let armed = !state.armed.is_empty();
        let flags = [
            (coherent, INFO_COHERENT),
            (translated, INFO_TRANSLATED),
            (can_reset, INFO_RESET),
            (armed, INFO_ARMED),
        ];
        let count = |list: &[Imported]| u32::try_from(list.len()).unwrap_or(u32::MAX);
        let mut info = Info {
            argsz: self.config.argsz,
            flags: flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag).sum(),
            dma_bits: 32,
            buffers: count(&state.imports),
            quarantined: count(&state.kept),
            interrupts: self.config.interrupts,
            granule_bytes: self.config.granule_bytes,
            quarantined_bytes: state.kept.iter().map(|import| import.len_bytes).sum(),
            ..Info::default()
        };
        for (number, window) in (0..self.config.windows).zip(&mut info.window) {
            let mmap = if self.config.hidden & 1 << number == 0 { WINDOW_MMAP } else { 0 };
            let mmap_offset = if self.config.overlapping { 0 } else { at(number) };
            let flags = WINDOW_STOP | mmap;
            *window = Window { len_bytes: WINDOW_BYTES, mmap_offset, flags, reserved: 0 };
        }
        info
    }
}

/// The file of a test's descriptor.
fn borrowed(fd: i32) -> Result<File, i32> {
    // SAFETY: it is open while the runtime calls; a wrong one is refused by the kernel.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    fd.try_clone_to_owned().map(File::from).map_err(|_| libc::EBADF)
}

/// One more descriptor of `file`.
fn duplicated(file: &File) -> Result<Fd, i32> {
    let file = file.try_clone().map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))?;
    // SAFETY: the file has its descriptor until it is dropped.
    Ok(unsafe { Fd::owned_by(file.as_raw_fd(), file) })
}

/// `contigo_sync`'s checks.
fn synced(state: &State, range: &SyncRange) -> Result<Event, i32> {
    let import = state.buffer(range.handle)?;
    let end = range.offset_bytes.checked_add(range.len_bytes).ok_or(libc::EINVAL)?;
    if range.len_bytes == 0 || end > import.len_bytes || ![1, 2].contains(&range.flags) {
        return Err(libc::EINVAL);
    }
    let (handle, start) = (range.handle, range.offset_bytes);
    Ok(Event::Synced { handle, for_cpu: range.flags == 1, start, end })
}

/// `contigo_stop_check`'s checks, for windows of 4 KiB.
fn armable(steps: &[Step], windows: u32) -> Result<(), i32> {
    if steps.len() > MAX_STEPS {
        return Err(libc::E2BIG);
    }
    let (mut after_else, mut after_write) = (true, false);
    for step in steps {
        let is_poll = [STEP_POLL, STEP_POLL_NOT].contains(&step.kind);
        let is_else = *step == Step { kind: STEP_ELSE, ..Step::default() };
        let well_made = if is_else {
            !after_else && !after_write
        } else {
            (is_poll || step.kind == STEP_WRITE && step.timeout_us == 0)
                && step.mask != 0
                && step.value & !step.mask == 0
        };
        if !well_made {
            return Err(libc::EINVAL);
        }
        let is_there = step.window < windows
            && u64::from(step.offset_bytes) < WINDOW_BYTES
            && step.offset_bytes.is_multiple_of(4);
        if !is_else && !is_there {
            return Err(libc::ENXIO);
        }
        (after_else, after_write) = (is_else, step.kind == STEP_WRITE);
    }
    let polled: u64 = steps.iter().map(|step| u64::from(step.timeout_us)).sum();
    let unended = (after_else || after_write) && !steps.is_empty();
    if polled > MAX_POLL_US || unended { Err(libc::EINVAL) } else { Ok(()) }
}

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
mod calls;
mod request;

pub use self::abi::Step;

use self::abi::{Alloc, EventFd, Info, SegmentAt, SyncRange, Window};
use self::calls::refused;
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
    /// The calls of CONTIGO_SYNC, however many ranges each had.
    sync_calls: usize,
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

    /// How often CONTIGO_SYNC was called since the last time, whatever became of it.
    pub fn sync_calls(&self) -> usize {
        std::mem::take(&mut self.lock().sync_calls)
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

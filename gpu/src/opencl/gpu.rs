#![allow(
    unsafe_code,
    reason = "the driver's functions are called, and its objects go from thread to thread"
)]
//! One device of OpenCL, and the context in which everything of it is done.

use super::{
    Log, OpenClMemory, OpenClModule,
    error::{check, error, is_no_platform},
    facts::{self, OpenClFacts},
    late::{Late, Wrong},
    launches::InFlight,
    object::Buffer,
};
use crate::{
    Pages,
    objects::{Objects, acquire},
};
use cl3::{
    command_queue::{create_command_queue, release_command_queue},
    context::{create_context, release_context},
    device::{CL_DEVICE_TYPE_ALL, get_device_ids},
    platform::get_platform_ids,
    types::{cl_command_queue, cl_context, cl_device_id, cl_platform_id},
};
use contigo::{
    Align, Bus, Error, Port, Result,
    names::{AnyModule, GpuDevice, OwnedMemory},
};
use core::{
    fmt, mem, ptr,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use spin::{Mutex, MutexGuard};
use std::sync::OnceLock;

/// One device of OpenCL, and the context in which everything of it is done. It stays open until the
/// program ends, because its drivers have threads. Any thread may use it.
///
/// ```no_run
/// use contigo_gpu::opencl::OpenClGpu;
/// for facts in OpenClGpu::list()? {
///     println!("opencl:{} is {} of {}", facts.ordinal, facts.name, facts.platform);
/// }
/// let gpu = OpenClGpu::open(0)?;
/// println!("operands begin at multiples of {} bytes", gpu.align().bytes());
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct OpenClGpu {
    facts: OpenClFacts,
    align: Align,
    device: cl_device_id,
    context: cl_context,
    /// For the hand-over between CPU and device. Kernels have queues of their own.
    transfers: cl_command_queue,
    objects: Objects<Buffer>,
    /// Kernels that did not end when they should have.
    hung: AtomicUsize,
    /// Launches that went on after the drop of their `Launches`: each list counts in `hung`.
    forgotten: Mutex<[Option<InFlight>; MOST_FORGOTTEN]>,
    /// Transfers of the hand-over that did not end when they should have.
    late: Late,
    /// A transfer was given and went wrong: the driver or the device may still use its bytes.
    lost: Wrong,
    /// The process that opened it.
    pid: u32,
}

/// How many devices are open at once: far more than a machine has.
const MOST: usize = 16;
/// How many queues of launches that went on are looked at again. Beside one more everything stays.
const MOST_FORGOTTEN: usize = 16;

/// How often, a millisecond apart, a thread looks whether another one has done with loading the
/// drivers and making a context: 10 s, for what takes some 100 ms.
const TRIES: u32 = 10_000;

static OPEN: [OnceLock<OpenClGpu>; MOST] = [const { OnceLock::new() }; MOST];

/// Held while devices are looked for and opened. A driver may not bear two threads there: pocl 3.1
/// makes its devices at the first call, and a second thread finds them half made.
static OPENING: Mutex<()> = Mutex::new(());

fn opening() -> Result<MutexGuard<'static, ()>> {
    for _ in 0..TRIES {
        if let Some(guard) = OPENING.try_lock() {
            return Ok(guard);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Error::Contended { tries: TRIES })
}

impl OpenClGpu {
    /// Device number `ordinal`, counted over the devices of all platforms in the loader's order.
    /// The same number is the same device again.
    ///
    /// # Errors
    /// - [`Error::NoLibrary`]: there is no loader. [`Error::NotFound`]: it has no device.
    /// - [`Error::Argument`]: there are fewer.
    /// - [`Error::Unsupported`]: it is older than OpenCL 1.1, which has no sub-buffers.
    /// - [`Error::Forked`]: this is a child of the process that opened it.
    /// - [`Error::Gpu`], [`Error::TooMany`], [`Error::Contended`].
    pub fn open(ordinal: u32) -> Result<&'static Self> {
        let slot = usize::try_from(ordinal).ok().and_then(|slot| OPEN.get(slot));
        let find = || slot.and_then(OnceLock::get);
        if let Some(found) = find() {
            return found.of_this_process();
        }
        let _opening = opening()?;
        if let Some(found) = find() {
            // Another thread was faster.
            return Ok(found);
        }
        let new = Self::new(ordinal)?;
        let slot = slot.ok_or(Error::TooMany { what: "devices of OpenCL", most: MOST as u64 })?;
        Ok(slot.get_or_init(|| new))
    }

    /// How many devices there are. The loader and its drivers are loaded for that.
    ///
    /// # Errors
    /// [`Error::NoLibrary`], [`Error::Gpu`], [`Error::Contended`].
    pub fn count() -> Result<u32> {
        let _opening = opening()?;
        devices().map(|all| u32::try_from(all.len()).unwrap_or(u32::MAX))
    }

    /// The facts of each device, in their order. None is opened.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn list() -> Result<Vec<OpenClFacts>> {
        let _opening = opening()?;
        devices()?
            .into_iter()
            .zip(0..)
            .map(|((platform, device), ordinal)| facts::ask(ordinal, platform, device))
            .collect()
    }

    fn new(ordinal: u32) -> Result<Self> {
        let all = devices()?;
        let found = usize::try_from(ordinal).ok().and_then(|at| all.get(at).copied());
        let (platform, device) =
            found.ok_or_else(|| match u64::try_from(all.len()).unwrap_or(0) {
                0 => Error::NotFound { what: "device of OpenCL", among: 0.into() },
                many => Error::Argument {
                    name: "the device's number",
                    value: ordinal.into(),
                    min: 0,
                    max: many - 1,
                    multiple_of: 1,
                },
            })?;
        let facts = facts::ask(ordinal, platform, device)?;
        let align = facts.align()?;
        let objects = Objects::new()?;
        let context = check(
            "clCreateContext",
            create_context(&[device], ptr::null(), None, ptr::null_mut()),
        )?;
        // SAFETY: context and device belong together; no property asks for another order than the
        // queue's own.
        let transfers =
            check("clCreateCommandQueue", unsafe { create_command_queue(context, device, 0) });
        let transfers = transfers.inspect_err(|_| {
            // SAFETY: the context is one, and given back once.
            let _ = unsafe { release_context(context) };
        })?;
        let (late, lost, hung) = (Late::default(), Wrong::default(), AtomicUsize::new(0));
        let forgotten = Mutex::new([const { None }; MOST_FORGOTTEN]);
        Ok(Self {
            facts,
            align,
            device,
            context,
            transfers,
            objects,
            hung,
            forgotten,
            late,
            lost,
            pid: std::process::id(),
        })
    }

    /// The facts that it tells of itself.
    #[must_use]
    pub const fn facts(&self) -> &OpenClFacts {
        &self.facts
    }

    /// The bus that its addresses are on: an object, and an offset in it.
    #[must_use]
    pub const fn bus(&self) -> Bus {
        self.objects.bus()
    }

    /// Its way to memory that was made for it. It is not coherent: the hand-over writes and maps
    /// (see [the module](super)).
    #[must_use]
    pub const fn port(&self) -> Port {
        Port { coherent: false, ..self.objects.port("opencl") }
    }

    /// The alignment that a program allocates with: operands begin at multiples of it, in bytes. A
    /// region's line is the same, so that every buffer does.
    #[must_use]
    pub const fn align(&self) -> Align {
        self.align
    }

    pub(super) const fn context(&self) -> cl_context {
        self.context
    }

    pub(super) const fn device(&self) -> cl_device_id {
        self.device
    }

    pub(super) const fn transfers(&self) -> cl_command_queue {
        self.transfers
    }

    pub(super) const fn objects(&self) -> &Objects<Buffer> {
        &self.objects
    }

    fn of_this_process(&'static self) -> Result<&'static Self> {
        self.must_be_ours().map(|()| self)
    }

    /// Is this the process that opened it?
    ///
    /// # Errors
    /// [`Error::Forked`]: nothing of the driver may be called.
    pub(super) fn must_be_ours(&self) -> Result<()> {
        if self.is_forked() { Err(Error::Forked { owner_pid: self.pid }) } else { Ok(()) }
    }

    /// A kernel did not end; or, `false`, it did in the end.
    pub(super) fn hangs(&self, hangs: bool) {
        if hangs {
            self.hung.fetch_add(1, Ordering::Release);
        } else {
            self.hung.fetch_sub(1, Ordering::Release);
        }
    }

    /// These launches, whose `Launches` is dropped, count as hung: from here on they are looked at
    /// when something may go. Where there is no place they are kept, and count for ever.
    pub(super) fn forget(&self, launches: InFlight) {
        if let Ok(mut lists) = acquire(&self.forgotten)
            && let Some(list) = lists.iter_mut().find(|list| list.is_none())
        {
            *list = Some(launches);
            return;
        }
        mem::forget(launches);
    }

    /// Does no kernel hang? Those that have ended well since do not count any more.
    fn is_idle(&self) -> bool {
        if self.hung.load(Ordering::Acquire) == 0 {
            return true;
        }
        let Ok(mut lists) = acquire(&self.forgotten) else { return false };
        let ended =
            |list: &InFlight| list.iter().all(|(_, event)| event.ended(Duration::ZERO) == Ok(true));
        for list in lists.iter_mut().filter(|list| list.as_ref().is_some_and(ended)) {
            drop(list.take());
            self.hangs(false);
        }
        self.hung.load(Ordering::Acquire) == 0
    }

    pub(super) const fn late(&self) -> &Late {
        &self.late
    }

    /// A transfer was given and went wrong. From here on no kernel starts.
    pub(super) fn lose(&self, why: &Error) {
        self.lost.note(why);
    }

    /// Does it still take commands?
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: a transfer went wrong before.
    pub(super) fn takes_commands(&self) -> Result<()> {
        self.lost.check()
    }

    /// Is this a child of the process that opened it? It has none of the driver's threads, and may
    /// find the driver's locks taken: it calls nothing of it.
    pub(super) fn is_forked(&self) -> bool {
        self.pid != std::process::id()
    }

    /// Must everything of it stay? So in a child of fork, after a transfer that went wrong, and
    /// beside a kernel that does not end, for which a release may wait.
    pub(super) fn keeps_all(&self) -> bool {
        self.is_forked() || self.takes_commands().is_err() || !self.is_idle()
    }
}

/// The devices of all platforms, in order.
fn devices() -> Result<Vec<(cl_platform_id, cl_device_id)>> {
    let platforms = match get_platform_ids() {
        Err(code) if is_no_platform(code) => Vec::new(),
        answer => check("clGetPlatformIDs", answer)?,
    };
    let mut all = Vec::new();
    for platform in platforms {
        match get_device_ids(platform, CL_DEVICE_TYPE_ALL) {
            Ok(devices) => all.extend(devices.into_iter().map(|device| (platform, device))),
            // A platform without a device: its hardware is not here.
            Err(cl3::error_codes::CL_DEVICE_NOT_FOUND) => {}
            Err(code) => return Err(error("clGetDeviceIDs", code)),
        }
    }
    Ok(all)
}

impl GpuDevice for OpenClGpu {
    fn name(&self) -> &str {
        &self.facts.name
    }

    fn port(&self) -> Port {
        Self::port(self)
    }

    fn memory(&'static self, len_bytes: usize) -> Result<OwnedMemory> {
        OwnedMemory::new(OpenClMemory::<Pages>::allocate(self, len_bytes)?)
    }

    unsafe fn load(&'static self, code: &[u8], log: &mut dyn fmt::Write) -> Result<AnyModule> {
        let source = str::from_utf8(code).map(|text| text.trim_end_matches('\0'));
        let source = source.map_err(|wrong| {
            let (value, max) = (wrong.valid_up_to() as u64, code.len() as u64);
            Error::Argument {
                name: "the count of the source's first bytes that are UTF-8",
                value,
                min: max,
                max,
                multiple_of: 1,
            }
        })?;
        let mut said = Log::new();
        // SAFETY: the caller's promise.
        let module = unsafe { OpenClModule::build(self, source, c"", &mut said) };
        // A log that is full is cut.
        AnyModule::new(module.inspect_err(|_| _ = log.write_str(&said))?)
    }
}

impl Drop for OpenClGpu {
    /// Only of one that no program was given: an open device stays.
    fn drop(&mut self) {
        // SAFETY: both were made in `new`, are given back once, and have no commands.
        let _ = unsafe { (release_command_queue(self.transfers), release_context(self.context)) };
    }
}

// SAFETY: OpenCL's functions may be called on any thread, `clSetKernelArg` apart (OpenCL 3.0, A.2).
// The fields do not change.
unsafe impl Send for OpenClGpu {}
// SAFETY: as for `Send`.
unsafe impl Sync for OpenClGpu {}

impl fmt::Debug for OpenClGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClGpu").field("facts", &self.facts).finish_non_exhaustive()
    }
}

#![allow(
    unsafe_code,
    reason = "the driver's functions are called, and its objects go from thread to thread"
)]
//! One device of OpenCL, and the context in which everything of it is done.

use super::error::{check, error, is_no_platform};
use super::event::InFlight;
use super::facts::{self, OpenClFacts};
use super::late::{Late, Wrong};
use super::object::Buffer;
use crate::common::{Hung, Opened};
use crate::objects::Objects;
use cl3::command_queue::{create_command_queue, release_command_queue};
use cl3::context::{create_context, release_context};
use cl3::device::{CL_DEVICE_TYPE_ALL, get_device_ids};
use cl3::platform::get_platform_ids;
use cl3::types::{cl_command_queue, cl_context, cl_device_id, cl_platform_id};
use contigo::{Align, Bus, Error, Port, Result};
use core::time::Duration;
use core::{fmt, ptr};

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
    pub(super) device: cl_device_id,
    pub(super) context: cl_context,
    /// For the hand-over between CPU and device. Kernels have queues of their own.
    pub(super) transfers: cl_command_queue,
    pub(super) objects: Objects<Buffer>,
    /// Kernels that did not end when they should have.
    pub(super) hung: Hung<InFlight>,
    /// Transfers of the hand-over that did not end when they should have.
    pub(super) late: Late,
    /// A transfer was given and went wrong: the driver or the device may still use its bytes.
    lost: Wrong,
    /// The process that opened it.
    pid: u32,
}

static OPENED: Opened<OpenClGpu> = Opened::none("devices of OpenCL");

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
        let gpu = OPENED.get_or_open(ordinal, || find(ordinal), Self::new)?;
        gpu.must_be_ours().map(|()| gpu)
    }

    /// How many devices there are. The loader and its drivers are loaded for that.
    ///
    /// # Errors
    /// [`Error::NoLibrary`], [`Error::Gpu`], [`Error::Contended`].
    pub fn count() -> Result<u32> {
        let _opening = OPENED.lock()?;
        devices().map(|all| u32::try_from(all.len()).unwrap_or(u32::MAX))
    }

    /// The facts of each device, in their order. None is opened.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn list() -> Result<Vec<OpenClFacts>> {
        let _opening = OPENED.lock()?;
        devices()?
            .into_iter()
            .zip(0..)
            .map(|((platform, device), ordinal)| facts::ask(ordinal, platform, device))
            .collect()
    }

    fn new((facts, device): (OpenClFacts, cl_device_id)) -> Result<Self> {
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
        Ok(Self {
            facts,
            align,
            device,
            context,
            transfers,
            objects,
            hung: Hung::none(),
            late: Late::default(),
            lost: Wrong::default(),
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

    /// Is this the process that opened it?
    pub(super) fn must_be_ours(&self) -> Result<()> {
        if self.is_forked() { Err(Error::Forked { owner_pid: self.pid }) } else { Ok(()) }
    }

    /// A transfer was given and went wrong. From here on no kernel starts.
    pub(super) fn lose(&self, why: &Error) {
        self.lost.note(why);
    }

    /// Does it still take commands?
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
        let ended =
            |list: &InFlight| list.iter().all(|(_, event)| event.ended(Duration::ZERO) == Ok(true));
        self.is_forked() || self.takes_commands().is_err() || !self.hung.is_empty(ended)
    }
}

/// Device number `ordinal`, and its facts.
fn find(ordinal: u32) -> Result<(OpenClFacts, cl_device_id)> {
    let all = devices()?;
    let found = usize::try_from(ordinal).ok().and_then(|at| all.get(at).copied());
    let (platform, device) = found.ok_or_else(|| match u64::try_from(all.len()).unwrap_or(0) {
        0 => Error::NotFound { what: "device of OpenCL", among: 0.into() },
        many => Error::Argument {
            name: "the device's number",
            value: ordinal.into(),
            min: 0,
            max: many - 1,
            multiple_of: 1,
        },
    })?;
    Ok((facts::ask(ordinal, platform, device)?, device))
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

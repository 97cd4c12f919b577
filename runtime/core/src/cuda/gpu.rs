#![allow(
    unsafe_code,
    reason = "the driver's functions are called, and a context is handed from thread to thread"
)]
//! One GPU, and the context in which everything of it is done.

use super::{
    abi::{Api, CuContext, CuDevice, INVALID_CONTEXT, attribute},
    driver::{Cuda, check, error},
};
use crate::{
    mem::Port,
    types::{Bus, Error, Result, shared::Shared},
};
use core::{
    ffi::{c_char, c_int},
    fmt, ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A handle to one GPU, and to the context in which everything of it is done. Clones are the same
/// GPU. Any thread may use it: each call makes the context current for as long as it takes, and
/// leaves the thread's own as it was.
///
/// Memory, modules and kernels have a handle each. With the last of all handles the context is
/// given back; one that is forgotten keeps it for ever.
#[derive(Clone)]
pub struct Gpu(Shared<Context>);

/// What the handles share.
struct Context {
    cuda: Cuda,
    context: CuContext,
    device: CuDevice,
    facts: GpuFacts,
    /// Was the primary context retained, or is a context in use that other code made?
    retained: bool,
    /// The count of objects that were made here and not given back: blocks of memory, and kernels,
    /// which may be forgotten.
    out: AtomicUsize,
    /// Kernels that did not end when they should have: what waits for the whole context would wait
    /// for them.
    hung: AtomicUsize,
}

/// The facts that a GPU tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFacts {
    /// Its number among this program's GPUs (`CUDA_VISIBLE_DEVICES`).
    pub ordinal: u32,
    /// Its name, as much of it as fits.
    pub name: heapless::String<64>,
    /// Its compute capability: Orin has `(8, 7)`.
    pub compute_capability: (u32, u32),
    /// Does it share the CPU's memory, as a Jetson's does?
    pub integrated: bool,
    /// Are atomic operations of CPU and GPU on the same word atomic to each other?
    pub host_native_atomics: bool,
    /// Is registered memory's address the same for both? Nothing here relies on it: the address is
    /// asked for.
    pub host_pointer_for_registered: bool,
    /// Can it use the CPU's memory at all?
    pub can_map_host_memory: bool,
    /// Its memory, or what it shares, in bytes.
    pub total_bytes: u64,
}

impl GpuFacts {
    /// Are the CPU's accesses to pinned memory uncached? So on integrated GPUs below compute
    /// capability 7.2 (Nano, TX2): reading it byte by byte is slow, copy it out or keep to writing.
    /// (CUDA for Tegra, "Memory Types".)
    #[must_use]
    pub const fn cpu_uncached(&self) -> bool {
        let (major, minor) = self.compute_capability;
        self.integrated && (major < 7 || (major == 7 && minor < 2))
    }
}

impl Gpu {
    /// GPU number `ordinal`, with its primary context, which is the one that the CUDA runtime, TVM
    /// and `PyTorch` use.
    ///
    /// # Errors
    /// [`Error::Argument`]: there are fewer. [`Error::Unsupported`]: it cannot use the CPU's
    /// memory. [`Error::Cuda`]. [`Error::Os`]: the kernel has no page for the handles.
    pub fn primary(cuda: &Cuda, ordinal: u32) -> Result<Self> {
        let gpus = cuda.gpus()?;
        if ordinal >= gpus {
            let max = u64::from(gpus.saturating_sub(1));
            return Err(Error::Argument {
                name: "the GPU's ordinal",
                value: ordinal.into(),
                min: 0,
                max,
                multiple_of: 1,
            });
        }
        let device = device(cuda, ordinal)?;
        let facts = facts(cuda, ordinal, device)?;
        let mut context = ptr::null_mut();
        // SAFETY: the pointer is a reference, and the device is one.
        check("cuDevicePrimaryCtxRetain", unsafe {
            (cuda.api.primary_retain)(&raw mut context, device)
        })?;
        Self::new(cuda, context, device, facts, true)
    }

    /// The GPU and the context that are current on this thread. Other code made that context.
    ///
    /// # Errors
    /// [`Error::Cuda`] with `cuCtxGetCurrent` and 201: none is. As [`primary`](Self::primary).
    ///
    /// # Safety
    /// The context is not destroyed while a handle to it lives, one that memory, a module or a
    /// kernel has included; nor ever where [`is_in_use`](Self::is_in_use) says `true` just before
    /// the last is dropped, because what was leaked may still be used.
    pub unsafe fn adopt(cuda: &Cuda) -> Result<Self> {
        let (mut context, mut device) = (ptr::null_mut(), 0);
        // SAFETY: the pointer is a reference.
        check("cuCtxGetCurrent", unsafe { (cuda.api.context_current)(&raw mut context) })?;
        if context.is_null() {
            return Err(error("cuCtxGetCurrent", INVALID_CONTEXT));
        }
        // SAFETY: as above.
        check("cuCtxGetDevice", unsafe { (cuda.api.context_device)(&raw mut device) })?;
        // A machine has a handful; the driver's own limit is 64 or so.
        let ordinal = (0..cuda.gpus()?)
            .find(|ordinal| self::device(cuda, *ordinal).is_ok_and(|found| found == device));
        let ordinal = ordinal.ok_or(error("cuCtxGetDevice", INVALID_CONTEXT))?;
        Self::new(cuda, context, device, facts(cuda, ordinal, device)?, false)
    }

    /// The first handle. Where it cannot be made, a context that was retained is released.
    fn new(
        cuda: &Cuda,
        context: CuContext,
        device: CuDevice,
        facts: GpuFacts,
        retained: bool,
    ) -> Result<Self> {
        let (out, hung) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Shared::new(Context { cuda: cuda.clone(), context, device, facts, retained, out, hung })
            .map(Self)
    }

    /// The facts that it tells of itself.
    #[must_use]
    pub fn facts(&self) -> &GpuFacts {
        &self.0.facts
    }

    /// The bus that its addresses are on.
    #[must_use]
    pub fn bus(&self) -> Bus {
        Bus::Gpu(self.facts().ordinal)
    }

    /// Its way to memory that was made for it.
    #[must_use]
    pub fn port(&self) -> Port {
        Port {
            name: "gpu",
            bus: self.bus(),
            offset: 0,
            addr_bits: 64,
            window: (0, u64::MAX),
            coherent: true,
        }
    }

    /// Calls the driver with this context current, and leaves the thread's own as it was. A poll of
    /// an event is such a call, 0.2 to 0.5 µs, of which this is 0.03 to 0.08 µs. Driver 580 would
    /// not need it.
    pub(super) fn within<T>(&self, act: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        let Context { cuda: Cuda { api, .. }, context, .. } = &*self.0;
        // SAFETY: the context is one until the last handle is dropped: retained, or as `adopt`'s
        // caller promised.
        check("cuCtxPushCurrent", unsafe { (api.context_push)(*context) })?;
        // `act` does not panic: it calls the driver, and a listener of events, which must not.
        let done = act(api);
        let mut popped = ptr::null_mut();
        // It may report the failure of an earlier launch, which the next call reports again. The
        // result of `act` must not be lost for that. SAFETY: the pointer is a reference, and the
        // stack has what was pushed.
        let _ = unsafe { (api.context_pop)(&raw mut popped) };
        done
    }

    /// Something was made that must be given back before the context is.
    pub(super) fn took(&self) {
        self.0.out.fetch_add(1, Ordering::Relaxed);
    }

    /// It was given back.
    pub(super) fn gave_back(&self) {
        self.0.out.fetch_sub(1, Ordering::Release);
    }

    /// Is there something that was not given back, or was leaked? Then the context must stay.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.0.out.load(Ordering::Acquire) != 0
    }

    /// A kernel did not end; or, `false`, it did in the end.
    pub(super) fn hangs(&self, hangs: bool) {
        if hangs {
            self.0.hung.fetch_add(1, Ordering::Release);
        } else {
            self.0.hung.fetch_sub(1, Ordering::Release);
        }
    }

    /// Does a kernel not end? Then what waits for the whole context (freeing memory, unloading)
    /// might wait for ever, and is not called.
    pub(super) fn is_hung(&self) -> bool {
        self.0.hung.load(Ordering::Acquire) != 0
    }
}

fn device(cuda: &Cuda, ordinal: u32) -> Result<CuDevice> {
    let mut device = 0;
    // SAFETY: the pointer is a reference.
    check("cuDeviceGet", unsafe {
        (cuda.api.device)(&raw mut device, c_int::try_from(ordinal).unwrap_or(c_int::MAX))
    })?;
    Ok(device)
}

fn facts(cuda: &Cuda, ordinal: u32, device: CuDevice) -> Result<GpuFacts> {
    let attribute = |which| {
        let mut value: c_int = 0;
        // SAFETY: the pointer is a reference, and the device is one.
        check("cuDeviceGetAttribute", unsafe {
            (cuda.api.device_attribute)(&raw mut value, which, device)
        })?;
        Ok::<_, Error>(u32::try_from(value).unwrap_or(0))
    };
    let (mut bytes, mut total_bytes) = ([0_u8; 65], 0);
    // SAFETY: so many bytes are there, and the last one stays 0.
    check("cuDeviceGetName", unsafe {
        (cuda.api.device_name)(bytes.as_mut_ptr().cast::<c_char>(), 64, device)
    })?;
    // SAFETY: the pointer is a reference.
    check("cuDeviceTotalMem", unsafe { (cuda.api.device_total)(&raw mut total_bytes, device) })?;
    let text =
        bytes.split(|byte| *byte == 0).next().and_then(|bytes| core::str::from_utf8(bytes).ok());
    let facts = GpuFacts {
        ordinal,
        name: text.and_then(|text| text.try_into().ok()).unwrap_or_default(),
        compute_capability: (
            attribute(attribute::COMPUTE_CAPABILITY_MAJOR)?,
            attribute(attribute::COMPUTE_CAPABILITY_MINOR)?,
        ),
        integrated: attribute(attribute::INTEGRATED)? != 0,
        host_native_atomics: attribute(attribute::HOST_NATIVE_ATOMIC_SUPPORTED)? != 0,
        host_pointer_for_registered: attribute(attribute::CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)?
            != 0,
        can_map_host_memory: attribute(attribute::CAN_MAP_HOST_MEMORY)? != 0,
        total_bytes: total_bytes as u64,
    };
    if !facts.can_map_host_memory {
        let fix = "use another one";
        return Err(Error::Unsupported {
            what: "this GPU cannot use the CPU's memory (CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY \
             is 0)",
            fix,
        });
    }
    Ok(facts)
}

impl Drop for Context {
    /// Gives the context back; or keeps it for ever where memory was leaked, because a kernel may
    /// still write there, and the end of a context waits for its kernels.
    fn drop(&mut self) {
        if self.retained && self.out.load(Ordering::Acquire) == 0 {
            // SAFETY: retained once in `primary`, released once, and nothing of it is left.
            let _ = unsafe { (self.cuda.api.primary_release)(self.device) };
        }
    }
}

// SAFETY: a context may be current on any number of threads, and the driver's functions may be
// called from all of them (CUDA C++ Programming Guide, "Context"). The fields here do not change,
// but for the counts, which are atomics.
unsafe impl Send for Context {}
// SAFETY: as for `Send`.
unsafe impl Sync for Context {}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("facts", self.facts())
            .field("retained", &self.0.retained)
            .finish_non_exhaustive()
    }
}

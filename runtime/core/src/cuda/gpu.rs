#![allow(
    unsafe_code,
    reason = "the driver's functions are called, and a context is handed from thread to thread"
)]
//! One GPU, and the context in which all its work is done.

use super::abi::{Api, CuContext, CuDevice, INVALID_CONTEXT, attribute};
use super::driver::{Cuda, check, error};
use crate::mem::Port;
use crate::types::shared::Shared;
use crate::types::{Bus, Error, Result};
use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::{fmt, ptr};

/// A handle to one GPU, and to the context in which all its work is done. Clones refer to the same
/// GPU. Any thread may use it: each call makes the context current for its duration, and then
/// restores the thread's own.
///
/// Memory, modules and kernels each hold a handle. Dropping the last handle releases the context; a
/// handle that is forgotten keeps it for ever.
#[derive(Clone)]
pub struct Gpu(Shared<Context>);

/// What the handles share.
struct Context {
    cuda: Cuda,
    context: CuContext,
    device: CuDevice,
    facts: GpuFacts,
    /// Whether the primary context was retained; false: other code made the context.
    retained: bool,
    /// How many objects were made here and not freed: blocks of memory, and kernels, which may be
    /// forgotten.
    out: AtomicUsize,
    /// How many kernels did not end when they should have: a call that waits for the whole context
    /// would wait for them.
    hung: AtomicUsize,
}

/// What a GPU reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFacts {
    /// Its number among this program's GPUs (`CUDA_VISIBLE_DEVICES`).
    pub ordinal: u32,
    /// Its name, clipped to this length.
    pub name: heapless::String<64>,
    /// Its compute capability: Orin has `(8, 7)`.
    pub compute_capability: (u32, u32),
    /// Whether it shares the CPU's memory, as a Jetson's does.
    pub integrated: bool,
    /// Whether atomic operations of CPU and GPU on the same word are atomic to each other.
    pub host_native_atomics: bool,
    /// Whether registered memory has the same address for both. The runtime does not rely on this:
    /// it asks the driver for the address.
    pub host_pointer_for_registered: bool,
    /// Whether it can use the CPU's memory at all.
    pub can_map_host_memory: bool,
    /// The size of its memory, or of the memory that it shares, in bytes.
    pub total_bytes: u64,
}

impl GpuFacts {
    /// Returns whether the CPU accesses pinned memory uncached, as on integrated GPUs below compute
    /// capability 7.2 (Nano, TX2): reading it byte by byte is slow, so copy it out or only write
    /// it. (CUDA for Tegra, "Memory Types".)
    #[must_use]
    pub const fn cpu_uncached(&self) -> bool {
        let (major, minor) = self.compute_capability;
        self.integrated && (major < 7 || (major == 7 && minor < 2))
    }
}

impl Gpu {
    /// Opens GPU number `ordinal` with its primary context, which the CUDA runtime, TVM and
    /// `PyTorch` use too.
    ///
    /// # Errors
    /// [`Error::Argument`]: there are fewer GPUs. [`Error::Unsupported`]: it cannot use the CPU's
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
        // SAFETY: the pointer comes from a reference, and the device is valid.
        check("cuDevicePrimaryCtxRetain", unsafe {
            (cuda.api.primary_retain)(&raw mut context, device)
        })?;
        Self::new(cuda, context, device, facts, true)
    }

    /// Adopts this thread's current context and its GPU. Other code made that context.
    ///
    /// # Errors
    /// [`Error::Cuda`] with `cuCtxGetCurrent` and 201: none is. As [`primary`](Self::primary).
    ///
    /// # Safety
    /// The context is not destroyed while a handle to it lives, including those of memory, modules
    /// and kernels. It is never destroyed if [`is_in_use`](Self::is_in_use) returns `true` just
    /// before the last handle is dropped, because leaked objects may still be used.
    pub unsafe fn adopt(cuda: &Cuda) -> Result<Self> {
        let (mut context, mut device) = (ptr::null_mut(), 0);
        // SAFETY: the pointer comes from a reference.
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

    /// Makes the first handle. If that fails, a context that was retained is released.
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

    /// Returns what the GPU reports about itself.
    #[must_use]
    pub fn facts(&self) -> &GpuFacts {
        &self.0.facts
    }

    /// Returns the bus of its addresses.
    #[must_use]
    pub(crate) fn bus(&self) -> Bus {
        Bus::Gpu(self.facts().ordinal)
    }

    /// Returns its port to memory that was made for it.
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

    /// Calls the driver with this context current, and then restores the thread's own. Polling an
    /// event is such a call: 0.2 to 0.5 µs, of which switching the context takes 0.03 to 0.08 µs.
    /// Driver 580 would not need it.
    pub(super) fn within<T>(&self, act: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        let Context { cuda: Cuda { api, .. }, context, .. } = &*self.0;
        // SAFETY: the context is valid until the last handle is dropped: retained, or by the
        // promise of `adopt`'s caller.
        check("cuCtxPushCurrent", unsafe { (api.context_push)(*context) })?;
        // `act` does not panic: it calls the driver, and an event listener, which must not panic.
        let done = act(api);
        let mut popped = ptr::null_mut();
        // The pop may report the failure of an earlier launch, which the next call reports again;
        // the result of `act` must not be lost for that. SAFETY: the pointer comes from a
        // reference, and the context that was pushed is on the stack.
        let _ = unsafe { (api.context_pop)(&raw mut popped) };
        done
    }

    /// Counts an object that must be freed before the context.
    pub(super) fn took(&self) {
        self.0.out.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that object as freed.
    pub(super) fn gave_back(&self) {
        self.0.out.fetch_sub(1, Ordering::Release);
    }

    /// Returns whether an object was leaked or not freed. Then the context must stay.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.0.out.load(Ordering::Acquire) != 0
    }

    /// Counts a kernel that did not end; `false`: it ended after all.
    pub(super) fn hangs(&self, hangs: bool) {
        if hangs {
            self.0.hung.fetch_add(1, Ordering::Release);
        } else {
            self.0.hung.fetch_sub(1, Ordering::Release);
        }
    }

    /// Returns whether a kernel does not end. Then a call that waits for the whole context (to free
    /// memory, to unload) might wait for ever, and is not made.
    pub(super) fn is_hung(&self) -> bool {
        self.0.hung.load(Ordering::Acquire) != 0
    }
}

fn device(cuda: &Cuda, ordinal: u32) -> Result<CuDevice> {
    let mut device = 0;
    // SAFETY: the pointer comes from a reference.
    check("cuDeviceGet", unsafe {
        (cuda.api.device)(&raw mut device, c_int::try_from(ordinal).unwrap_or(c_int::MAX))
    })?;
    Ok(device)
}

fn facts(cuda: &Cuda, ordinal: u32, device: CuDevice) -> Result<GpuFacts> {
    let attribute = |which| {
        let mut value: c_int = 0;
        // SAFETY: the pointer comes from a reference, and the device is valid.
        check("cuDeviceGetAttribute", unsafe {
            (cuda.api.device_attribute)(&raw mut value, which, device)
        })?;
        Ok::<_, Error>(u32::try_from(value).unwrap_or(0))
    };
    let (mut bytes, mut total_bytes) = ([0_u8; 65], 0);
    // SAFETY: the buffer has this many bytes, and the last one stays 0.
    check("cuDeviceGetName", unsafe {
        (cuda.api.device_name)(bytes.as_mut_ptr().cast::<c_char>(), 64, device)
    })?;
    // SAFETY: the pointer comes from a reference.
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
    /// Releases the context; or keeps it for ever if memory was leaked, because a kernel may still
    /// write there, and the end of a context waits for its kernels.
    fn drop(&mut self) {
        if self.retained && self.out.load(Ordering::Acquire) == 0 {
            // SAFETY: retained once in `primary`, released once, and no object of it is left.
            let _ = unsafe { (self.cuda.api.primary_release)(self.device) };
        }
    }
}

// SAFETY: a context may be current on any number of threads, and the driver's functions may be
// called from all of them (CUDA C++ Programming Guide, "Context"). The fields do not change, except
// the counts, which are atomics.
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

#![allow(unsafe_code, reason = "a GPU's driver loads code that only its caller vouches for")]
//! GPUs that another crate provides. The bindings of their interfaces use the heap, which this
//! crate does not.

use super::any_memory::AnyMemory;
use super::any_module::AnyModule;
use contigo_core::mem::Port;
use contigo_core::types::{Bus, Error, Result, lock};
use core::fmt;
use spin::Mutex;

/// A kind of GPU that another crate provides ([`provide`]).
#[derive(Clone, Copy, Debug)]
pub struct GpuKind {
    /// The beginning of its names: `vulkan` or `opencl`.
    pub kind: &'static str,
    /// Opens the GPU of this number. It stays open until the program ends, and the same number
    /// opens the same GPU again.
    pub open: fn(u32) -> Result<&'static dyn GpuDevice>,
}

/// An open GPU: its port, and memory for it.
pub trait GpuDevice: Sync {
    /// The name that its driver gives it.
    fn name(&self) -> &str;

    /// The port to its own memory.
    fn port(&self) -> Port;

    /// Allocates `len_bytes` that CPU and GPU share.
    ///
    /// # Errors
    /// The error of its interface.
    fn memory(&'static self, len_bytes: usize) -> Result<AnyMemory>;

    /// Loads code for it, which stays loaded as long as the value or a kernel of it. The driver's
    /// compiler writes its messages to `log` if it refuses the code.
    ///
    /// # Errors
    /// The error of its interface.
    ///
    /// # Safety
    /// As [`OpenDevice::load`](super::OpenDevice::load).
    unsafe fn load(&'static self, code: &[u8], log: &mut dyn fmt::Write) -> Result<AnyModule>;
}

/// The kinds that another crate may provide.
const KINDS: [&str; 2] = ["vulkan", "opencl"];

/// The most GPUs that are open at once, of all kinds: as many as both crates' interfaces have.
const MOST_OPEN: usize = 32;

/// Each by its bus, so that no function of another crate is called under the lock.
static OPENED: Mutex<heapless::Vec<(Bus, &'static dyn GpuDevice), MOST_OPEN>> =
    Mutex::new(heapless::Vec::new());
static PROVIDED: Mutex<heapless::Vec<&'static GpuKind, { KINDS.len() }>> =
    Mutex::new(heapless::Vec::new());

/// Provides a kind of GPU until the process ends: from here on its names open memory and devices. A
/// second call changes nothing.
///
/// # Errors
/// [`Error::NotFound`]: the table has no row for this kind. [`Error::Contended`].
pub fn provide(kind: &'static GpuKind) -> Result<()> {
    let mut provided = lock::acquire(&PROVIDED)?;
    if !KINDS.contains(&kind.kind) {
        return Err(Error::NotFound {
            what: "kind of GPU",
            among: u32::try_from(KINDS.len()).unwrap_or(u32::MAX).into(),
        });
    }
    if provided.iter().all(|known| known.kind != kind.kind) {
        // There is room for every kind.
        let _ = provided.push(kind);
    }
    Ok(())
}

/// Returns whether `kind` is one of this crate's, or was provided.
pub(super) fn is_here(kind: &str) -> bool {
    !KINDS.contains(&kind) || find(kind).is_ok_and(|found| found.is_some())
}

fn find(kind: &str) -> Result<Option<&'static GpuKind>> {
    Ok(lock::acquire(&PROVIDED)?.iter().find(|known| known.kind == kind).copied())
}

/// Opens GPU number `ordinal` of `kind`.
pub(super) fn open(
    kind: &'static str,
    feature: &'static str,
    ordinal: u32,
) -> Result<&'static dyn GpuDevice> {
    let gpu = (find(kind)?.ok_or(Error::NotBuiltIn { kind, feature })?.open)(ordinal)?;
    let bus = gpu.port().bus;
    let mut opened = lock::acquire(&OPENED)?;
    if opened.iter().all(|known| known.0 != bus) {
        opened.push((bus, gpu)).map_err(|_| Error::TooMany {
            what: "GPUs of Vulkan and OpenCL",
            most: MOST_OPEN as u64,
        })?;
    }
    Ok(gpu)
}

/// The GPU of another crate that was opened by its name and has `port`: to load code for it.
/// `None`: there is no such GPU.
///
/// # Errors
/// [`Error::Contended`].
pub fn gpu_behind(port: &Port) -> Result<Option<&'static dyn GpuDevice>> {
    Ok(lock::acquire(&OPENED)?.iter().find(|known| known.0 == port.bus).map(|known| known.1))
}

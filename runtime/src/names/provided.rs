#![allow(unsafe_code, reason = "memory of another crate, by a pointer and a function that frees it")]
//! GPUs that another crate brings. The bindings of their interfaces take the heap, and this crate
//! has none.

use crate::{
    mem::{Backend, Port},
    types::{Error, Result, forward::forward, lock},
};
use core::{fmt, ptr::NonNull};
use spin::Mutex;

/// A kind of GPU that another crate brings ([`provide`]).
#[derive(Clone, Copy, Debug)]
pub struct GpuKind {
    /// The beginning of its names: `vulkan` or `opencl`.
    pub kind: &'static str,
    /// Opens the GPU of this number. It stays open until the program ends, and the same number is
    /// the same GPU again.
    pub open: fn(u32) -> Result<&'static dyn GpuDevice>,
}

/// A GPU, opened: its way to memory, and memory for it.
pub trait GpuDevice: Sync {
    /// Its way to its own memory.
    fn port(&self) -> Port;

    /// Allocates `len_bytes` that CPU and GPU share.
    ///
    /// # Errors
    /// The error of its interface.
    fn memory(&'static self, len_bytes: usize) -> Result<OwnedMemory>;
}

/// Memory of another crate, owned: a [`Backend`] that is freed when this value is dropped.
pub struct OwnedMemory {
    backend: NonNull<dyn Backend>,
    free: unsafe fn(NonNull<dyn Backend>),
}

impl OwnedMemory {
    /// Owns what `backend` leads to; `free` ends it.
    ///
    /// # Safety
    /// `backend` is this value's alone, until `free` is called with it: once, or never, from any
    /// thread.
    #[must_use]
    pub const unsafe fn new(backend: NonNull<dyn Backend>, free: unsafe fn(NonNull<dyn Backend>)) -> Self {
        Self { backend, free }
    }

    fn backend(&self) -> &dyn Backend {
        // SAFETY: it is there until this value is dropped (`new`).
        unsafe { self.backend.as_ref() }
    }
}

// SAFETY: every method is one backend's, which does not move.
unsafe impl Backend for OwnedMemory {
    forward!(|this| this.backend() => name, mapping, segment, sync_for_device, sync_for_cpu, handle, held_by);
}

// SAFETY: a backend is `Send`, and this value owns it.
unsafe impl Send for OwnedMemory {}
// SAFETY: a backend is `Sync`.
unsafe impl Sync for OwnedMemory {}

impl fmt::Debug for OwnedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedMemory").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Drop for OwnedMemory {
    fn drop(&mut self) {
        // SAFETY: once, and nobody uses it any more.
        unsafe { (self.free)(self.backend) }
    }
}

/// The kinds that another crate may bring.
const KINDS: [&str; 2] = ["vulkan", "opencl"];

static PROVIDED: Mutex<heapless::Vec<&'static GpuKind, { KINDS.len() }>> = Mutex::new(heapless::Vec::new());

/// Brings a kind of GPU, for the rest of the process's life: its names open memory and devices from
/// here on. A second call changes nothing.
///
/// # Errors
/// [`Error::NotFound`]: no row of the table waits for this kind. [`Error::Contended`].
pub fn provide(kind: &'static GpuKind) -> Result<()> {
    let mut provided = lock::acquire(&PROVIDED)?;
    if !KINDS.contains(&kind.kind) {
        return Err(Error::NotFound { what: "kind of GPU", among: u32::try_from(KINDS.len()).unwrap_or(u32::MAX) });
    }
    if provided.iter().all(|known| known.kind != kind.kind) {
        // There is room for every kind.
        let _ = provided.push(kind);
    }
    Ok(())
}

/// Is `kind` one of this crate's, or was it brought?
pub(super) fn is_here(kind: &str) -> bool {
    !KINDS.contains(&kind) || find(kind).is_ok_and(|found| found.is_some())
}

fn find(kind: &str) -> Result<Option<&'static GpuKind>> {
    Ok(lock::acquire(&PROVIDED)?.iter().find(|known| known.kind == kind).copied())
}

/// Opens GPU number `ordinal` of `kind`.
pub(super) fn open(kind: &'static str, feature: &'static str, ordinal: u32) -> Result<&'static dyn GpuDevice> {
    (find(kind)?.ok_or(Error::NotBuiltIn { kind, feature })?.open)(ordinal)
}

#![allow(unsafe_code, reason = "the driver's functions are called")]
//! Kernels, as they are loaded.

use super::{
    Gpu,
    abi::{CuFunction, CuModule, JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
    driver::check,
};
use crate::types::Result;
use core::{
    ffi::{CStr, c_void},
    fmt, ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The words of the driver's compiler about an image that it does not load; as much as fits.
pub type Log = heapless::String<1024>;

/// Code for a GPU.
#[derive(Clone, Copy, Debug)]
pub enum Image<'i> {
    /// PTX, which the driver compiles for the GPU that there is, and keeps compiled in a cache of
    /// its own.
    Ptx(&'i CStr),
    /// A cubin or fatbin as `nvcc` or `ptxas` made it.
    Binary(&'i [u8]),
}

impl<'i> Image<'i> {
    /// PTX where its only NUL is at its end; otherwise a binary.
    #[must_use]
    pub fn of(bytes: &'i [u8]) -> Self {
        CStr::from_bytes_with_nul(bytes).map_or(Self::Binary(bytes), Self::Ptx)
    }
}

/// An image on a GPU, with its kernels.
pub struct Module<'g> {
    pub(super) gpu: &'g Gpu<'g>,
    module: CuModule,
    /// Kernels that were made of it and not given back: they may run, also where they were
    /// forgotten.
    kernels: AtomicUsize,
}

impl<'g> Module<'g> {
    /// Loads `image`. The driver allocates and compiles as it pleases. **Do it before the first
    /// job:** beside a kernel at work the driver waits for that kernel's end, however long it takes
    /// (seen with driver 580).
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda) with `cuModuleLoadDataEx`. 218: it is no PTX, and `log`
    /// says why. 222: the PTX is newer than the driver. 209: the binary is for other GPUs. 200: it
    /// is no image.
    ///
    /// # Safety
    /// A text is PTX, and a binary whole: its headers tell the driver how long it is.
    pub unsafe fn load(gpu: &'g Gpu<'g>, image: Image<'_>, log: &mut Log) -> Result<Self> {
        let image: *const c_void = match image {
            Image::Ptx(text) => text.as_ptr().cast(),
            Image::Binary(bytes) => bytes.as_ptr().cast(),
        };
        let mut module = ptr::null_mut();
        let mut text = [0_u8; 1024];
        let mut options = [JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // A number is passed as a pointer's value (cuda.h). The last byte stays 0.
        let mut values = [text.as_mut_ptr().cast(), ptr::without_provenance_mut(text.len() - 1)];
        let loaded = gpu.within(|api| {
            // SAFETY: two options with their values, the first of which points to as many bytes as
            // the second says. A text ends with its NUL, and a binary is whole by the caller's
            // promise.
            check("cuModuleLoadDataEx", unsafe { (api.module_load)(&raw mut module, image, 2, options.as_mut_ptr(), values.as_mut_ptr()) })
        });
        log.clear();
        let said = text.split(|byte| *byte == 0).next().unwrap_or_default();
        for part in said.utf8_chunks() {
            let _ = log.push_str(part.valid());
        }
        loaded.map(|()| Self { gpu, module, kernels: AtomicUsize::new(0) })
    }

    /// A kernel was made of it: from now on module and context stay, until it is given back.
    pub(super) fn took(&self) {
        self.kernels.fetch_add(1, Ordering::Relaxed);
        self.gpu.took();
    }

    /// It was given back, and does not run.
    pub(super) fn gave_back(&self) {
        self.kernels.fetch_sub(1, Ordering::Release);
        self.gpu.gave_back();
    }

    /// The kernel called `name`.
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda) with `cuModuleGetFunction` and 500: there is none.
    pub(super) fn function(&self, name: &CStr) -> Result<CuFunction> {
        let mut function = ptr::null_mut();
        self.gpu.within(|api| {
            // SAFETY: the pointer is a reference, the module is one, and the name ends with its
            // NUL.
            check("cuModuleGetFunction", unsafe { (api.module_function)(&raw mut function, self.module, name.as_ptr()) })
        })?;
        Ok(function)
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        if self.kernels.load(Ordering::Acquire) != 0 || self.gpu.is_hung() {
            return;
        }
        // SAFETY: the module is one, unloaded once, and no kernel of it runs: each that was made of
        // it was given back idle.
        let _ = self.gpu.within(|api| check("cuModuleUnload", unsafe { (api.module_unload)(self.module) }));
    }
}

// SAFETY: a module may be used on any thread where its context is current.
unsafe impl Send for Module<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Module<'_> {}

impl fmt::Debug for Module<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("gpu", &self.gpu).finish_non_exhaustive()
    }
}

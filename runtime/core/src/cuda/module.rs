#![allow(unsafe_code, reason = "the driver's functions are called")]
//! Kernels, as they are loaded.

use super::{
    Gpu,
    abi::{CuFunction, CuModule, JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
    driver::check,
};
use crate::types::{Result, shared::Shared};
use core::{
    ffi::{CStr, c_void},
    fmt, ptr,
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

/// A handle to an image on a GPU, with its kernels. Clones are the same module, and a kernel has a
/// handle too: with the last of them it is unloaded. A kernel that did not end, or was forgotten,
/// keeps its own for ever.
#[derive(Clone)]
pub struct Module(Shared<Loaded>);

/// What the handles share.
struct Loaded {
    /// Dropped behind the module, which is unloaded in `drop`.
    gpu: Gpu,
    module: CuModule,
}

impl Module {
    /// Loads `image`. The driver allocates and compiles as it pleases. **Do it before the first
    /// job:** beside a kernel at work the driver waits for that kernel's end, however long it takes
    /// (seen with driver 580).
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda) with `cuModuleLoadDataEx`. 218: it is no PTX, and `log`
    /// says why. 222: the PTX is newer than the driver. 209: the binary is for other GPUs. 200: it
    /// is no image. [`Error::Os`](crate::Error::Os): the kernel has no page for the handles.
    ///
    /// # Safety
    /// A text is PTX, and a binary whole: its headers tell the driver how long it is.
    pub unsafe fn load(gpu: &Gpu, image: Image<'_>, log: &mut Log) -> Result<Self> {
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
            check("cuModuleLoadDataEx", unsafe {
                (api.module_load)(
                    &raw mut module,
                    image,
                    2,
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                )
            })
        });
        log.clear();
        let said = text.split(|byte| *byte == 0).next().unwrap_or_default();
        for part in said.utf8_chunks() {
            let _ = log.push_str(part.valid());
        }
        loaded?;
        // Where there is no page, it is unloaded.
        Shared::new(Loaded { gpu: gpu.clone(), module }).map(Self)
    }

    /// The GPU that it is on.
    pub(super) fn gpu(&self) -> &Gpu {
        &self.0.gpu
    }

    /// The kernel called `name`.
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda) with `cuModuleGetFunction` and 500: there is none.
    pub(super) fn function(&self, name: &CStr) -> Result<CuFunction> {
        let mut function = ptr::null_mut();
        self.gpu().within(|api| {
            // SAFETY: the pointer is a reference, the module is one, and the name ends with its
            // NUL.
            check("cuModuleGetFunction", unsafe {
                (api.module_function)(&raw mut function, self.0.module, name.as_ptr())
            })
        })?;
        Ok(function)
    }
}

impl Drop for Loaded {
    /// Unloads it; or keeps it beside a kernel that hangs, for which the driver would wait.
    fn drop(&mut self) {
        if self.gpu.is_hung() {
            return;
        }
        // SAFETY: the module is one, unloaded once, and no kernel of it runs: each that was made of
        // it had a handle, which it lets go only when it is idle and was given back.
        let _ = self
            .gpu
            .within(|api| check("cuModuleUnload", unsafe { (api.module_unload)(self.module) }));
    }
}

// SAFETY: a module may be used on any thread where its context is current.
unsafe impl Send for Loaded {}
// SAFETY: as for `Send`.
unsafe impl Sync for Loaded {}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("gpu", self.gpu()).finish_non_exhaustive()
    }
}

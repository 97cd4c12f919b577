#![allow(unsafe_code, reason = "the driver's functions are called")]
//! Modules: images of kernels, loaded on a GPU.

use super::Gpu;
use super::abi::{CuFunction, CuModule, JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
use super::driver::check;
use crate::types::Result;
use crate::types::shared::Shared;
use core::ffi::{CStr, c_void};
use core::{fmt, ptr};

/// What the driver's compiler reports about an image that does not load, clipped to this length.
pub type Log = heapless::String<1024>;

/// Code for a GPU.
#[derive(Clone, Copy, Debug)]
pub enum Image<'i> {
    /// PTX, which the driver compiles for the present GPU, and keeps compiled in a cache of its
    /// own.
    Ptx(&'i CStr),
    /// A cubin or fatbin as `nvcc` or `ptxas` made it.
    Binary(&'i [u8]),
}

impl<'i> Image<'i> {
    /// PTX if the only NUL is at the end; otherwise a binary.
    #[must_use]
    pub fn of(bytes: &'i [u8]) -> Self {
        CStr::from_bytes_with_nul(bytes).map_or(Self::Binary(bytes), Self::Ptx)
    }
}

/// A handle to an image on a GPU, with its kernels. Clones refer to the same module, and a kernel
/// holds a handle too: dropping the last one unloads the module. A kernel that did not end, or was
/// forgotten, keeps its handle for ever.
#[derive(Clone)]
pub struct Module(Shared<Loaded>);

/// What the handles share.
struct Loaded {
    /// Dropped after the module, which is unloaded in `drop`.
    gpu: Gpu,
    module: CuModule,
}

impl Module {
    /// Loads `image`. The driver may allocate and compile. **Do it before the first job:** while a
    /// kernel runs, the driver waits for that kernel's end, however long it takes (seen with driver
    /// 580).
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda) with `cuModuleLoadDataEx`. 218: it is not PTX, and `log`
    /// says why. 222: the PTX is newer than the driver. 209: the binary is for other GPUs. 200: it
    /// is not an image. [`Error::Os`](crate::Error::Os): the kernel has no page for the handles.
    ///
    /// # Safety
    /// A text is PTX, and a binary is complete: its headers tell the driver its length.
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
            // SAFETY: there are two options with their values; the first value points to as many
            // bytes as the second one says. A text ends with its NUL, and a binary is complete by
            // the caller's promise.
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
        // If there is no page, the module is unloaded.
        Shared::new(Loaded { gpu: gpu.clone(), module }).map(Self)
    }

    /// The GPU that holds the module.
    pub(super) fn gpu(&self) -> &Gpu {
        &self.0.gpu
    }

    /// Finds the kernel called `name`.
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda) with `cuModuleGetFunction` and 500: there is none.
    pub(super) fn function(&self, name: &CStr) -> Result<CuFunction> {
        let mut function = ptr::null_mut();
        self.gpu().within(|api| {
            // SAFETY: the pointer comes from a reference, the module is valid, and the name ends
            // with its NUL.
            check("cuModuleGetFunction", unsafe {
                (api.module_function)(&raw mut function, self.0.module, name.as_ptr())
            })
        })?;
        Ok(function)
    }
}

impl Drop for Loaded {
    /// Unloads the module; or keeps it if a kernel hangs, for which the driver would wait.
    fn drop(&mut self) {
        if self.gpu.is_hung() {
            return;
        }
        // SAFETY: the module is valid, is unloaded once, and none of its kernels runs: each kernel
        // holds a handle, and drops it only when it is idle and was freed.
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

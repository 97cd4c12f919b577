#![allow(unsafe_code, reason = "the driver's functions are called, and code for a device is built")]
//! Kernels, as they are built.

use super::OpenClGpu;
use super::error::{check, error};
use super::facts::text;
use cl3::kernel::create_kernel;
use cl3::program::{
    CL_PROGRAM_BUILD_LOG, build_program, create_program_with_source, get_program_build_data,
    release_program,
};
use cl3::types::{cl_kernel, cl_program};
use contigo::{Error, Result};
use core::ffi::CStr;
use core::{fmt, ptr};
use std::sync::Arc;

/// The words of the driver's compiler about a source, as much as 64 KiB.
pub type Log = String;

/// The most bytes of a compiler's words that are kept.
const LOG_BYTES: usize = 64 << 10;

/// A handle to a program of kernels, built for one device. Clones are the same program, and a
/// kernel has a handle too: with the last of them it is given back. A kernel that did not end, or
/// was forgotten, keeps its own for ever.
#[derive(Clone)]
pub struct OpenClModule(Arc<Built>);

/// What the handles share.
struct Built {
    gpu: &'static OpenClGpu,
    program: cl_program,
}

impl OpenClModule {
    /// Builds `source`, in OpenCL C, with the compiler's `options`. It returns when the compiler
    /// has ended: do it before the first job.
    ///
    /// # Errors
    /// - [`Error::Gpu`] with `clBuildProgram`. -11: the source has errors, and `log` says which.
    ///   -43: an option is unknown.
    /// - [`Error::Unsupported`]: the device has no compiler.
    /// - [`Error::Argument`]: the source has no byte. [`Error::Forked`].
    ///
    /// # Safety
    /// The source and the options are what the program's author means to run. A compiler is no
    /// judge of hostile source, and a kernel may write anywhere: [`OpenClKernel::new`] has the rest
    /// of the promise.
    ///
    /// [`OpenClKernel::new`]: super::OpenClKernel::new
    pub unsafe fn build(
        gpu: &'static OpenClGpu,
        source: &str,
        options: &CStr,
        log: &mut Log,
    ) -> Result<Self> {
        log.clear();
        gpu.must_be_ours()?;
        // To OpenCL a length of 0 is that of a text which ends with a NUL, and this one does not.
        if source.is_empty() {
            let (name, max) = ("the length of a text of OpenCL C", isize::MAX as u64);
            return Err(Error::Argument { name, value: 0, min: 1, max, multiple_of: 1 });
        }
        if !gpu.facts().compiler {
            let fix = "use another device";
            return Err(Error::Unsupported {
                what: "this device has no compiler (CL_DEVICE_COMPILER_AVAILABLE is 0)",
                fix,
            });
        }
        let program =
            check("clCreateProgramWithSource", create_program_with_source(gpu.context, &[source]))?;
        let this = Self(Arc::new(Built { gpu, program }));
        let built = build_program(program, &[gpu.device], options, None, ptr::null_mut());
        if let Ok(mut said) = get_program_build_data(program, gpu.device, CL_PROGRAM_BUILD_LOG) {
            said.truncate(LOG_BYTES);
            log.push_str(&text(&said));
        }
        built.map(|()| this).map_err(|code| error("clBuildProgram", code))
    }

    /// The device that it was built for.
    pub(super) fn gpu(&self) -> &'static OpenClGpu {
        self.0.gpu
    }

    /// The kernel called `name`.
    pub(super) fn kernel(&self, name: &CStr) -> Result<cl_kernel> {
        check("clCreateKernel", create_kernel(self.0.program, name))
    }
}

impl Drop for Built {
    /// Gives the program back; or keeps it beside a kernel that may run, for which the driver might
    /// wait.
    fn drop(&mut self) {
        if self.gpu.keeps_all() {
            return;
        }
        // SAFETY: the program is one, released once, and no kernel of it runs: each that was made
        // of it had a handle, which it lets go only when it is idle and was given back.
        let _ = unsafe { release_program(self.program) };
    }
}

// SAFETY: OpenCL's functions take a program on any thread (OpenCL 3.0, A.2).
unsafe impl Send for Built {}
// SAFETY: as for `Send`.
unsafe impl Sync for Built {}

impl fmt::Debug for OpenClModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClModule").field("gpu", self.gpu()).finish_non_exhaustive()
    }
}

#![allow(unsafe_code, reason = "functions that C calls")]
//! Kernels of GPUs.

use super::raw;
use crate::engine::Engine;
use crate::fault::Fault;
use crate::handles::{contigo_engine, contigo_module, contigo_port};
use crate::last_error::call;
use crate::object::{gpu, port_of};
use crate::status::contigo_status;
use contigo::OperandSpec;
use contigo::job::{MAX_OPERANDS, Parameter, Signature};
use contigo_objects::driver::contigo_operand_spec;
use core::ffi::{CStr, c_char};
use heapless::Vec;

/// One parameter of a GPU's kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_parameter {
    /// A scalar, or a structure by value: so many of the job's next argument words. 0: a pointer
    /// or a buffer, which is the job's next operand.
    pub words: u32,
    /// Always 0.
    pub reserved: u32,
    /// That operand, as the kernel takes it. It is read where `words` is 0.
    pub operand: contigo_operand_spec,
}

/// Loads code for the GPU that `port` belongs to (`contigo_port_find`). For `cuda:0` it is PTX with
/// a NUL at its end, or a whole cubin or fatbin; for `vulkan` SPIR-V; for `opencl` a text of
/// OpenCL C. The GPU's driver compiles and allocates as it pleases: do it before the first job.
/// Close it with `contigo_module_close`.
///
/// `CONTIGO_E_NO_LIBRARY`: there is no driver. `CONTIGO_E_KIND`: the port belongs to no GPU.
/// `CONTIGO_E_CUDA`, `CONTIGO_E_GPU`: the driver refused the code; `contigo_last_error` has the
/// words of its compiler.
///
/// # Safety
/// `image` points to `image_bytes` bytes. A compiler made them for this kind of GPU, and they are
/// whole; a text is what the program means to run. `module` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_module_load(
    port: contigo_port,
    image: *const u8,
    image_bytes: usize,
    module: *mut contigo_module,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(module, "module", || {
            gpu::load(&port_of(port)?, raw::bytes(image, image_bytes, "image")?)
        })
    }
}

/// Opens an engine over one kernel of a module, with a stream or a queue of its own. `entry` is its
/// name there; CUDA's is mangled, unless it is `extern "C"`, and a shader's is most often `main`.
/// `n` parameters in the order of their declaration: of a shader the storage buffers by their
/// bindings, and the words of its push constants.
///
/// A job's first seven argument words are its launch: grid in x, y and z, block in x, y and z,
/// bytes of shared memory; its scalars follow. Of a shader the block is its `local_size`, and
/// shared memory is 0, as of OpenCL. The operands are memory of this GPU, by the same name
/// (`contigo_region_open("vulkan", …)`). Close it with `contigo_engine_close`.
///
/// The engine has no interrupt: wait, or look again and again. A kernel cannot be stopped. Where a
/// job takes too long or is cancelled, the library waits for its end: five seconds at most for
/// `cuda`, ten for `vulkan` and `opencl`. Through OpenCL each operand's hand-over may wait ten
/// seconds too, behind a kernel that goes on. A kernel that is only slow keeps its buffers until
/// it has ended: then `contigo_queue_stop` gives them back.
///
/// # Safety
/// `entry` is NUL-terminated; `parameters` points to `n` structures; `engine` is writable. The
/// kernel has these parameters. With all argument words that the program passes, it touches no
/// bytes except for the operands' bytes, and writes only the operands that say so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_open_kernel(
    module: contigo_module,
    entry: *const c_char,
    parameters: *const contigo_parameter,
    n: usize,
    engine: *mut contigo_engine,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(engine, "engine", || {
            // The length is checked, and so is the text.
            raw::text(entry, "entry")?;
            if parameters.is_null() {
                return Err(Fault::null("parameters"));
            }
            if n > Signature::MAX_PARAMETERS {
                return Err(Fault::value("n", n as u64));
            }
            let mut known = Vec::<Parameter, { Signature::MAX_PARAMETERS }>::new();
            for at in 0..n {
                let given = parameters.add(at).read_unaligned();
                let _ = known.push(if given.words == 0 {
                    Parameter::Operand(OperandSpec::try_from(&given.operand)?)
                } else {
                    Parameter::Words(given.words as usize)
                });
            }
            const _: () = assert!(
                MAX_OPERANDS <= Signature::MAX_PARAMETERS,
                "a kernel's operands are parameters"
            );
            Engine::of_kernel(module, CStr::from_ptr(entry), &known)
        })
    }
}

/// Closes a module. `CONTIGO_E_STILL_USED` while an engine has a kernel of it.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_module_close(module: contigo_module) -> contigo_status {
    call(|| Ok(gpu::MODULES.close(module)?))
}

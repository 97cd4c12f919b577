#![allow(unsafe_code, reason = "functions that C calls, and a function of C that is called")]
//! A kernel of the program's own on a simulated board, computed by a function of C.

use super::raw;
use crate::fault::Fault;
use crate::handles::{contigo_device, contigo_kernel, contigo_sim};
use crate::object::{KERNELS, SIMS, device};
use crate::status::contigo_status;
use contigo::sim::ap_ctrl::{ApCtrlModel, KernelCall, KernelError};
use contigo::sim::{AnyModel, Faults, SimBoard};
use contigo_objects::driver::{contigo_use, use_of};
use contigo_objects::{KernelJob, Results};
use core::ffi::c_void;

/// The seed of a board that the program did not make.
const SEED: u64 = 1;

/// One operand of a simulated kernel's job: the bytes that the kernel may access.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_kernel_bytes {
    /// A copy of them, for any type; of an operand that the kernel only writes, as they were
    /// before. Those that the kernel writes go back when the function returns; any others must stay
    /// as they are. Where there are none, it points nowhere.
    pub bytes: *mut u8,
    /// How many: by the map's rule; without one, as many as the job was given.
    pub len_bytes: usize,
    /// `CONTIGO_READS`, `CONTIGO_WRITES`, or both: what the kernel does with them.
    pub r#use: contigo_use,
}

/// One job of a simulated kernel, for the function that computes it, and until it returns.
#[repr(C)]
#[derive(Debug)]
pub struct contigo_kernel_job {
    /// The kernel's scalars, in the map's order; a float's bits are its value.
    pub scalars: *const u64,
    /// The kernel's operands, in the map's order.
    pub operands: *const contigo_kernel_bytes,
    /// How many scalars.
    pub scalar_count: u32,
    /// How many operands.
    pub operand_count: u32,
    /// The function puts the words of the kernel's results here; they are 0 before.
    pub results: [u32; 4],
}

/// Computes a job of a simulated kernel. 0: done. Any other number fails the job with
/// `CONTIGO_E_NOT_COMPUTED`. It returns, and does not unwind or jump: an exception of C++ stays
/// inside. While it computes, other threads wait for its board, for a second at most: then they get
/// `CONTIGO_E_CONTENDED`.
pub type contigo_kernel_function =
    Option<unsafe extern "C" fn(context: *mut c_void, job: *mut contigo_kernel_job) -> i32>;

/// Puts a kernel on a simulated board: `function` computes its jobs, with `context`, and the driver
/// `ap_ctrl` drives it by the same map. With a `sim` of 0 it has a board of its own. Close it with
/// `contigo_device_close`. `kernel` may be closed at once.
///
/// A job whose function returns another number than 0, or alters bytes that the kernel only reads,
/// fails with `CONTIGO_E_NOT_COMPUTED`.
///
/// # Safety
/// `function` may be called with `context` in any thread that uses the device or another one of its
/// board, until `contigo_device_close` has returned for it. It stays inside the operands, and calls
/// no function of this library. `device` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_kernel_simulate(
    kernel: contigo_kernel,
    sim: contigo_sim,
    function: contigo_kernel_function,
    context: *mut c_void,
    device: *mut contigo_device,
) -> contigo_status {
    let open = || {
        let function = function.ok_or_else(|| Fault::null("function"))?;
        let (map, computes) = (KERNELS.lease(kernel)?.clone(), Computes { function, context });
        // SAFETY: the caller's promise.
        let compute = move |call: &mut KernelCall<'_, '_>| unsafe { computes.call(call) };
        let name = map.name;
        let model = AnyModel::new(ApCtrlModel::new(map, compute)?);
        match sim {
            0 => device::simulated(
                &SimBoard::try_with(SEED, Faults::NONE)?,
                None,
                name.as_str(),
                model,
            ),
            sim => {
                let held = SIMS.lease(sim)?;
                device::simulated(&held.clone(), Some(held), name.as_str(), model)
            }
        }
    };
    // SAFETY: the caller's promise.
    unsafe { raw::opened(device, "device", open) }
}

/// The program's function, and what it is called with.
struct Computes {
    function: unsafe extern "C" fn(*mut c_void, *mut contigo_kernel_job) -> i32,
    context: *mut c_void,
}

// SAFETY: the caller of `contigo_kernel_simulate` promises that any thread may call it.
unsafe impl Send for Computes {}

impl Computes {
    /// # Safety
    /// As `contigo_kernel_simulate`.
    unsafe fn call(&self, call: &mut KernelCall<'_, '_>) -> Result<Results, KernelError> {
        let KernelJob { scalars, mut operands, .. } = KernelJob::of(call)?;
        let before = operands.clone();
        let uses: Vec<_> = call.map().operands().iter().map(|spec| spec.direction).collect();
        let given: Vec<_> = operands
            .iter_mut()
            .zip(&uses)
            .map(|(bytes, direction)| contigo_kernel_bytes {
                bytes: bytes.as_mut_ptr(),
                len_bytes: bytes.len(),
                r#use: use_of(*direction),
            })
            .collect();
        let mut job = contigo_kernel_job {
            scalars: scalars.as_ptr(),
            operands: given.as_ptr(),
            scalar_count: count(scalars.len()),
            operand_count: count(given.len()),
            results: Results::default(),
        };
        // SAFETY: the caller's promise; all of the job lives until it returns.
        let status = unsafe { (self.function)(self.context, &mut job) };
        let is_altered = (operands.iter().zip(&before).zip(&uses))
            .any(|((after, before), direction)| !direction.device_writes() && after != before);
        if status != 0 || is_altered {
            return Err(KernelError::Failed);
        }
        KernelJob::store(&operands, call)?;
        Ok(job.results)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "at most 16 of each")]
const fn count(len: usize) -> u32 {
    len as u32
}

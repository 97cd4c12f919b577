#![allow(unsafe_code, reason = "functions that C calls")]
//! Jobs.

use super::{
    buf::contigo_buf,
    engine::contigo_engine,
    port::flag,
    raw::{self, Versioned},
};
use crate::{
    engine::{End, Order, Part, Station},
    fault::{Fault, Misuse},
    last_error::call,
    status::{CONTIGO_E_TIMEOUT, contigo_status},
};
use contigo::Timeout;
use contigo_gemm8::{Gemm, Output};
use core::mem;

/// A job under way. Its handle is stale once the job has ended, however it ended.
pub type contigo_job = u64;

/// Which bytes of which buffer a job uses. The buffer is the CPU's, or a device's from an earlier job or `contigo_buf_to_device`; then the
/// bytes count from the first that was handed over.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_operand {
    /// The buffer.
    pub buf: contigo_buf,
    /// The first byte, from the first that the buffer shows.
    pub offset_bytes: usize,
    /// How many.
    pub len_bytes: usize,
}

impl From<contigo_operand> for Part {
    fn from(operand: contigo_operand) -> Self {
        let contigo_operand { buf, offset_bytes, len_bytes } = operand;
        Self { buf, offset_bytes, len_bytes }
    }
}

/// C is int8: the sums shifted right by `shift` with rounding half up, and saturated.
pub const CONTIGO_GEMM8_INT8: u32 = 0;
/// C is int32: the sums as they are.
pub const CONTIGO_GEMM8_INT32: u32 = 1;

/// One matrix product, C = A * B + bias.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_gemm8_args {
    /// `sizeof(contigo_gemm8_args)`.
    pub struct_size: usize,
    /// Rows of A and C: 1 to 4096.
    pub m: u32,
    /// Columns of B and C: 16 to 4096, a multiple of 16.
    pub n: u32,
    /// Columns of A, rows of B: 16 to 4096, a multiple of 16.
    pub k: u32,
    /// `CONTIGO_GEMM8_INT8` or `CONTIGO_GEMM8_INT32`.
    pub output: u32,
    /// 1: negative sums become 0.
    pub relu: u32,
    /// For int8: how many bits, 0 to 31.
    pub shift: u32,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_gemm8_args {
    const NAME: &'static str = "contigo_gemm8_args";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Starts a matrix product on a gemm8. `operands`: A, `m` rows of `k` int8; B, `k` rows of `n` int8; bias, `n` int32; C, `m` rows of `n` int8 or
/// int32, which the device writes. Each begins at a bus address that is a multiple of 64.
///
/// The buffers are the device's until the job has ended. Where the job is refused, they stay as they were, and nothing was touched.
///
/// # Safety
/// `args` points to an initialised structure, `operands` to four; `job` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_gemm8_start(
    engine: contigo_engine,
    args: *const contigo_gemm8_args,
    operands: *const contigo_operand,
    job: *mut contigo_job,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::answer(job, "job", || {
            let contigo_gemm8_args { m, n, k, output, relu, shift, .. } = raw::read(args)?;
            let relu = flag(relu, "contigo_gemm8_args.relu")?;
            let output = match output {
                CONTIGO_GEMM8_INT8 => Output::Int8 { relu, shift },
                CONTIGO_GEMM8_INT32 => Output::Int32 { relu },
                value => return Err(Fault::from(Misuse::Value { what: "contigo_gemm8_args.output", value: value.into() })),
            };
            if operands.is_null() {
                return Err(Misuse::Null { what: "operands" }.into());
            }
            let operands = operands.cast::<[contigo_operand; 4]>().read_unaligned().map(Part::from);
            Station::start(engine, &Order::Gemm(Gemm { m, n, k, output }, operands))
        })
    }
}

/// Starts a copy on a PL330 or a ZDMA, of all bytes of `from`, to the beginning of `to`, which has as many at least.
///
/// # Safety
/// `from` and `to` point to one operand each; `job` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_copy_start(
    engine: contigo_engine,
    from: *const contigo_operand,
    to: *const contigo_operand,
    job: *mut contigo_job,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::answer(job, "job", || {
            if from.is_null() || to.is_null() {
                return Err(Fault::from(Misuse::Null { what: "an operand" }));
            }
            Station::start(engine, &Order::Copy([from, to].map(|operand| operand.read_unaligned().into())))
        })
    }
}

/// Looks once whether the job has ended, with no wait and no system call: `done` is 1 then, the buffers are the CPU's, and the handle is
/// stale. On an error the job has ended too, as after `contigo_job_wait`.
///
/// # Safety
/// `done` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_job_poll(job: contigo_job, done: *mut u32) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::answer(done, "done", || Station::end(job, End::Poll).map(u32::from)) }
}

/// Waits for the end of the job, at most `timeout_us` microseconds, and makes the buffers the CPU's: what the device wrote is visible. The
/// handle is stale then.
///
/// `CONTIGO_E_TIMEOUT`, `CONTIGO_E_FAULT`, `CONTIGO_E_SHORT_TRANSFER`: the device was stopped, and the buffers are back; one whose caches could
/// not be maintained is still a device's, and `contigo_buf_to_cpu` tries again. `CONTIGO_E_WILL_NOT_STOP`: the buffers are leaked.
/// Another thread's call with the same job or engine is refused meanwhile (`CONTIGO_E_IN_CALL`).
#[unsafe(no_mangle)]
pub extern "C" fn contigo_job_wait(job: contigo_job, timeout_us: u32) -> contigo_status {
    call(|| Station::end(job, End::Wait { timeout: Timeout::us(timeout_us), to_cpu: true }).map(|_| ()))
}

/// As `contigo_job_wait`, and the buffers stay a device's: the output can be an operand of the next job with no cache maintenance between.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_job_wait_device(job: contigo_job, timeout_us: u32) -> contigo_status {
    call(|| Station::end(job, End::Wait { timeout: Timeout::us(timeout_us), to_cpu: false }).map(|_| ()))
}

/// Stops the device and ends the job; the buffers are back. A job that has just ended well is no error. `CONTIGO_E_WILL_NOT_STOP`: the
/// buffers are leaked.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_job_cancel(job: contigo_job) -> contigo_status {
    call(|| match Station::end(job, End::Wait { timeout: Timeout::NOW, to_cpu: true }) {
        // That is what stopping it looks like.
        Err(fault) if fault.status() != CONTIGO_E_TIMEOUT => Err(fault),
        _ => Ok(()),
    })
}

#![allow(unsafe_code, reason = "functions that C calls")]
//! Jobs, by their handles and in the order of their ends.

use super::raw;
use crate::engine::{self, ENGINES, Engine, Outcome, Wait, contigo_operand};
use crate::fault::Fault;
use crate::handles::{CONTIGO_JOB_MORE, CONTIGO_MAX_ARGS, contigo_engine, contigo_job};
use crate::last_error::call;
use crate::status::contigo_status;
use contigo::job::MAX_OPERANDS;
use contigo_objects::driver::contigo_completion;
use core::slice;

/// Gives the device one job more: `n` operands, as many as the driver's jobs have, and `args_words`
/// argument words, which the driver's documentation names. Every check comes first, then the caches
/// that these bytes need on this port, then the doorbell.
///
/// flags: 0, or `CONTIGO_JOB_MORE` where more jobs follow at once, as `MSG_MORE` of send(2). A
/// driver with descriptors then rings one doorbell for all of them, and their caches are maintained
/// by one call: at the next job without it, or when this engine is next waited for. Do not sleep
/// before that. Where the device does not take such a burst, each of its jobs ends by
/// `CONTIGO_E_FAULT`.
///
/// The device owns the buffers until one of the functions below takes the job's end. Where the job
/// is refused, the buffers stay as they were, and nothing was touched. `CONTIGO_E_QUEUE_FULL`: as
/// many jobs are in flight as the device takes, or `CONTIGO_MAX_JOBS` with those that have ended.
/// Where the device itself refused the job, the device was stopped, which ends the jobs before it.
/// `CONTIGO_E_WILL_NOT_STOP`: it could not be stopped then, and `job` is a job under way.
///
/// # Safety
/// `operands` points to `n` structures, `args` to `args_words` words, or is NULL where that is 0;
/// nothing writes to them before the call returns. `job` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_job_start(
    engine: contigo_engine,
    operands: *const contigo_operand,
    n: usize,
    args: *const u32,
    args_words: usize,
    flags: u32,
    job: *mut contigo_job,
) -> contigo_status {
    let mut started = 0;
    let status = call(|| {
        if job.is_null() || (operands.is_null() && n > 0) || (args.is_null() && args_words > 0) {
            return Err(Fault::null("job, operands or args"));
        }
        if n > MAX_OPERANDS {
            return Err(Fault::value("n", n as u64));
        }
        if args_words > CONTIGO_MAX_ARGS as usize {
            return Err(Fault::value("args_words", args_words as u64));
        }
        if !operands.is_aligned() {
            return Err(Fault::value("the address of operands", operands.addr() as u64));
        }
        if !args.is_aligned() {
            return Err(Fault::value("the address of args", args.addr() as u64));
        }
        if flags & !CONTIGO_JOB_MORE != 0 {
            return Err(Fault::value("flags", u64::from(flags)));
        }
        let (mut given, mut words) = ([].as_slice(), [].as_slice());
        // SAFETY: where there are some, not null, aligned, and so many are there: the caller's
        // promise.
        unsafe {
            if n > 0 {
                given = slice::from_raw_parts(operands, n);
            }
            if args_words > 0 {
                words = slice::from_raw_parts(args, args_words);
            }
        }
        engine::start(engine, given, words, flags & CONTIGO_JOB_MORE != 0, &mut started)
    });
    if !job.is_null() {
        // SAFETY: not null, and the caller's promise.
        unsafe { job.write_unaligned(started) };
    }
    status
}

/// Waits for the end of the job, at most `timeout_us` microseconds, and takes it. The CPU owns the
/// buffers then, and sees the bytes that the device wrote. The handle is stale. Ends of other jobs
/// that come meanwhile are kept until a call takes them. `completion` is filled where the device
/// told of the end; it may be NULL.
///
/// `timeout_us` is an hour at most, here and wherever there is one: more is `CONTIGO_E_ARGUMENT`,
/// and the job goes on.
///
/// `CONTIGO_E_TIMEOUT`, `CONTIGO_E_FAULT`, `CONTIGO_E_SHORT_TRANSFER`, `CONTIGO_E_CANCELLED`: the
/// buffers are back all the same. A buffer whose caches could not be maintained still belongs to a
/// device, and `contigo_buf_take_back` tries again.
///
/// After a timeout, and after a fault that is not of this job alone, the device was stopped, which
/// ended every job of the engine. A job that ended well meanwhile is done: a kernel of HLS cannot
/// be aborted. `CONTIGO_E_WILL_NOT_STOP`: it could not be stopped, and the job keeps its buffers:
/// reset the device, then `contigo_queue_stop`. While this call waits, another thread's call with
/// the same engine is refused (`CONTIGO_E_IN_CALL`).
///
/// # Safety
/// `completion` is NULL, or points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_job_wait(
    job: contigo_job,
    timeout_us: u32,
    completion: *mut contigo_completion,
) -> contigo_status {
    let how = Wait { timeout_us, stop: true, to_cpu: true };
    // SAFETY: the caller's promise.
    call(|| unsafe { end(job, how, completion, &mut Outcome::default()) })
}

/// As `contigo_job_wait`, and the buffers stay a device's: the output can be an operand of the next
/// job with no cache maintenance between.
///
/// # Safety
/// As `contigo_job_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_job_wait_device(
    job: contigo_job,
    timeout_us: u32,
    completion: *mut contigo_completion,
) -> contigo_status {
    let how = Wait { timeout_us, stop: true, to_cpu: false };
    // SAFETY: the caller's promise.
    call(|| unsafe { end(job, how, completion, &mut Outcome::default()) })
}

/// As `contigo_job_wait`, and nothing is stopped where the time is over: `done` is 0, and the job
/// goes on. With a time of 0 it looks once, with no wait and no system call. On an error the job
/// has ended too where `done` is 1.
///
/// # Safety
/// As `contigo_job_wait`; `done` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_job_wait_for(
    job: contigo_job,
    timeout_us: u32,
    done: *mut u32,
    completion: *mut contigo_completion,
) -> contigo_status {
    let how = Wait { timeout_us, stop: false, to_cpu: true };
    let mut ended = 0;
    let status = call(|| {
        if done.is_null() {
            return Err(Fault::null("done"));
        }
        let mut outcome = Outcome::default();
        // SAFETY: the caller's promise.
        let result = unsafe { end(job, how, completion, &mut outcome) };
        ended = outcome.ended.into();
        result
    });
    if !done.is_null() {
        // SAFETY: not null, and the caller's promise.
        unsafe { done.write_unaligned(ended) };
    }
    status
}

/// Takes the end of the job that ended first on this engine; waits at most `timeout_us` for one.
/// `job` is its handle, as `contigo_job_start` answered it, and stale now; 0: none has ended, and
/// nothing was stopped. The CPU owns the buffers. An error with a `job` belongs to that job; the
/// statuses are those of `contigo_job_wait`.
///
/// # Safety
/// `job` is writable; `completion` is NULL, or points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_queue_next(
    engine: contigo_engine,
    timeout_us: u32,
    job: *mut contigo_job,
    completion: *mut contigo_completion,
) -> contigo_status {
    let mut ended = 0;
    let status = call(|| {
        if job.is_null() {
            return Err(Fault::null("job"));
        }
        // SAFETY: the caller's promise.
        unsafe { raw::room(completion)? };
        let mut outcome = Outcome::default();
        let result = engine::next(engine, timeout_us, &mut ended, &mut outcome);
        // SAFETY: the caller's promise.
        unsafe { fill(&outcome, completion, result) }
    });
    if !job.is_null() {
        // SAFETY: not null, and the caller's promise.
        unsafe { job.write_unaligned(ended) };
    }
    status
}

/// Stops the device at any moment of its work, which ends every job of the engine. Those that had
/// not ended are `CONTIGO_E_CANCELLED`. Each end is still to be taken, and the engine takes new
/// jobs. After `CONTIGO_E_WILL_NOT_STOP` reset the device from outside, and call this again.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_queue_stop(engine: contigo_engine) -> contigo_status {
    call(|| ENGINES.with(engine, Engine::stop))
}

/// # Safety
/// As `contigo_job_wait`.
#[inline]
unsafe fn end(
    job: contigo_job,
    how: Wait,
    completion: *mut contigo_completion,
    outcome: &mut Outcome,
) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    unsafe {
        raw::room(completion)?;
        let result = engine::end(job, how, outcome);
        fill(outcome, completion, result)
    }
}

/// `result`, or why the completion cannot be filled. A refusal is large, and is moved only where it
/// is one.
///
/// # Safety
/// As `contigo_job_wait`.
#[inline]
unsafe fn fill(
    outcome: &Outcome,
    to: *mut contigo_completion,
    result: Result<(), Fault>,
) -> Result<(), Fault> {
    let filled = match outcome.said {
        // SAFETY: the caller's promise.
        Some(said) if !to.is_null() => unsafe { raw::fill(to, &said.into()) },
        _ => Ok(()),
    };
    match (filled, result) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(fault), _) | (_, Err(fault)) => Err(fault),
    }
}

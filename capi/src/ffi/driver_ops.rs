#![allow(unsafe_code, reason = "functions that C calls, and functions in C that are called")]
//! Drivers that are written in C.

use super::{
    buf::{contigo_use, direction, use_of},
    engine::contigo_engine,
    job::contigo_completion,
    port::{contigo_port, flag},
    raw::{self, Versioned},
};
use crate::{
    engine::{DriverOps, Engine, Functions, MAX_OPERANDS},
    fault::{Fault, Misuse},
    object::port::get,
    status::contigo_status,
};
use contigo::{Align, OperandSpec, job::AnyDriver};
use contigo_objects::keep;
use core::{
    ffi::{c_char, c_void},
    mem,
};
use heapless::Vec;

/// One operand of a driver's jobs, as the driver describes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_operand_spec {
    /// Does the device read it (`CONTIGO_READS`), write it (`CONTIGO_WRITES`), or both?
    pub r#use: contigo_use,
    /// Always 0.
    pub reserved: u32,
    /// Its bus address is a multiple of so many bytes, a power of two; 0: any address.
    pub align_bytes: usize,
    /// The fewest bytes; 0: 1.
    pub min_bytes: usize,
    /// The most that one job takes; 0: any.
    pub max_bytes: usize,
}

impl From<&OperandSpec> for contigo_operand_spec {
    fn from(spec: &OperandSpec) -> Self {
        Self {
            r#use: use_of(spec.direction),
            reserved: 0,
            align_bytes: spec.align_bytes,
            min_bytes: spec.min_bytes,
            max_bytes: if spec.max_bytes == usize::MAX { 0 } else { spec.max_bytes },
        }
    }
}

/// Where the device finds an operand's bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_dev_slice {
    /// The bus address.
    pub addr: u64,
    /// How many bytes.
    pub len_bytes: usize,
}

/// A driver in C: what its jobs look like, and four functions, each of which gets `context` first.
/// The library checks, cleans caches, keeps the buffers, and stops the device; the functions write
/// and read registers (`contigo_registers_...`, or the program's own).
///
/// Each answers 0, or another number, which the text of the refusal then has. The library calls
/// them one at a time, from the thread that calls the engine. They must not unwind or jump out.
/// **A function that calls its own engine is refused with `CONTIGO_E_IN_CALL`. One that never
/// returns cannot be interrupted**: it holds the thread and the engine for ever.
///
/// The library does not know the device. On a simulated board a job fails with
/// `CONTIGO_E_WRONG_ACCESS` for what any device of the board touched meanwhile.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_driver_ops {
    /// `sizeof(contigo_driver_ops)`.
    pub struct_size: usize,
    /// The core's name, for messages. It is copied.
    pub name: *const c_char,
    /// How many jobs the device takes at once; 0: 1. Slots are 0 to one less.
    pub depth: u32,
    /// 1: jobs may end in another order than they were started in.
    pub out_of_order: u32,
    /// How many bits the narrowest register that holds a bus address has; 0: 64.
    pub addr_bits: u32,
    /// How many operands a job has: 1 to 16.
    pub n_operands: u32,
    /// The operands, in their order. They are copied.
    pub operands: *const contigo_operand_spec,
    /// Answers 0 where the hardware takes these operands and argument words. Starts nothing. NULL:
    /// the hardware takes all of them.
    pub check: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            operands: *const contigo_dev_slice,
            n: usize,
            args: *const u32,
            args_words: usize,
        ) -> contigo_status,
    >,
    /// Gives the device one job, which `check` has passed, in a free slot; a stopped device starts.
    /// On an error the library stops the device before it gives anything back.
    pub submit: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            slot: u32,
            operands: *const contigo_dev_slice,
            n: usize,
            args: *const u32,
            args_words: usize,
        ) -> contigo_status,
    >,
    /// Looks for a job that has ended: once at least, and for at most `timeout_us`. Where there is
    /// one, it sets `ended` to 1, fills `done`, and says in `done.slot` which job it is. It tells
    /// each end once. An error means that the channel cannot go on; the library then stops it.
    pub poll: Option<
        unsafe extern "C" fn(context: *mut c_void, timeout_us: u32, done: *mut contigo_completion, ended: *mut u32) -> contigo_status,
    >,
    /// Stops the device in bounded time, at any moment of its work. After a 0 the device touches no
    /// memory of any job until the next `submit`, which names slot 0. After any other answer the
    /// device keeps the buffers.
    pub stop: Option<unsafe extern "C" fn(context: *mut c_void) -> contigo_status>,
}

// SAFETY: integers and pointers, which zeroes are too, `struct_size` first.
unsafe impl Versioned for contigo_driver_ops {
    const NAME: &'static str = "contigo_driver_ops";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Opens an engine over a driver in C, which stops the device first. Close it with
/// `contigo_engine_close`; the functions and `context` stay until then.
///
/// # Safety
/// `ops` points to an initialised structure, with `n_operands` structures at `operands`; `engine`
/// is writable.
///
/// The library cannot check the rest. The device touches the bytes of jobs in flight, memory of its
/// own, and nothing else, and it writes only operands that say so. It reaches memory through `port`
/// and no other way, and nobody else drives it. Once `poll` has told of a job's end, the device
/// touches none of that job's bytes. Where `done` has `bytes`, the device wrote none behind them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_open_driver(
    ops: *const contigo_driver_ops,
    context: *mut c_void,
    port: contigo_port,
    engine: *mut contigo_engine,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(engine, "engine", || {
            let ops = raw::read(ops)?;
            let (Some(submit), Some(poll), Some(stop)) = (ops.submit, ops.poll, ops.stop) else {
                return Err(Fault::from(Misuse::Null { what: "contigo_driver_ops.submit, poll or stop" }));
            };
            if ops.operands.is_null() {
                return Err(Misuse::Null { what: "contigo_driver_ops.operands" }.into());
            }
            let count = ops.n_operands as usize;
            if !(1..=MAX_OPERANDS).contains(&count) {
                return Err(Misuse::Value { what: "contigo_driver_ops.n_operands", value: count as u64 }.into());
            }
            let mut operands = Vec::new();
            for at in 0..count {
                let _ = operands.push(spec(&ops.operands.add(at).read_unaligned())?);
            }
            Engine::of_driver(AnyDriver::new(DriverOps {
                name: keep(raw::text(ops.name, "contigo_driver_ops.name")?)?,
                port: get(port)?,
                addr_bits: if ops.addr_bits == 0 { 64 } else { ops.addr_bits },
                depth: ops.depth.max(1) as usize,
                in_order: !flag(ops.out_of_order, "contigo_driver_ops.out_of_order")?,
                operands,
                functions: Functions { check: ops.check, submit, poll, stop },
                context,
            })?)
        })
    }
}

pub(super) fn spec(given: &contigo_operand_spec) -> Result<OperandSpec, Fault> {
    Ok(OperandSpec {
        direction: direction(given.r#use)?,
        align_bytes: Align::new(given.align_bytes.max(1))?.bytes(),
        min_bytes: given.min_bytes.max(1),
        max_bytes: if given.max_bytes == 0 { usize::MAX } else { given.max_bytes },
        word_bytes: 1,
    })
}

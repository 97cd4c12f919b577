#![allow(unsafe_code, reason = "functions that C calls")]
//! Engines: a device's driver by its name, or one that is written in C.

use super::raw::{self, Versioned, flag};
use crate::engine::{ENGINES, Engine, EngineOptions, contigo_engine_options};
use crate::fault::Fault;
use crate::handles::{contigo_engine, contigo_port};
use crate::last_error::call;
use crate::object::port_of;
use crate::status::contigo_status;
use contigo::Driver;
use contigo::job::{AnyDriver, Descriptors};
use contigo::names::Attach;
use contigo_objects::driver::{DriverOps, contigo_driver_ops, contigo_operand_spec};
use contigo_objects::keep;
use core::ffi::{c_int, c_void};
use core::mem;

/// The form of an engine's jobs, and counts of how they went.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_engine_info {
    /// `sizeof(contigo_engine_info)`.
    pub struct_size: usize,
    /// How many operands a job has.
    pub operands: u32,
    /// How many jobs can be in flight.
    pub depth: u32,
    /// How many jobs are in flight.
    pub in_flight: u32,
    /// How many jobs have ended whose end no call has taken yet.
    pub ended: u32,
    /// 1: jobs end in the order in which they were started.
    pub in_order: u32,
    /// 1: the device would not stop. Reset it, then `contigo_queue_stop`.
    pub stopped: u32,
    /// Jobs that the device was given.
    pub started: u64,
    /// Jobs that ended well.
    pub completed: u64,
    /// Jobs that failed alone, while the others went on.
    pub failed: u64,
    /// Jobs that had not ended when the device was stopped.
    pub cancelled: u64,
    /// How often the device was stopped.
    pub stops: u64,
    /// How often the device was left without a job: for a stream, loss.
    pub underruns: u64,
    /// The driver's own memory, for its descriptors: `CONTIGO_DESCRIPTORS_*`.
    pub descriptors: u32,
    /// 0.
    pub reserved: u32,
}

/// The driver has no memory of its own.
pub const CONTIGO_DESCRIPTORS_NONE: u32 = 0;
/// The port snoops.
pub const CONTIGO_DESCRIPTORS_SNOOPED: u32 = 1;
/// The port does not snoop, and the CPU does not cache the memory: it needs no call.
pub const CONTIGO_DESCRIPTORS_COHERENT: u32 = 2;
/// The port does not snoop: each write and read of a descriptor is a sync.
pub const CONTIGO_DESCRIPTORS_SYNCED: u32 = 3;

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_engine_info {
    const NAME: &'static str = "contigo_engine_info";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Opens an engine. The call checks that the device is one for this driver, as far as its registers
/// tell. It stops the device, because a program that crashed may have left it running. Close the
/// engine with `contigo_engine_close`. `CONTIGO_E_NOT_FOUND`: there is no such driver; the text
/// lists the names that are most like it.
///
/// With the setting `channel`, engines share a device whose channels can have a driver each (a
/// `pl330`). There is one engine a channel, in any thread, and all use one port and one window.
/// Each is stopped and closed by itself. `CONTIGO_E_HAS_DRIVER`: an engine has the channel, or the
/// whole device.
///
/// With a gate, `contigo_queue_stop` stops the core whatever it does: also a kernel of HLS, which
/// cannot be aborted. An error of the bus ends the jobs, and its text has the address.
/// `CONTIGO_E_WRONG_DEVICE`: no gate is at `gate_offset`.
///
/// # Safety
/// `options` points to an initialised structure whose texts are NULL or NUL-terminated; `engine` is
/// writable.
///
/// Of a real device the library cannot check the rest. The driver is for this device, as the
/// settings and the map describe it. Only engines of this program drive the device.
/// The device reaches memory through `port` and no other way. With another driver or port it
/// writes into other memory. Where there is a gate, all that the core does to memory passes it, and
/// its `core_aresetn` resets the core.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_open(
    options: *const contigo_engine_options,
    engine: *mut contigo_engine,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(engine, "engine", || {
            let given = raw::read(options)?;
            let contigo_engine_options { settings, map, .. } = given;
            Engine::open(&EngineOptions {
                driver: raw::text_within(
                    given.driver,
                    "contigo_engine_options.driver",
                    PATH_BYTES,
                )?,
                settings: match settings.is_null() {
                    true => "",
                    false => raw::text(settings, "contigo_engine_options.settings")?,
                },
                map: match map.is_null() {
                    true => None,
                    false => Some(raw::bytes(map, given.map_bytes, "contigo_engine_options.map")?),
                },
                attach: Attach {
                    window: raw::window(given.window, "contigo_engine_options.window")?,
                    interrupt: !flag(given.polled, "contigo_engine_options.polled")?,
                },
                gate_window: raw::window(given.gate_window, "contigo_engine_options.gate_window")?,
                given,
            })
        })
    }
}

/// The longest path, as Linux has it (`PATH_MAX`, with its NUL).
const PATH_BYTES: usize = 4095;

/// Opens an engine over a driver in C, which stops the device first. Close it with
/// `contigo_engine_close`; the functions and `context` stay until then.
///
/// # Safety
/// `ops` points to an initialised structure, with `n_operands` structures at `operands`; `engine`
/// is writable.
///
/// The library cannot check the rest. The device touches the bytes of jobs in flight, memory of its
/// own, and nothing else, and it writes only operands that say so. It reaches memory through `port`
/// and no other way, and no other code drives it. Once `poll` has told of a job's end, the device
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
            let name = keep(raw::text(ops.name, "contigo_driver_ops.name")?)?;
            Engine::of_driver(AnyDriver::new(DriverOps::new(&ops, context, name, port_of(port)?)?)?)
        })
    }
}

const fn descriptors_of(descriptors: Option<Descriptors>) -> u32 {
    match descriptors {
        None => CONTIGO_DESCRIPTORS_NONE,
        Some(Descriptors::Snooped) => CONTIGO_DESCRIPTORS_SNOOPED,
        Some(Descriptors::Coherent) => CONTIGO_DESCRIPTORS_COHERENT,
        Some(_) => CONTIGO_DESCRIPTORS_SYNCED,
    }
}

/// Fills `info` with the form of the engine's jobs, and with counts of how they went.
///
/// # Safety
/// `info` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_get_info(
    engine: contigo_engine,
    info: *mut contigo_engine_info,
) -> contigo_status {
    #[allow(clippy::cast_possible_truncation, reason = "at most CONTIGO_MAX_JOBS")]
    call(|| {
        ENGINES.with(engine, |engine| {
            let (counts, depth, in_flight, ended, stopped) = engine.counts();
            let driver = engine.driver();
            let value = contigo_engine_info {
                struct_size: 0,
                operands: driver.operands().len() as u32,
                depth: depth as u32,
                in_flight: in_flight as u32,
                ended: ended as u32,
                in_order: driver.in_order().into(),
                stopped: stopped.into(),
                started: counts.pushed,
                completed: counts.completed,
                failed: counts.failed,
                cancelled: counts.cancelled,
                stops: counts.stopped,
                underruns: counts.underruns,
                descriptors: descriptors_of(driver.descriptors()),
                reserved: 0,
            };
            // SAFETY: the caller's promise.
            unsafe { raw::fill(info, &value) }
        })
    })
}

/// Fills `spec` with the driver's description of operand number `index` of its jobs.
/// `CONTIGO_E_VALUE`: there are fewer.
///
/// # Safety
/// `spec` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_get_operand(
    engine: contigo_engine,
    index: u32,
    spec: *mut contigo_operand_spec,
) -> contigo_status {
    let find = || {
        ENGINES.with(engine, |engine| {
            let spec =
                engine.driver().operands().get(index as usize).map(contigo_operand_spec::from);
            spec.ok_or_else(|| Fault::value("the number of an operand", index))
        })
    };
    // SAFETY: the caller's promise.
    unsafe { raw::answer(spec, "spec", find) }
}

/// Forgets an interrupt that came before, lets the next one come, and answers the descriptor that
/// poll(2) finds readable then. The descriptor belongs to the engine and is open until the engine
/// is closed: the program neither reads, writes nor closes it. -1 where the call is refused.
///
/// In an event loop, in this order: this function; then `contigo_queue_next` or
/// `contigo_job_wait_for` with a time of 0; and only where nothing has ended, poll(2), with a
/// limit.
///
/// `CONTIGO_E_KIND`: the device has no interrupt that is a file; look again and again.
/// `CONTIGO_E_UNSUPPORTED`: the device's node has none; open the engine with `polled`.
///
/// # Safety
/// `fd` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_irq_arm(
    engine: contigo_engine,
    fd: *mut c_int,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::answer_or(-1, fd, "fd", || ENGINES.with(engine, |engine| engine.arm_irq())) }
}

/// Leaves a stop of the device with the kernel. The kernel runs it when this program ends, in any
/// way, before the memory goes. Do it before the first job. `CONTIGO_E_KIND`: the engine's device
/// is no `contigo:…`. `CONTIGO_E_UNSUPPORTED`: the engine shares its device (setting `channel`),
/// which one channel's program does not stop.
///
/// # Safety
/// The device's window number `window` is the registers that the engine drives. The library cannot
/// check that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_engine_arm(engine: contigo_engine, window: u32) -> contigo_status {
    // SAFETY: the caller's promise.
    call(|| ENGINES.with(engine, |engine| unsafe { engine.arm(window) }))
}

/// Closes an engine. `CONTIGO_E_HAS_JOB` while it has jobs whose end no call has taken;
/// `CONTIGO_E_WILL_NOT_STOP` where its device does not stop: the engine stays open then.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_engine_close(engine: contigo_engine) -> contigo_status {
    call(|| Engine::close(engine))
}

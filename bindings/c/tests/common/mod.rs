//! The functions that C calls, each with its answer as Rust has it; and a simulated board with
//! everything on it.
#![allow(dead_code, reason = "each test uses a part of it")]

mod board;

pub(crate) use board::Board;
use contigo::dlpack::abi::DlManagedTensorVersioned;
use contigo_c::*;
use core::ffi::{CStr, c_void};
use core::{mem, ptr};
use std::thread;

pub(crate) const SLOT: usize = 4096;

/// Skips the test that runs, whose thread the harness names after it.
pub(crate) fn skip(why: &str) {
    contigo_testkit::skipped(thread::current().name().unwrap_or("a test"), why);
}

/// The text of this thread's last refusal.
pub(crate) fn last_error() -> String {
    let mut text = [0_u8; 1024];
    // SAFETY: so many bytes are there.
    let len = unsafe { contigo_last_error(text.as_mut_ptr().cast(), text.len()) };
    String::from_utf8(text[..len.min(1023)].to_vec()).unwrap()
}

#[track_caller]
pub(crate) fn ok(status: contigo_status) {
    assert_eq!(status, CONTIGO_OK, "{}", last_error());
}

/// The call was refused with that code, and with a text that has `word`.
#[track_caller]
pub(crate) fn refused(status: contigo_status, code: contigo_status, word: &str) {
    let text = last_error();
    assert_eq!(status, code, "{text}");
    assert!(text.contains(word), "{text}");
}

/// A structure of this library's version, with nothing set.
pub(crate) fn empty<T: Copy>() -> T {
    // SAFETY: of each structure of the header the first field is its size, and zeroes are a value.
    unsafe {
        let mut value: T = mem::zeroed();
        (&raw mut value).cast::<usize>().write(size_of::<T>());
        value
    }
}

/// The value that a call answers by its last argument.
#[track_caller]
pub(crate) fn answer<T: Default>(call: impl FnOnce(*mut T) -> contigo_status) -> T {
    let mut value = T::default();
    ok(call(&raw mut value));
    value
}

pub(crate) fn sim_options() -> contigo_sim_options {
    contigo_sim_options { seed: 3, ..empty() }
}

pub(crate) fn region_options(sim: contigo_sim) -> contigo_region_options {
    contigo_region_options { len_bytes: 1 << 20, sim, ..empty() }
}

/// Memory of that name.
#[track_caller]
pub(crate) fn open_region(name: &CStr, options: &contigo_region_options) -> contigo_region {
    answer(|region| unsafe { contigo_region_open_with(name.as_ptr(), options, region) })
}

/// The same, where it is refused.
pub(crate) fn try_region(name: &CStr, options: &contigo_region_options) -> contigo_status {
    let mut region = 1;
    let status = unsafe { contigo_region_open_with(name.as_ptr(), options, &mut region) };
    assert_eq!(status == CONTIGO_OK, region != 1, "it stays where it is refused");
    status
}

pub(crate) fn engine_options(
    driver: &CStr,
    device: contigo_device,
    port: contigo_port,
    region: contigo_region,
) -> contigo_engine_options {
    contigo_engine_options { driver: driver.as_ptr(), device, port, region, ..empty() }
}

#[track_caller]
pub(crate) fn open_engine(options: &contigo_engine_options) -> contigo_engine {
    answer(|engine| unsafe { contigo_engine_open(options, engine) })
}

/// The same, where it is refused.
pub(crate) fn try_engine(options: &contigo_engine_options) -> contigo_status {
    unsafe { contigo_engine_open(options, &mut 0) }
}

/// An engine over a driver in C, of which `context` is the argument.
pub(crate) fn try_driver<T>(
    ops: &contigo_driver_ops,
    context: *mut T,
    port: contigo_port,
) -> (contigo_status, contigo_engine) {
    let mut engine = 0;
    (unsafe { contigo_engine_open_driver(ops, context.cast(), port, &mut engine) }, engine)
}

#[track_caller]
pub(crate) fn open_driver<T>(
    ops: &contigo_driver_ops,
    context: *mut T,
    port: contigo_port,
) -> contigo_engine {
    let (status, engine) = try_driver(ops, context, port);
    ok(status);
    engine
}

#[track_caller]
pub(crate) fn sim_device(sim: contigo_sim, driver: &CStr) -> contigo_device {
    answer(|device| unsafe { contigo_sim_device(sim, driver.as_ptr(), device) })
}

/// Waits, and does not ask what the device said.
pub(crate) fn wait(job: contigo_job, timeout_us: u32) -> contigo_status {
    unsafe { contigo_job_wait(job, timeout_us, ptr::null_mut()) }
}

pub(crate) fn wait_device(job: contigo_job, timeout_us: u32) -> contigo_status {
    unsafe { contigo_job_wait_device(job, timeout_us, ptr::null_mut()) }
}

/// Waits, and lets the job go on where the time is over: has it ended?
pub(crate) fn wait_for(job: contigo_job, timeout_us: u32) -> (contigo_status, u32) {
    let mut done = 7;
    (unsafe { contigo_job_wait_for(job, timeout_us, &mut done, ptr::null_mut()) }, done)
}

/// The next job that ended.
pub(crate) fn next(engine: contigo_engine, timeout_us: u32) -> (contigo_status, contigo_job) {
    let mut job = 7;
    (unsafe { contigo_queue_next(engine, timeout_us, &mut job, ptr::null_mut()) }, job)
}

pub(crate) fn info_of(engine: contigo_engine) -> contigo_engine_info {
    let mut info = empty::<contigo_engine_info>();
    ok(unsafe { contigo_engine_get_info(engine, &mut info) });
    info
}

/// Starts a job of these operands and argument words.
pub(crate) fn try_job(
    engine: contigo_engine,
    operands: &[contigo_operand],
    args: &[u32],
) -> (contigo_status, contigo_job) {
    let (n, words, mut job) = (operands.len(), args.len(), 1);
    let status = unsafe {
        contigo_job_start(engine, operands.as_ptr(), n, args.as_ptr(), words, 0, &mut job)
    };
    (status, job)
}

#[track_caller]
pub(crate) fn start_job(
    engine: contigo_engine,
    operands: &[contigo_operand],
    args: &[u32],
) -> contigo_job {
    let (status, job) = try_job(engine, operands, args);
    ok(status);
    job
}

#[track_caller]
pub(crate) fn carve(region: contigo_region, len_bytes: usize, align_bytes: usize) -> contigo_buf {
    answer(|buf| unsafe { contigo_carve(region, len_bytes, align_bytes, buf) })
}

#[track_caller]
pub(crate) fn open_pool(
    region: contigo_region,
    slot_bytes: usize,
    slots: usize,
    align_bytes: usize,
) -> contigo_pool {
    answer(|pool| unsafe { contigo_pool_open(region, slot_bytes, slots, align_bytes, pool) })
}

#[track_caller]
pub(crate) fn take(pool: contigo_pool) -> contigo_buf {
    answer(|buf| unsafe { contigo_pool_take(pool, buf) })
}

#[track_caller]
pub(crate) fn free_slots(pool: contigo_pool) -> usize {
    answer(|free| unsafe { contigo_pool_free_slots(pool, free) })
}

#[track_caller]
pub(crate) fn find_port(name: &CStr) -> contigo_port {
    let (status, port) = try_port(name);
    ok(status);
    port
}

/// The same, where it may be refused: 1 is no port.
pub(crate) fn try_port(name: &CStr) -> (contigo_status, contigo_port) {
    let mut port = 1;
    (unsafe { contigo_port_find(name.as_ptr(), &mut port) }, port)
}

#[track_caller]
pub(crate) fn sim_port(sim: contigo_sim, coherent: u32) -> contigo_port {
    answer(|port| unsafe { contigo_sim_port(sim, coherent, port) })
}

#[track_caller]
pub(crate) fn open_device(name: &CStr) -> contigo_device {
    answer(|device| unsafe { contigo_device_open(name.as_ptr(), device) })
}

/// Memory of a simulated device's board.
#[track_caller]
pub(crate) fn sim_memory(device: contigo_device) -> contigo_region {
    answer(|region| unsafe { contigo_device_memory(device, c"sim".as_ptr(), 1 << 20, region) })
}

#[track_caller]
pub(crate) fn attach(
    device: contigo_device,
    port: contigo_port,
    window: u32,
    polled: u32,
) -> contigo_registers {
    answer(|registers| unsafe { contigo_device_attach(device, port, window, polled, registers) })
}

/// A port of the program's own, of 32 bits.
pub(crate) fn port_options(name: &CStr, sim: contigo_sim) -> contigo_port_options {
    contigo_port_options {
        name: name.as_ptr(),
        window_last: 0xFFFF_FFFF,
        addr_bits: 32,
        sim,
        ..empty()
    }
}

pub(crate) const fn part(buf: contigo_buf, len_bytes: usize) -> contigo_operand {
    contigo_operand { buf, offset_bytes: 0, len_bytes }
}

/// A driver in C that does nothing, well.
pub(crate) fn own_driver(operand: &contigo_operand_spec) -> contigo_driver_ops {
    unsafe extern "C" fn submit(
        _: *mut c_void,
        _: u32,
        _: *const contigo_dev_slice,
        _: usize,
        _: *const u32,
        _: usize,
    ) -> contigo_status {
        CONTIGO_OK
    }
    unsafe extern "C" fn poll(
        _: *mut c_void,
        _: u32,
        _: *mut contigo_completion,
        ended: *mut u32,
    ) -> contigo_status {
        unsafe { *ended = 1 };
        CONTIGO_OK
    }
    unsafe extern "C" fn stop(_: *mut c_void) -> contigo_status {
        CONTIGO_OK
    }
    contigo_driver_ops {
        name: c"nothing".as_ptr(),
        n_operands: 1,
        operands: operand,
        submit: Some(submit),
        poll: Some(poll),
        stop: Some(stop),
        ..empty()
    }
}

pub(crate) fn try_map(buf: contigo_buf, access: u32) -> (contigo_status, *mut c_void, usize) {
    let (mut ptr, mut len) = (ptr::dangling_mut(), 0);
    (unsafe { contigo_buf_map(buf, access, &mut ptr, &mut len) }, ptr, len)
}

#[track_caller]
pub(crate) fn fill(buf: contigo_buf, value: u8) {
    let (status, ptr, len) = try_map(buf, CONTIGO_WRITE);
    ok(status);
    // SAFETY: the library says that so many bytes are there, and this thread's.
    unsafe { ptr.cast::<u8>().write_bytes(value, len) };
    ok(contigo_buf_unmap(buf));
}

#[track_caller]
pub(crate) fn bytes(buf: contigo_buf) -> Vec<u8> {
    let (status, ptr, len) = try_map(buf, CONTIGO_READ);
    ok(status);
    // SAFETY: as in `fill`.
    let bytes = unsafe { core::slice::from_raw_parts(ptr.cast::<u8>(), len) }.to_vec();
    ok(contigo_buf_unmap(buf));
    bytes
}

pub(crate) fn give(
    buf: contigo_buf,
    port: contigo_port,
    offset: usize,
    len: usize,
    uses: contigo_use,
) -> (contigo_status, u64) {
    let mut addr = u64::MAX;
    (unsafe { contigo_buf_give(buf, port, offset, len, uses, &mut addr) }, addr)
}

/// Where the device finds it, and how much.
pub(crate) fn dev_addr(buf: contigo_buf) -> (u64, usize) {
    let info = info(buf);
    assert_eq!(info.device_owned, 1);
    (info.addr, info.len_bytes)
}

pub(crate) fn release(bufs: impl IntoIterator<Item = contigo_buf>) {
    bufs.into_iter().for_each(|buf| ok(contigo_buf_release(buf)));
}

pub(crate) fn split(buf: contigo_buf, at_bytes: usize) -> contigo_buf {
    answer(|rest| unsafe { contigo_buf_split(buf, at_bytes, rest) })
}

#[track_caller]
pub(crate) fn info(buf: contigo_buf) -> contigo_buf_info {
    let mut info = empty::<contigo_buf_info>();
    ok(unsafe { contigo_buf_get_info(buf, &mut info) });
    info
}

#[track_caller]
pub(crate) fn region_info(region: contigo_region) -> contigo_region_info {
    let mut info = empty::<contigo_region_info>();
    ok(unsafe { contigo_region_get_info(region, &mut info) });
    info
}

/// Stops the engine, and takes the job's end, which says that.
#[track_caller]
pub(crate) fn cancel(engine: contigo_engine, job: contigo_job) {
    ok(contigo_queue_stop(engine));
    assert_eq!(wait(job, 0), CONTIGO_E_CANCELLED);
}

pub(crate) fn release_all(operands: &[contigo_operand]) {
    release(operands.iter().map(|operand| operand.buf));
}

const FLOAT: u8 = 2;

/// Floats in this shape, aligned as TVM wants them.
pub(crate) fn options(shape: &[i64]) -> contigo_tensor_options {
    contigo_tensor_options {
        shape: shape.as_ptr(),
        ndim: u32::try_from(shape.len()).unwrap(),
        dtype_code: FLOAT,
        dtype_bits: 32,
        align_bytes: 64,
        ..empty()
    }
}

pub(crate) fn lend(
    buf: contigo_buf,
    options: &contigo_tensor_options,
) -> (contigo_status, *mut DlManagedTensorVersioned) {
    let mut tensor: *mut c_void = ptr::dangling_mut();
    (unsafe { contigo_buf_lend(buf, options, &mut tensor) }, tensor.cast())
}

/// Calls the deleter, as a consumer does when it is done.
pub(crate) fn delete(tensor: *mut DlManagedTensorVersioned) {
    unsafe { ((*tensor).deleter.unwrap())(tensor) }
}

/// `gemm8(a, b, bias, c, m, n, k, flags)`, a GPU's kernel whose operands only the program knows.
pub(crate) fn parameters() -> [contigo_parameter; 8] {
    let pointer = |uses| contigo_parameter {
        operand: contigo_operand_spec { r#use: uses, ..Default::default() },
        ..Default::default()
    };
    let (read, word) =
        (pointer(CONTIGO_READS), contigo_parameter { words: 1, ..Default::default() });
    [read, read, read, pointer(CONTIGO_WRITES), word, word, word, word]
}

/// Its operands: A of ones, B of twos, bias of zeroes, and C, from the slots of `pool`.
pub(crate) fn operands_of(pool: contigo_pool) -> [contigo_operand; 4] {
    [(1, 64), (2, 1024), (0, 64), (0x55, 64)].map(|(value, len_bytes)| {
        let buf = take(pool);
        fill(buf, value);
        part(buf, len_bytes)
    })
}

pub(crate) fn try_module(port: contigo_port, code: &[u8]) -> (contigo_status, contigo_module) {
    let mut module = 1;
    (unsafe { contigo_module_load(port, code.as_ptr(), code.len(), &mut module) }, module)
}

pub(crate) fn try_kernel(module: contigo_module, entry: &CStr) -> (contigo_status, contigo_engine) {
    let (parameters, mut engine) = (parameters(), 1);
    let status = unsafe {
        let (parameters, n) = (parameters.as_ptr(), parameters.len());
        contigo_engine_open_kernel(module, entry.as_ptr(), parameters, n, &mut engine)
    };
    (status, engine)
}

//! A simulated board with everything on it, through the functions that C calls.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; the C functions take pointers, which are references here, or NULL on purpose"
)]

use contigo::dlpack::abi::DlManagedTensorVersioned;
use contigo_c::*;
use core::{
    ffi::{CStr, c_void},
    mem, ptr,
};

pub(crate) const SLOT: usize = 4096;

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

/// The value that a call answers by its last argument.
#[track_caller]
pub(crate) fn answer<T: Default>(call: impl FnOnce(*mut T) -> contigo_status) -> T {
    let mut value = T::default();
    ok(call(&raw mut value));
    value
}

/// A simulated board with a region, a pool of eight slots, and a DMA channel that copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Board {
    pub(crate) sim: contigo_sim,
    pub(crate) port: contigo_port,
    pub(crate) region: contigo_region,
    pub(crate) pool: contigo_pool,
    pub(crate) device: contigo_device,
    pub(crate) engine: contigo_engine,
}

pub(crate) fn sim_options() -> contigo_sim_options {
    contigo_sim_options {
        struct_size: size_of::<contigo_sim_options>(),
        seed: 3,
        ..contigo_sim_options::default()
    }
}

pub(crate) fn region_options(sim: contigo_sim) -> contigo_region_options {
    contigo_region_options {
        struct_size: size_of::<contigo_region_options>(),
        len_bytes: 1 << 20,
        sim,
        ..contigo_region_options::default()
    }
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
    contigo_engine_options {
        struct_size: size_of::<contigo_engine_options>(),
        driver: driver.as_ptr(),
        device,
        port,
        window: 0,
        polled: 0,
        region,
        region_bytes: 0,
        settings: ptr::null(),
        map: ptr::null(),
        map_bytes: 0,
        gate: 0,
        gate_offset: 0,
        gate_window: 0,
    }
}

#[track_caller]
pub(crate) fn open_engine(options: &contigo_engine_options) -> contigo_engine {
    answer(|engine| unsafe { contigo_engine_open(options, engine) })
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
    let mut info =
        contigo_engine_info { struct_size: size_of::<contigo_engine_info>(), ..Default::default() };
    ok(unsafe { contigo_engine_get_info(engine, &mut info) });
    info
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
        struct_size: size_of::<contigo_driver_ops>(),
        name: c"nothing".as_ptr(),
        depth: 0,
        out_of_order: 0,
        addr_bits: 0,
        n_operands: 1,
        operands: operand,
        check: None,
        submit: Some(submit),
        poll: Some(poll),
        stop: Some(stop),
    }
}

impl Board {
    pub(crate) fn new() -> Self {
        Self::with(&sim_options())
    }

    pub(crate) fn with(options: &contigo_sim_options) -> Self {
        let sim = answer(|sim| unsafe { contigo_sim_open(options, sim) });
        let port = answer(|port| unsafe { contigo_sim_port(sim, 0, port) });
        let region = open_region(c"sim", &region_options(sim));
        let pool = answer(|pool| unsafe { contigo_pool_open(region, SLOT, 8, 256, pool) });
        let device = sim_device(sim, c"zdma");
        let engine = open_engine(&engine_options(c"zdma", device, port, 0));
        Self { sim, port, region, pool, device, engine }
    }

    #[track_caller]
    pub(crate) fn take(&self) -> contigo_buf {
        answer(|buf| unsafe { contigo_pool_take(self.pool, buf) })
    }

    /// The operands of a copy: 64 bytes of ones, and where they go.
    pub(crate) fn operands(&self) -> [contigo_operand; 2] {
        let bufs = [self.take(), self.take()];
        fill(bufs[0], 1);
        fill(bufs[1], 0x55);
        bufs.map(|buf| part(buf, 64))
    }

    pub(crate) fn try_start(
        &self,
        operands: &[contigo_operand; 2],
    ) -> (contigo_status, contigo_job) {
        let mut job = 1;
        (
            unsafe {
                contigo_job_start(self.engine, operands.as_ptr(), 2, ptr::null(), 0, &mut job)
            },
            job,
        )
    }

    #[track_caller]
    pub(crate) fn start(&self, operands: &[contigo_operand; 2]) -> contigo_job {
        let (status, job) = self.try_start(operands);
        ok(status);
        job
    }

    /// Closes everything: nothing of it is out.
    #[track_caller]
    pub(crate) fn close(self) {
        ok(contigo_engine_close(self.engine));
        ok(contigo_device_close(self.device));
        ok(contigo_pool_close(self.pool));
        ok(contigo_region_close(self.region));
        ok(contigo_port_close(self.port));
        ok(contigo_sim_close(self.sim));
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

pub(crate) fn split(buf: contigo_buf, at_bytes: usize) -> contigo_buf {
    answer(|rest| unsafe { contigo_buf_split(buf, at_bytes, rest) })
}

#[track_caller]
pub(crate) fn info(buf: contigo_buf) -> contigo_buf_info {
    let mut info =
        contigo_buf_info { struct_size: size_of::<contigo_buf_info>(), ..Default::default() };
    ok(unsafe { contigo_buf_get_info(buf, &mut info) });
    info
}

#[track_caller]
pub(crate) fn region_info(region: contigo_region) -> contigo_region_info {
    let mut info =
        contigo_region_info { struct_size: size_of::<contigo_region_info>(), ..Default::default() };
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
    operands.iter().for_each(|operand| ok(contigo_buf_release(operand.buf)));
}

pub(crate) const fn size_of<T>() -> usize {
    mem::size_of::<T>()
}

const FLOAT: u8 = 2;

/// Floats in this shape, aligned as TVM wants them.
pub(crate) fn options(shape: &[i64]) -> contigo_tensor_options {
    contigo_tensor_options {
        struct_size: size_of::<contigo_tensor_options>(),
        shape: shape.as_ptr(),
        ndim: u32::try_from(shape.len()).unwrap(),
        dtype_code: FLOAT,
        dtype_bits: 32,
        reserved: 0,
        read_only: 0,
        keep_byte_offset: 0,
        legacy: 0,
        align_bytes: 64,
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

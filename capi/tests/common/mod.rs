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
use core::{ffi::c_void, mem, ptr};

pub(crate) const SLOT: usize = 4096;
pub(crate) const GEMM: contigo_gemm8_args =
    contigo_gemm8_args { struct_size: size_of::<contigo_gemm8_args>(), m: 1, n: 16, k: 64, output: CONTIGO_GEMM8_INT32, relu: 0, shift: 0 };

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

/// What a call answers by its last argument.
#[track_caller]
pub(crate) fn answer<T: Default>(call: impl FnOnce(*mut T) -> contigo_status) -> T {
    let mut value = T::default();
    ok(call(&raw mut value));
    value
}

/// A simulated board with a heap, a pool of eight slots, and a gemm8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Board {
    pub(crate) sim: contigo_sim,
    pub(crate) port: contigo_port,
    pub(crate) heap: contigo_heap,
    pub(crate) pool: contigo_pool,
    pub(crate) engine: contigo_engine,
}

pub(crate) fn sim_options() -> contigo_sim_options {
    contigo_sim_options { struct_size: size_of::<contigo_sim_options>(), seed: 3, ..contigo_sim_options::default() }
}

pub(crate) fn heap_options(sim: contigo_sim) -> contigo_heap_options {
    contigo_heap_options {
        struct_size: size_of::<contigo_heap_options>(),
        kind: CONTIGO_HEAP_SIM,
        addr_bits: 0,
        len_bytes: 1 << 20,
        align_bytes: 0,
        name: ptr::null(),
        sim,
        kernel_port: 0,
        gpu: 0,
        write_combined: 0,
        device: 0,
    }
}

pub(crate) fn engine_options(kind: u32, sim: contigo_sim, port: contigo_port, heap: contigo_heap) -> contigo_engine_options {
    contigo_engine_options {
        struct_size: size_of::<contigo_engine_options>(),
        kind,
        polled: 0,
        port,
        sim,
        uio: ptr::null(),
        heap,
        device: 0,
    }
}

impl Board {
    pub(crate) fn new() -> Self {
        Self::with(&sim_options())
    }

    pub(crate) fn with(options: &contigo_sim_options) -> Self {
        let sim = answer(|sim| unsafe { contigo_sim_open(options, sim) });
        let port = answer(|port| unsafe { contigo_sim_port(sim, 0, port) });
        let heap = answer(|heap| unsafe { contigo_heap_open(&heap_options(sim), heap) });
        let pool = answer(|pool| unsafe { contigo_pool_open(heap, SLOT, 8, 256, pool) });
        let engine = answer(|engine| unsafe { contigo_engine_open(&engine_options(CONTIGO_ENGINE_GEMM8, sim, port, 0), engine) });
        Self { sim, port, heap, pool, engine }
    }

    #[track_caller]
    pub(crate) fn take(&self) -> contigo_buf {
        answer(|buf| unsafe { contigo_pool_take(self.pool, buf) })
    }

    /// The operands of `GEMM`: A of ones, B of twos, bias of zeroes.
    pub(crate) fn operands(&self) -> [contigo_operand; 4] {
        let bufs = [self.take(), self.take(), self.take(), self.take()];
        for (buf, value) in bufs.into_iter().zip([1, 2, 0, 0x55]) {
            fill(buf, value);
        }
        let part = |buf, len_bytes| contigo_operand { buf, offset_bytes: 0, len_bytes };
        let [a, b, bias, c] = bufs;
        [part(a, 64), part(b, 1024), part(bias, 64), part(c, 64)]
    }

    pub(crate) fn try_start(&self, operands: &[contigo_operand; 4]) -> (contigo_status, contigo_job) {
        let mut job = 1;
        (unsafe { contigo_gemm8_start(self.engine, &GEMM, operands.as_ptr(), &mut job) }, job)
    }

    #[track_caller]
    pub(crate) fn start(&self, operands: &[contigo_operand; 4]) -> contigo_job {
        let (status, job) = self.try_start(operands);
        ok(status);
        job
    }

    /// Closes everything: nothing of it is out.
    #[track_caller]
    pub(crate) fn close(self) {
        ok(contigo_engine_close(self.engine));
        ok(contigo_pool_close(self.pool));
        ok(contigo_heap_close(self.heap));
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

pub(crate) fn to_device(buf: contigo_buf, port: contigo_port, offset: usize, len: usize, direction: u32) -> (contigo_status, u64) {
    let mut addr = u64::MAX;
    (unsafe { contigo_buf_to_device(buf, port, offset, len, direction, &mut addr) }, addr)
}

/// Where the device finds it, and how much.
pub(crate) fn dev_addr(buf: contigo_buf) -> (u64, usize) {
    let (mut addr, mut len_bytes) = (u64::MAX, usize::MAX);
    ok(unsafe { contigo_buf_dev_addr(buf, &mut addr, &mut len_bytes) });
    (addr, len_bytes)
}

pub(crate) fn release_all(operands: &[contigo_operand; 4]) {
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

pub(crate) fn lend(buf: contigo_buf, options: &contigo_tensor_options) -> (contigo_status, *mut DlManagedTensorVersioned) {
    let mut tensor: *mut c_void = ptr::dangling_mut();
    (unsafe { contigo_buf_lend(buf, options, &mut tensor) }, tensor.cast())
}

/// What a consumer does when it is done.
pub(crate) fn delete(tensor: *mut DlManagedTensorVersioned) {
    unsafe { ((*tensor).deleter.unwrap())(tensor) }
}

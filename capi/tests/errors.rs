//! What the runtime refuses, through the C functions: each of its refusals has a code of its own and its numbers in the text.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; the C functions take pointers, which are references here, or NULL on purpose"
)]

mod common;

use common::*;
use contigo_c::*;
use core::ptr;
use std::collections::BTreeSet;

/// Codes that no simulated board and no ordinary kernel provokes: the runtime's own tests have fakes of the kernel for them, and
/// `status.rs` is the same table for all.
const BY_OTHERS: [&str; 27] = [
    "CONTIGO_E_IN_CALL",      // threads.rs, by a race
    "CONTIGO_E_TABLE_FULL",   // limits.rs
    "CONTIGO_E_INTERNAL",     // last_error.rs
    "CONTIGO_E_OTHER",        // none yet
    "CONTIGO_E_NOT_BUILT_IN", // no_cuda.rs
    "CONTIGO_E_VIEW",         // bytes are always viewed as bytes
    "CONTIGO_E_NOT_CONTIGUOUS",
    "CONTIGO_E_NO_ADDRESS",
    "CONTIGO_E_WHOLE_BLOCK",
    "CONTIGO_E_COHERENCY",
    "CONTIGO_E_CANNOT_SYNC",
    "CONTIGO_E_WRONG_DIRECTION", // the directions are the engine's
    "CONTIGO_E_REGISTER_WINDOW",
    "CONTIGO_E_DENIED",
    "CONTIGO_E_AMBIGUOUS",
    "CONTIGO_E_ATTRIBUTE_UNREADABLE",
    "CONTIGO_E_ATTRIBUTE_EMPTY",
    "CONTIGO_E_ATTRIBUTE_NONSENSE",
    "CONTIGO_E_PAGEMAP_HIDDEN",
    "CONTIGO_E_PIN_LIMIT",
    "CONTIGO_E_TOO_MANY", // CONTIGO_MAX_HEAPS is as many as a simulated board takes
    "CONTIGO_E_WRONG_DEVICE",
    "CONTIGO_E_OPERAND_TOO_LONG", // no job of C's is a queue's so far, and no driver here has a limit
    "CONTIGO_E_QUEUE_FULL",
    "CONTIGO_E_QUEUE_STOPPED",
    "CONTIGO_E_BAD_COMPLETION",
    "CONTIGO_E_ENDED_BY_RESET",
];
const RARE: [&str; 2] = ["CONTIGO_E_IN_USE", "CONTIGO_E_CONTENDED"];

/// A code that the header gets and nobody tests is found here.
#[test]
fn every_code_is_provoked_somewhere() {
    let header = include_str!("../include/contigo.h");
    let tests = [
        include_str!("errors.rs"),
        include_str!("fork.rs"),
        include_str!("misuse.rs"),
        include_str!("names.rs"),
        include_str!("structs.rs"),
        include_str!("split.rs"),
        include_str!("tensor.rs"),
        include_str!("cuda/errors.rs"),
    ];
    let known: BTreeSet<_> = BY_OTHERS.into_iter().chain(RARE).collect();
    let codes =
        header.lines().filter_map(|line| line.strip_prefix("#define ")?.split(' ').next()).filter(|name| name.starts_with("CONTIGO_E_"));
    for code in codes.clone() {
        let uses = tests.iter().map(|test| test.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|word| *word == code).count());
        assert_ne!(known.contains(code), uses.sum::<usize>() > usize::from(known.contains(code)), "{code}");
    }
    assert!(codes.count() > 50);
}

fn heap(options: &contigo_heap_options) -> contigo_status {
    unsafe { contigo_heap_open(options, &mut 0) }
}

#[test]
fn memory_that_is_not_as_asked_for() {
    let board = Board::new();
    let good = heap_options(board.sim);
    refused(heap(&contigo_heap_options { len_bytes: 0, ..good }), CONTIGO_E_BLOCK_SIZE, "0 bytes");
    refused(heap(&contigo_heap_options { align_bytes: 48, ..good }), CONTIGO_E_NOT_POWER_OF_TWO, "48");
    refused(heap(&contigo_heap_options { align_bytes: 1 << 30, ..good }), CONTIGO_E_MISALIGNED, "1073741824");
    refused(heap(&contigo_heap_options { addr_bits: 20, ..good }), CONTIGO_E_TOO_HIGH, "20 address bits");
    refused(heap(&contigo_heap_options { sim: 0, ..good }), CONTIGO_E_HANDLE, "simulated board");
    let named = |kind, name: &core::ffi::CStr| heap(&contigo_heap_options { kind, name: name.as_ptr(), ..good });
    for kind in [CONTIGO_HEAP_U_DMA_BUF, CONTIGO_HEAP_U_DMA_BUF_TRANSLATED, CONTIGO_HEAP_DMA_HEAP] {
        refused(named(kind, c"contigo-none"), CONTIGO_E_OS, "errno 2");
        refused(named(kind, c"../etc"), CONTIGO_E_BAD_NAME, "a name is of ASCII, without spaces and without /");
        refused(named(kind, c""), CONTIGO_E_BAD_NAME, "a part is missing");
    }
    let huge = contigo_heap_options { kind: CONTIGO_HEAP_HUGE_PAGES, len_bytes: usize::MAX, ..good };
    refused(heap(&huge), CONTIGO_E_ARGUMENT, "len_bytes");
    let kernel_port = contigo_heap_options { kind: CONTIGO_HEAP_DMA_HEAP, name: c"system".as_ptr(), kernel_port: board.port, ..good };
    refused(heap(&kernel_port), CONTIGO_E_KIND, "kernel port");
    board.close();
}

#[test]
fn memory_that_is_no_dma_buf() {
    let board = Board::new();
    for (heap, code, word) in
        [(board.heap, CONTIGO_E_UNSUITABLE, "dma-bufs"), (board.pool, CONTIGO_E_KIND, "pool"), (0, CONTIGO_E_HANDLE, "heap")]
    {
        let mut fd = 7;
        refused(unsafe { contigo_heap_export(heap, &mut fd) }, code, word);
        assert_eq!(fd, -1, "0 would be somebody's");
    }
    board.close();
}

#[test]
fn more_than_there_is() {
    let board = Board::new();
    let (free, mut info) = (1 << 20, contigo_heap_info { struct_size: size_of::<contigo_heap_info>(), ..Default::default() });
    ok(unsafe { contigo_heap_get_info(board.heap, &mut info) });
    assert_eq!((info.len_bytes, info.line_bytes, info.free_bytes), (free, 64, free - 8 * SLOT));
    refused(unsafe { contigo_carve(board.heap, free, 0, &mut 0) }, CONTIGO_E_EXHAUSTED, "1048576");
    refused(unsafe { contigo_carve(board.heap, usize::MAX, 0, &mut 0) }, CONTIGO_E_EXHAUSTED, "1048576");
    refused(unsafe { contigo_carve(board.heap, 0, 0, &mut 0) }, CONTIGO_E_ARGUMENT, "the length of a carve = 0");
    refused(unsafe { contigo_carve(board.heap, 64, 3, &mut 0) }, CONTIGO_E_NOT_POWER_OF_TWO, "3");
    let pool = |slot, slots| unsafe { contigo_pool_open(board.heap, slot, slots, 0, &mut 0) };
    refused(pool(100, 4), CONTIGO_E_SLOT_SIZE, "100");
    refused(pool(0, 4), CONTIGO_E_SLOT_SIZE, "0");
    refused(pool(64, 0), CONTIGO_E_ARGUMENT, "slots = 0");
    refused(pool(64, CONTIGO_MAX_POOL_SLOTS as usize + 1), CONTIGO_E_ARGUMENT, "slots = 1025");
    refused(pool(1 << 20, 4), CONTIGO_E_EXHAUSTED, "1048576");
    refused(pool(usize::MAX - 63, 4), CONTIGO_E_EXHAUSTED, "1048576");
    let bufs: Vec<_> = (0..8).map(|_| board.take()).collect();
    refused(unsafe { contigo_pool_take(board.pool, &mut 0) }, CONTIGO_E_NO_SLOTS, "8 slots");
    assert_eq!(answer(|free| unsafe { contigo_pool_free_slots(board.pool, free) }), 0);
    bufs.into_iter().for_each(|buf| ok(contigo_buf_release(buf)));
    assert_eq!(answer(|free| unsafe { contigo_pool_free_slots(board.pool, free) }), 8);
    board.close();
}

#[test]
fn ranges_that_overflow() {
    let board = Board::new();
    let buf = board.take();
    for (offset, len) in [(0, SLOT + 1), (SLOT, 1), (SLOT + 1, 0), (usize::MAX, 1), (1, usize::MAX), (usize::MAX, usize::MAX)] {
        refused(contigo_buf_slice(buf, offset, len), CONTIGO_E_OUT_OF_RANGE, "4096");
        refused(to_device(buf, board.port, offset, len, CONTIGO_TO_DEVICE).0, CONTIGO_E_OUT_OF_RANGE, "4096");
        assert_eq!(bytes(buf).len(), SLOT, "it stays as it was");
        let mut operands = board.operands();
        operands[0] = contigo_operand { buf: operands[0].buf, offset_bytes: offset, len_bytes: len };
        refused(board.try_start(&operands).0, CONTIGO_E_OUT_OF_RANGE, "operand 0");
        release_all(&operands);
    }
    let long = [0_u8; SLOT + 1];
    refused(unsafe { contigo_buf_write(buf, long.as_ptr().cast(), long.len()) }, CONTIGO_E_OUT_OF_RANGE, "4097");
    refused(unsafe { contigo_buf_write(buf, long.as_ptr().cast(), usize::MAX) }, CONTIGO_E_OUT_OF_RANGE, "4096");
    refused(to_device(buf, board.port, 0, 0, CONTIGO_TO_DEVICE).0, CONTIGO_E_BUFFER_SIZE, "0 bytes");
    ok(contigo_buf_release(buf));
    board.close();
}

fn port(sim: contigo_sim, window: (u64, u64), addr_bits: u32) -> Result<contigo_port, contigo_status> {
    let options = contigo_port_options {
        struct_size: size_of::<contigo_port_options>(),
        name: c"my-port".as_ptr(),
        offset: 0,
        window_first: window.0,
        window_last: window.1,
        addr_bits,
        coherent: 0,
        sim,
    };
    let mut port = 0;
    match unsafe { contigo_port_define(&options, &mut port) } {
        CONTIGO_OK => Ok(port),
        status => Err(status),
    }
}

#[test]
fn ports_that_do_not_fit() {
    let board = Board::new();
    let buf = board.take();
    let soc = answer(|port| unsafe { contigo_port_find(c"zynq-hp0".as_ptr(), port) });
    refused(to_device(buf, soc, 0, 64, CONTIGO_TO_DEVICE).0, CONTIGO_E_WRONG_BUS, "zynq-hp0");
    let low = port(board.sim, (0, 0xFFFF), 32).unwrap();
    refused(to_device(buf, low, 0, 64, CONTIGO_TO_DEVICE).0, CONTIGO_E_UNREACHABLE, "my-port reaches 0x0..=0xffff");
    refused(unsafe { contigo_port_find(c"none".as_ptr(), &mut 0) }, CONTIGO_E_NOT_FOUND, "port");
    refused(port(0, (0, 1), 0).unwrap_err(), CONTIGO_E_ARGUMENT, "addr_bits = 0");
    refused(port(0, (0, 1), 65).unwrap_err(), CONTIGO_E_ARGUMENT, "addr_bits = 65");
    refused(port(0, (2, 1), 32).unwrap_err(), CONTIGO_E_VALUE, "window_last");
    refused(port(board.heap, (0, 1), 32).unwrap_err(), CONTIGO_E_KIND, "heap");
    let (mut addr, mut byte) = (0, ptr::null_mut());
    let of = |ptr, len, addr: &mut u64| unsafe { contigo_dev_addr_of(board.heap, board.port, ptr, len, addr) };
    refused(of(ptr::null(), 1, &mut addr), CONTIGO_E_NOT_OURS, "not in this region");
    refused(of((&raw const board).cast(), 1, &mut addr), CONTIGO_E_NOT_OURS, "not in this region");
    refused(of(try_map(buf, CONTIGO_READ).1, 2 << 20, &mut addr), CONTIGO_E_NOT_OURS, "2097152");
    refused(unsafe { contigo_host_ptr_of(board.heap, board.port, 1, &mut byte) }, CONTIGO_E_NOT_OURS, "0x1");
    ok(contigo_buf_unmap(buf));
    refused(unsafe { contigo_kernel_port_open(c"contigo-none".as_ptr(), &mut 0) }, CONTIGO_E_NOT_FOUND, "");
    for port in [soc, low] {
        ok(contigo_port_close(port));
    }
    ok(contigo_buf_release(buf));
    board.close();
}

#[test]
fn jobs_that_the_engine_does_not_take() {
    let board = Board::new();
    let operands = board.operands();
    let start = |args: contigo_gemm8_args, operands: [contigo_operand; 4]| unsafe {
        contigo_gemm8_start(board.engine, &args, operands.as_ptr(), &mut 0)
    };
    refused(start(contigo_gemm8_args { n: 17, ..GEMM }, operands), CONTIGO_E_ARGUMENT, "n = 17");
    refused(start(contigo_gemm8_args { m: u32::MAX, ..GEMM }, operands), CONTIGO_E_ARGUMENT, "m = 4294967295");
    let int8 = contigo_gemm8_args { output: CONTIGO_GEMM8_INT8, shift: 32, ..GEMM };
    refused(start(int8, operands), CONTIGO_E_ARGUMENT, "shift = 32");
    refused(start(contigo_gemm8_args { k: 128, ..GEMM }, operands), CONTIGO_E_BUFFER_SIZE, "operand 0 has 64 bytes, the job needs 128");
    let mut shifted = operands;
    shifted[1].offset_bytes = 16;
    refused(start(GEMM, shifted), CONTIGO_E_BUFFER_ALIGN, "operand 1");
    for operand in operands {
        assert_eq!(bytes(operand.buf).len(), SLOT, "every buffer is the CPU's");
    }
    ok(contigo_job_wait(board.start(&operands), 20_000));
    let uio = contigo_engine_options { uio: c"contigo-none".as_ptr(), ..engine_options(CONTIGO_ENGINE_GEMM8, 0, board.port, 0) };
    refused(unsafe { contigo_engine_open(&uio, &mut 0) }, CONTIGO_E_NOT_FOUND, "UIO device");
    release_all(&operands);
    board.close();
}

#[test]
fn devices_that_fail_give_the_buffers_back() {
    let faulty = [
        (contigo_sim_options { hang: 1_000, ..sim_options() }, CONTIGO_E_TIMEOUT, "within 500 us"),
        (contigo_sim_options { error: 1_000, ..sim_options() }, CONTIGO_E_FAULT, "gemm8 reports"),
        (contigo_sim_options { short_transfer: 1_000, ..sim_options() }, CONTIGO_E_SHORT_TRANSFER, "of 64 bytes"),
    ];
    for (options, code, word) in faulty {
        let board = Board::with(&options);
        let operands = board.operands();
        let job = board.start(&operands);
        refused(contigo_job_wait(job, 500), code, word);
        refused(contigo_job_wait(job, 500), CONTIGO_E_STALE, "job");
        for operand in operands {
            assert_eq!(bytes(operand.buf).len(), SLOT, "every buffer is the CPU's");
        }
        let mut stats = contigo_engine_stats { struct_size: size_of::<contigo_engine_stats>(), ..Default::default() };
        ok(unsafe { contigo_engine_get_stats(board.engine, &mut stats) });
        assert_eq!((stats.started, stats.completed + stats.stopped, stats.busy), (1, 1, 0));
        release_all(&operands);
        board.close();
    }
}

#[test]
fn what_a_stuck_device_has_is_leaked_and_never_freed() {
    let board = Board::with(&contigo_sim_options { stuck: 1_000, ..sim_options() });
    let operands = board.operands();
    let job = board.start(&operands);
    refused(contigo_job_wait(job, 500), CONTIGO_E_WILL_NOT_STOP, "before that: the job did not finish within 500 us");
    for operand in operands {
        refused(contigo_buf_release(operand.buf), CONTIGO_E_LEAKED, "leaked");
        refused(try_map(operand.buf, CONTIGO_READ).0, CONTIGO_E_LEAKED, "leaked");
        refused(contigo_buf_to_cpu(operand.buf), CONTIGO_E_LEAKED, "leaked");
    }
    let others = board.operands();
    refused(board.try_start(&others).0, CONTIGO_E_BUSY, "busy");
    refused(contigo_engine_close(board.engine), CONTIGO_E_WILL_NOT_STOP, "did not stop");
    refused(contigo_engine_recover(board.engine), CONTIGO_E_WILL_NOT_STOP, "did not stop");
    ok(contigo_engine_reset(board.engine));
    ok(contigo_engine_recover(board.engine));
    // Usable again; what was lost stays lost.
    refused(contigo_job_wait(board.start(&others), 500), CONTIGO_E_WILL_NOT_STOP, "did not stop");
    ok(contigo_engine_reset(board.engine));
    ok(contigo_engine_close(board.engine));
    refused(contigo_pool_close(board.pool), CONTIGO_E_STILL_USED, "8 still use this pool");
    refused(contigo_heap_close(board.heap), CONTIGO_E_STILL_USED, "1 still use this heap");
    refused(contigo_sim_close(board.sim), CONTIGO_E_STILL_USED, "1 still use this simulated board");
}

//! gemm8 on a GPU: the same jobs and the same bits as on the simulated engine; kernels that last, fail late, or never end.

use super::*;
use fake_cuda::{LateError, code};
use std::{sync::Barrier, thread};

/// Numbers that look random, the same in each run.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// One job on `board`, with operands that `seed` makes; and C.
fn product(board: &Board, args: &contigo_gemm8_args, mut seed: u64, wait: impl FnOnce(contigo_job)) -> Vec<u8> {
    let (m, n, k) = (args.m as usize, args.n as usize, args.k as usize);
    let element = if args.output == CONTIGO_GEMM8_INT32 { 4 } else { 1 };
    let operands = [m * k, k * n, 4 * n, m * n * element].map(|len_bytes| {
        let buf = board.take();
        let noise: Vec<u8> = (0..len_bytes).map(|_| next(&mut seed).to_le_bytes()[0]).collect();
        ok(unsafe { contigo_buf_write(buf, noise.as_ptr().cast(), len_bytes) });
        contigo_operand { buf, offset_bytes: 0, len_bytes }
    });
    wait(answer(|job| unsafe { contigo_gemm8_start(board.engine, args, operands.as_ptr(), job) }));
    let c = bytes(operands[3].buf)[..operands[3].len_bytes].to_vec();
    release_all(&operands);
    c
}

#[test]
fn the_products_are_those_of_the_simulated_engine_bit_for_bit() {
    alone("jobs::the_products_are_those_of_the_simulated_engine_bit_for_bit", &Config::default(), |controls| {
        let (gpu, fpga) = (gpu(0), Board::new());
        let mut seed = 11;
        for round in 0..200_u32 {
            let [m, n, k, shift] = [8, 4, 4, 32].map(|most| u32::try_from(next(&mut seed) % most).unwrap());
            let output = if round % 3 == 0 { CONTIGO_GEMM8_INT32 } else { CONTIGO_GEMM8_INT8 };
            let (n, k) = (16 * (n + 1), 16 * (k + 1));
            let args = contigo_gemm8_args {
                m: m + 1,
                n,
                k,
                output,
                relu: round % 2,
                shift: if output == CONTIGO_GEMM8_INT8 { shift } else { 0 },
                ..GEMM
            };
            let waited = |job| ok(contigo_job_wait(job, 1_000_000));
            let polled = |job| while answer(|done| unsafe { contigo_job_poll(job, done) }) == 0 {};
            let right = product(&fpga, &args, seed, waited);
            let made = if round % 2 == 0 { product(&gpu, &args, seed, waited) } else { product(&gpu, &args, seed, polled) };
            assert_eq!(made, right, "{args:?}");
        }
        let mut stats = contigo_engine_stats { struct_size: size_of::<contigo_engine_stats>(), ..Default::default() };
        ok(unsafe { contigo_engine_get_stats(gpu.engine, &mut stats) });
        assert_eq!((stats.started, stats.completed, stats.stopped, stats.busy), (200, 200, 0, 0));
        fpga.close();
        close(gpu);
        assert_eq!(controls.counters().kernels_done, 200);
        clean(controls, 1, 1);
    });
}

#[test]
fn a_kernel_that_takes_too_long_is_waited_out_and_its_buffers_come_back() {
    let config = Config { kernel_us: 20_000, ..Config::default() };
    alone("jobs::a_kernel_that_takes_too_long_is_waited_out_and_its_buffers_come_back", &config, |controls| {
        let gpu = gpu(0);
        let operands = gpu.operands();
        refused(contigo_job_wait(gpu.start(&operands), 100), CONTIGO_E_TIMEOUT, "within 100 us");
        assert_eq!(bytes(operands[3].buf).len(), SLOT, "the CPU's");
        ok(contigo_job_cancel(gpu.start(&operands)));
        ok(contigo_job_wait(gpu.start(&operands), 1_000_000));
        assert_eq!(bytes(operands[3].buf)[..4], 128_i32.to_le_bytes());
        release_all(&operands);
        close(gpu);
        clean(controls, 1, 1);
    });
}

#[test]
fn a_kernel_that_never_ends_keeps_its_buffers() {
    let config = Config { hang_launch: 2, ..Config::default() };
    alone("jobs::a_kernel_that_never_ends_keeps_its_buffers", &config, |controls| {
        let (gpu, other) = (gpu(0), open_heap(&cuda_heap(0)));
        let (operands, others) = (gpu.operands(), gpu.operands());
        ok(contigo_job_wait(gpu.start(&operands), 1_000_000));
        let job = gpu.start(&operands);
        refused(contigo_job_wait(job, 1_000), CONTIGO_E_WILL_NOT_STOP, "before that: the job did not finish within 1000 us");
        for operand in operands {
            refused(contigo_buf_release(operand.buf), CONTIGO_E_LEAKED, "leaked");
            refused(try_map(operand.buf, CONTIGO_READ).0, CONTIGO_E_LEAKED, "leaked");
        }
        refused(gpu.try_start(&others).0, CONTIGO_E_BUSY, "busy");
        refused(contigo_engine_reset(gpu.engine), CONTIGO_E_KIND, "the engine is a GPU");
        refused(contigo_engine_close(gpu.engine), CONTIGO_E_WILL_NOT_STOP, "gemm8 (CUDA)");
        release_all(&others);
        refused(contigo_pool_close(gpu.pool), CONTIGO_E_STILL_USED, "4 still use this pool");
        refused(contigo_heap_close(gpu.heap), CONTIGO_E_STILL_USED, "still use this heap");
        // Freeing it would wait for the kernel: it is leaked.
        ok(contigo_heap_close(other));
        let counters = controls.counters();
        assert_eq!((counters.host_allocs, counters.freed_under_a_kernel, counters.unended_waits), (2, 0, 0), "{counters:?}");
    });
}

#[test]
fn a_fault_that_comes_late_has_its_code_and_its_name() {
    let late_error = LateError { launch: 1, code: code::ILLEGAL_ADDRESS, after_calls: 0 };
    alone("jobs::a_fault_that_comes_late_has_its_code_and_its_name", &Config { late_error, ..Config::default() }, |controls| {
        let gpu = gpu(0);
        let operands = gpu.operands();
        let job = gpu.start(&operands);
        refused(contigo_job_wait(job, 1_000_000), CONTIGO_E_WILL_NOT_STOP, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        refused(contigo_buf_to_cpu(operands[3].buf), CONTIGO_E_LEAKED, "leaked");
        // The context is lost, and nothing new is had of it.
        refused(unsafe { contigo_heap_open(&cuda_heap(0), &mut 0) }, CONTIGO_E_CUDA, "(700)");
        refused(try_engine(gpu.port).0, CONTIGO_E_CUDA, "(700)");
        assert_eq!(controls.counters().freed_under_a_kernel, 0);
    });
}

#[test]
fn threads_that_open_the_same_gpu_at_once_share_it() {
    const THREADS: usize = 4;
    alone("jobs::threads_that_open_the_same_gpu_at_once_share_it", &Config::default(), |controls| {
        let together = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    together.wait();
                    let gpu = gpu(0);
                    let operands = gpu.operands();
                    for _ in 0..10 {
                        ok(contigo_job_wait(gpu.start(&operands), 1_000_000));
                        assert_eq!(bytes(operands[3].buf)[..4], 128_i32.to_le_bytes());
                    }
                    release_all(&operands);
                    close(gpu);
                });
            }
        });
        clean(controls, 1, 1);
    });
}

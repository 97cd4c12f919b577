//! A program's own kernel on a GPU: several jobs in its stream; kernels that last, fail late, or
//! never end.

use super::*;
use fake_cuda::{LateError, code};
use std::{sync::Barrier, thread};

#[test]
fn a_program_s_own_kernel_is_launched_by_its_signature() {
    alone("jobs::a_program_s_own_kernel_is_launched_by_its_signature", &Config::default(), |controls| {
        let gpu = gpu(0);
        let info = info_of(gpu.engine);
        assert_eq!((info.operands, info.depth, info.in_order), (4, 8, 1));
        // Several in the stream, and each end in its order.
        let all = [gpu.operands(), gpu.operands()];
        let jobs = all.map(|operands| gpu.start(&operands));
        for (job, operands) in jobs.into_iter().zip(all) {
            let mut ended = (CONTIGO_OK, 0);
            while ended == (CONTIGO_OK, 0) {
                ended = next(gpu.engine, 0);
            }
            assert_eq!(ended, (CONTIGO_OK, job));
            assert_eq!(bytes(operands[3].buf)[..64], [128, 0, 0, 0].repeat(16), "64 times 1 times 2");
            release_all(&operands);
        }
        // What is no launch of it is refused before anything is touched.
        let operands = gpu.operands();
        let short = unsafe { contigo_job_start(gpu.engine, operands.as_ptr(), 4, ARGS.as_ptr(), 10, &mut 0) };
        refused(short, CONTIGO_E_ARGUMENT, "10");
        release_all(&operands);
        refused(contigo_module_close(gpu.module), CONTIGO_E_STILL_USED, "1 still use this module");
        close(gpu);
        assert_eq!(controls.counters().kernels_done, 2);
        clean(controls, 1);
    });
}

#[test]
fn a_kernel_that_takes_too_long_is_waited_out_and_its_buffers_come_back() {
    let config = Config { kernel_us: 20_000, ..Config::default() };
    alone("jobs::a_kernel_that_takes_too_long_is_waited_out_and_its_buffers_come_back", &config, |controls| {
        let gpu = gpu(0);
        let operands = gpu.operands();
        refused(wait(gpu.start(&operands), 100), CONTIGO_E_TIMEOUT, "within 100 us");
        assert_eq!(bytes(operands[3].buf).len(), SLOT, "the CPU's");
        ok(contigo_job_cancel(gpu.start(&operands)));
        ok(wait(gpu.start(&operands), 1_000_000));
        assert_eq!(bytes(operands[3].buf)[..4], 128_i32.to_le_bytes());
        release_all(&operands);
        close(gpu);
        clean(controls, 1);
    });
}

#[test]
fn a_kernel_that_never_ends_keeps_its_buffers() {
    let config = Config { hang_launch: 2, ..Config::default() };
    alone("jobs::a_kernel_that_never_ends_keeps_its_buffers", &config, |controls| {
        let (gpu, other) = (gpu(0), pinned(0, &region_options(0)));
        refused(try_kernel(gpu.module, c"none").0, CONTIGO_E_CUDA, "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)");
        let (operands, others) = (gpu.operands(), gpu.operands());
        ok(wait(gpu.start(&operands), 1_000_000));
        let job = gpu.start(&operands);
        refused(wait(job, 1_000), CONTIGO_E_WILL_NOT_STOP, "before that: the job did not end within 1000 us");
        for operand in operands {
            refused(contigo_buf_release(operand.buf), CONTIGO_E_DEVICE_OWNED, "device's");
            refused(try_map(operand.buf, CONTIGO_READ).0, CONTIGO_E_DEVICE_OWNED, "device's");
        }
        refused(gpu.try_start(&others).0, CONTIGO_E_QUEUE_STOPPED, "");
        refused(contigo_queue_stop(gpu.engine), CONTIGO_E_WILL_NOT_STOP, "gemm8");
        refused(contigo_engine_close(gpu.engine), CONTIGO_E_HAS_JOB, "1 jobs");
        refused(contigo_module_close(gpu.module), CONTIGO_E_STILL_USED, "module");
        release_all(&others);
        refused(contigo_pool_close(gpu.pool), CONTIGO_E_STILL_USED, "4 still use this pool");
        refused(contigo_region_close(gpu.region), CONTIGO_E_STILL_USED, "still use this region");
        // Freeing it would wait for the kernel: it is leaked.
        ok(contigo_region_close(other));
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
        refused(wait(job, 1_000_000), CONTIGO_E_WILL_NOT_STOP, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        refused(contigo_buf_take_back(operands[3].buf), CONTIGO_E_DEVICE_OWNED, "device's");
        // The context is lost, and nothing new is had of it.
        refused(try_pinned(0, &region_options(0)), CONTIGO_E_CUDA, "(700)");
        refused(try_module(gpu.port).0, CONTIGO_E_CUDA, "(700)");
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
                        ok(wait(gpu.start(&operands), 1_000_000));
                        assert_eq!(bytes(operands[3].buf)[..4], 128_i32.to_le_bytes());
                    }
                    release_all(&operands);
                    close(gpu);
                });
            }
        });
        clean(controls, 1);
    });
}

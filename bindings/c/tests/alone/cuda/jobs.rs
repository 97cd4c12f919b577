//! A program's own kernel on a GPU, and several jobs in its stream. `tests/tests/cuda` has kernels
//! that last, fail late, or never end.

use super::counting::count;
use super::*;
use contigo_testkit::barrier::Barrier;
use std::hint::black_box;
use std::thread;

#[test]
fn own_kernel_is_launched_by_its_signature() {
    alone(&Config::default(), |controls| {
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
            assert_eq!(
                bytes(operands[3].buf)[..64],
                [128, 0, 0, 0].repeat(16),
                "64 times 1 times 2"
            );
            release_all(&operands);
        }
        // A job that is no launch of it is refused before anything is touched.
        let operands = gpu.operands();
        let short = try_job(gpu.engine, &operands, &ARGS[..10]).0;
        refused(short, CONTIGO_E_ARGUMENT, "10");
        release_all(&operands);
        refused(contigo_module_close(gpu.module), CONTIGO_E_STILL_USED, "1 still use this module");
        close(gpu);
        assert_eq!(controls.counters().kernels_done, 2);
        clean(controls, 1);
    });
}

#[test]
fn threads_opening_same_gpu_share_it() {
    const THREADS: usize = 4;
    alone(&Config::default(), |controls| {
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

/// Not one allocation of this library from finding the port to closing it, refusals included. The
/// stand-in's own are not counted.
#[test]
fn no_call_allocates_from_open_to_close() {
    alone(&Config::default(), |controls| {
        const JOBS: u64 = 200;
        assert_eq!(count(|| drop(black_box(vec![0_u8; 64]))).1, 1, "the counter counts");
        let ((), allocations) = count(|| {
            let port = find_port(c"cuda:0");
            let region = open_region(c"cuda", &region_options(0));
            let pool = open_pool(region, SLOT, 8, 256);
            let module = try_module(port, PTX.as_bytes()).1;
            let gpu = OnGpu { port, region, pool, module, engine: try_kernel(module, c"gemm8").1 };
            for round in 0..JOBS {
                let operands = gpu.operands();
                let job = gpu.start(&operands);
                assert_eq!(gpu.try_start(&operands).0, CONTIGO_E_DEVICE_OWNED);
                if round % 2 == 0 {
                    ok(wait(job, 1_000_000));
                } else {
                    while wait_for(job, 0) == (CONTIGO_OK, 0) {}
                }
                let (status, tensor) = lend(operands[3].buf, &options(&[16]));
                ok(status);
                delete(tensor);
                ok(contigo_buf_unlend(operands[3].buf));
                ok(give(operands[0].buf, port, 0, 64, CONTIGO_READS).0);
                ok(contigo_buf_take_back(operands[0].buf));
                release_all(&operands);
            }
            assert_eq!(try_region(c"cuda:9", &region_options(0)), CONTIGO_E_ARGUMENT);
            assert_eq!(
                try_region(
                    c"cuda",
                    &contigo_region_options { len_bytes: 1 << 40, ..region_options(0) }
                ),
                CONTIGO_E_CUDA
            );
            close(gpu);
        });
        assert_eq!(allocations, 0);
        assert_eq!(controls.counters().kernels_done, JOBS);
        clean(controls, 1);
    });
}

//! No region: not one allocation of this library from finding the port to closing it, refusals
//! included. The stand-in's own are not counted.

use super::{counting::count, *};
use std::hint::black_box;

#[test]
fn none_from_the_first_call_to_the_last() {
    alone("cuda::no_heap::none_from_the_first_call_to_the_last", &Config::default(), |controls| {
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

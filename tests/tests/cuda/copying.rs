//! Kernels that work in the GPU's own memory: the same results, with copies that are counted.

use super::{
    clean, clean_but_for, code, driver,
    jobs::{GEMM, LIMIT, expected, loaded, operands},
};
use contigo::{
    Align, Error, Pool, Queue, Region,
    cuda::{CopyingFunction, CudaHost, Gpu},
};
use contigo_gemm8::Gemm;
use contigo_gemm8::cuda::Gemm8Kernel;
use fake_cuda::{Config, Controls, Function, code as answers};

type Copying = Queue<Gemm8Kernel<CopyingFunction>>;

/// Runs `act` with a queue that copies, `capacity_bytes` for each operand.
fn with_copies(
    config: &Config,
    capacity_bytes: usize,
    act: impl FnOnce(&mut Copying, &Pool),
) -> (Result<(), Error>, Controls) {
    let (controls, cuda) = driver(config);
    let done = {
        let gpu = Gpu::primary(&cuda, 0).unwrap();
        let module = loaded(&gpu);
        let region =
            Region::new(CudaHost::allocate(&gpu, 64 * 1024, Align::DLPACK).unwrap()).unwrap();
        let pool = region.pool(8, 4096).unwrap();
        module
            .copying([capacity_bytes; 4])
            .map(|kernel| act(&mut Queue::new(kernel, 1).unwrap(), &pool))
    };
    (done, controls)
}

#[test]
fn copying_gives_same_results_and_counts() {
    let (done, controls) = with_copies(&Config::default(), 4096, |queue, pool| {
        let [a_bytes, b_bytes, bias_bytes, c_bytes] =
            GEMM.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap());
        for job in 1..=20_i8 {
            let [mut a, mut b, mut bias, mut c] = [(); 4].map(|()| pool.take().unwrap());
            a.view_at_mut::<i8>(..a_bytes).unwrap().fill(job);
            b.view_at_mut::<i8>(..b_bytes)
                .unwrap()
                .iter_mut()
                .zip((0..=127).cycle())
                .for_each(|(to, from)| *to = from);
            bias.view_at_mut::<i32>(..bias_bytes).unwrap().fill(i32::from(job) * -1_000);
            c.view_mut::<u8>().unwrap().fill(0xEE);
            let right = expected(
                &GEMM,
                a.view_at(..a_bytes).unwrap(),
                b.view_at(..b_bytes).unwrap(),
                bias.view_at(..bias_bytes).unwrap(),
            );
            let given = [
                a.to_device(..a_bytes),
                b.to_device(..b_bytes),
                bias.to_device(..bias_bytes),
                c.from_device(..c_bytes),
            ];
            let [.., c] = queue.run(given, &GEMM.words(), LIMIT).unwrap().buffers;
            let (result, rest) = c.view::<u8>().unwrap().split_at(c_bytes);
            assert_eq!(result, right);
            assert!(rest.iter().all(|byte| *byte == 0xEE), "nothing behind the operand is copied");
        }
        let each: u64 = GEMM.operand_bytes().iter().sum();
        assert_eq!((queue.driver().bytes_copied(), queue.counts().completed), (20 * each, 20));
    });
    done.unwrap();
    assert_eq!(controls.counters().calls(Function::cuMemcpyAsync), 20 * 4);
    clean(&controls);
}

#[test]
fn an_operand_that_does_not_fit_is_refused() {
    let (done, controls) = with_copies(&Config::default(), 1024, |queue, pool| {
        let refused = queue.submit(operands(pool), &GEMM.words()).unwrap_err();
        assert_eq!(refused.error, Error::Exhausted { need_bytes: 48 * 32, capacity_bytes: 1024 });
        drop(refused);
        let refused = queue.submit(operands(pool), &Gemm { n: 17, ..GEMM }.words()).unwrap_err();
        assert!(matches!(refused.error, Error::Exhausted { .. }), "{refused:?}");
        drop(refused);
        assert_eq!((pool.taken(), queue.driver().bytes_copied()), (0, 0));
    });
    done.unwrap();
    clean(&controls);
}

#[test]
fn whatever_fails_gives_everything_back() {
    for (function, calls) in [
        (Function::cuMemAlloc_v2, 4),
        (Function::cuMemcpyAsync, 4),
        (Function::cuLaunchKernel, 1),
        (Function::cuEventRecord, 1),
    ] {
        for nth in 1..=calls {
            let (done, controls) = with_copies(
                &Config::default().failing(function, nth, answers::OUT_OF_MEMORY),
                4096,
                |queue, pool| {
                    let failed = queue.submit(operands(pool), &GEMM.words()).unwrap_err();
                    assert_eq!(code(failed.error).1, answers::OUT_OF_MEMORY);
                    drop(failed.buffers.expect("the stream is empty"));
                    assert_eq!((pool.taken(), queue.len(), queue.is_stopped()), (0, 0, false));
                    drop(queue.run(operands(pool), &GEMM.words(), LIMIT).unwrap());
                },
            );
            assert_eq!(done.is_err(), function == Function::cuMemAlloc_v2, "{function:?} {nth}");
            clean_but_for(&controls, &[function]);
        }
    }
}

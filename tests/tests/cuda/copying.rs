//! Kernels that work in the GPU's own memory: the same results, with copies that are counted.

use super::code;
use super::jobs::{GEMM, LIMIT, Rig, operands, rig_with};
use super::products::{OPERAND_BYTES, products};
use contigo::cuda::CopyingFunction;
use contigo::{Error, Queue, Result};
use contigo_gemm8::Gemm;
use contigo_gemm8::cuda::Gemm8Kernel;
use fake_cuda::{Config, Function, code as answers};

fn rig(config: &Config) -> Rig {
    rig_with(config, 4, OPERAND_BYTES)
}

/// A queue that copies, `capacity_bytes` for each operand.
fn copying(rig: &Rig, capacity_bytes: usize) -> Result<Queue<Gemm8Kernel<CopyingFunction>>> {
    rig.module.copying([capacity_bytes; 4]).map(|kernel| Queue::new(kernel, 1).unwrap())
}

#[test]
fn copying_gives_same_results_and_counts() {
    let rig = rig(&Config::default());
    let mut queue = copying(&rig, OPERAND_BYTES).unwrap();
    let operand_bytes = products(&mut queue, &rig.pool, 20, 6);
    let counted = (queue.driver().bytes_copied(), queue.counts().completed);
    assert_eq!(counted, (operand_bytes, 20));
    assert_eq!(rig.controls.counters().calls(Function::cuMemcpyAsync), 20 * 4);
}

#[test]
fn an_operand_that_does_not_fit_is_refused() {
    let rig = rig(&Config::default());
    let mut queue = copying(&rig, 1024).unwrap();
    let refused = queue.submit(operands(&rig.pool), &GEMM.words()).unwrap_err();
    assert_eq!(refused.error, Error::Exhausted { need_bytes: 48 * 32, capacity_bytes: 1024 });
    drop(refused);
    let refused = queue.submit(operands(&rig.pool), &Gemm { n: 17, ..GEMM }.words()).unwrap_err();
    assert!(matches!(refused.error, Error::Exhausted { .. }), "{refused:?}");
    drop(refused);
    assert_eq!((rig.pool.taken(), queue.driver().bytes_copied()), (0, 0));
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
            let mut rig = rig(&Config::default().failing(function, nth, answers::OUT_OF_MEMORY));
            rig.controls.provoked = vec![function];
            let opened = copying(&rig, 4096);
            assert_eq!(opened.is_err(), function == Function::cuMemAlloc_v2, "{function:?} {nth}");
            let Ok(mut queue) = opened else { continue };
            let failed = queue.submit(operands(&rig.pool), &GEMM.words()).unwrap_err();
            assert_eq!(code(failed.error).1, answers::OUT_OF_MEMORY);
            drop(failed.buffers.expect("the stream is empty"));
            assert_eq!((rig.pool.taken(), queue.len(), queue.is_stopped()), (0, 0, false));
            drop(queue.run(operands(&rig.pool), &GEMM.words(), LIMIT).unwrap());
        }
    }
}

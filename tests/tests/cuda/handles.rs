//! Handles: each owns what it leads to, and the last one to go gives it back, in any order.

use super::jobs::{GEMM, LIMIT, loaded, operands};
use super::{block, clean, driver, leaked};
use contigo::cuda::{Cuda, Gpu};
use contigo::{Queue, Region};
use contigo_testkit::rounds;
use fake_cuda::{Config, Function};
use fastrand::Rng;
use std::any::Any;
use std::thread;

#[test]
fn the_last_handle_gives_everything_back() {
    let mut rng = Rng::with_seed(3);
    for round in 0..rounds(60) {
        let (controls, cuda) = driver(&Config::default());
        let gpu = Gpu::primary(&cuda, 0).unwrap();
        let module = loaded(&gpu);
        let mut queue = Queue::new(module.kernel().unwrap(), 2).unwrap();
        let copying = Queue::new(module.copying([4096; 4]).unwrap(), 2).unwrap();
        let region = Region::new(block(&gpu).unwrap()).unwrap();
        let pool = region.pool(8, 4096).unwrap();
        let [.., buf] = queue.run(operands(&pool), &GEMM.words(), LIMIT).unwrap().buffers;
        if round % 2 == 0 {
            queue.submit(operands(&pool), &GEMM.words()).unwrap();
        }
        let mut handles: Vec<Box<dyn Any + Send>> = vec![
            Box::new(cuda),
            Box::new(gpu.clone()),
            Box::new(gpu),
            Box::new(module.clone()),
            Box::new(module),
            Box::new(queue),
            Box::new(copying),
            Box::new(region),
            Box::new(pool),
            Box::new(buf),
        ];
        rng.shuffle(&mut handles);
        // The driver itself has nothing to give back: what the others held may be gone before it.
        let holds = handles.iter().rposition(|handle| !handle.is::<Cuda>()).unwrap();
        let last = handles.split_off(holds);
        let on_another_thread = handles.split_off(handles.len() / 2);
        drop(handles);
        thread::spawn(|| drop(on_another_thread)).join().unwrap();
        let counters = controls.counters();
        assert_eq!(
            (counters.retained_contexts, counters.calls(Function::cuDevicePrimaryCtxRelease_v2)),
            (1, 0),
            "round {round}"
        );
        drop(last);
        clean(&controls);
        let counters = controls.counters();
        for (made, given_back, times) in [
            (Function::cuDevicePrimaryCtxRetain, Function::cuDevicePrimaryCtxRelease_v2, 1),
            (Function::cuModuleLoadDataEx, Function::cuModuleUnload, 1),
            (Function::cuStreamCreate, Function::cuStreamDestroy_v2, 2),
            (Function::cuEventCreate, Function::cuEventDestroy_v2, 2 * 8),
            (Function::cuMemAlloc_v2, Function::cuMemFree_v2, 4),
        ] {
            assert_eq!(
                (counters.calls(made), counters.calls(given_back)),
                (times, times),
                "{made:?}, round {round}"
            );
        }
        assert_eq!(
            counters.calls(Function::cuMemHostAlloc),
            counters.calls(Function::cuMemFreeHost),
            "round {round}"
        );
    }
}

/// With no other handle left, its own keeps them.
#[test]
fn endless_kernel_keeps_module_and_context() {
    let (controls, cuda) = driver(&Config { hang_launch: 1, ..Config::default() });
    let mut queue = {
        let gpu = Gpu::primary(&cuda, 0).unwrap();
        Queue::new(loaded(&gpu).kernel().unwrap(), 1).unwrap()
    };
    assert_eq!(
        (controls.counters().modules, controls.counters().retained_contexts),
        (1, 1),
        "the kernel has a handle to each"
    );
    let region = Region::new(block(&Gpu::primary(&cuda, 0).unwrap()).unwrap()).unwrap();
    let pool = region.pool(4, 4096).unwrap();
    queue.submit(operands(&pool), &GEMM.words()).unwrap();
    drop((region, pool));
    // It is waited for, for a while.
    drop(queue);
    let counters = leaked(&controls);
    assert_eq!(
        (counters.host_allocs, counters.modules, counters.streams, counters.retained_contexts),
        (1, 1, 1, 2),
        "{counters:?}"
    );
    let given_back = [
        Function::cuModuleUnload,
        Function::cuStreamDestroy_v2,
        Function::cuDevicePrimaryCtxRelease_v2,
    ];
    assert_eq!(given_back.map(|function| counters.calls(function)), [0; 3]);
}

//! A kernel of one's own on the simulated board: a function that fails, that leaves its operands,
//! that has not ended, and a pointer without a length.

use super::*;
use contigo::sim::AnyModel;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// `void twice(const char *from, char *to)`, of any length.
fn twice() -> KernelMap {
    KernelMap::named("twice", Protocol::Hs)
        .pointer("from", 0x10, OperandSpec::to_device(), "")
        .pointer("to", 0x1C, OperandSpec::from_device(), "")
        .build()
        .unwrap()
}

type OwnQueue = Queue<ApCtrl<SimWindow<AnyModel>>>;

/// A queue of the kernel that `compute` computes, its board, and a pool.
fn own(
    compute: impl FnMut(&mut KernelCall<'_, '_>) -> Result<[u32; 4], KernelError> + Send + 'static,
) -> (SimBoard, SimDevice<AnyModel>, OwnQueue, Pool) {
    let (board, _, pool) = bench(6, 8, 1024);
    let model = AnyModel::new(ApCtrlModel::new(twice(), compute).unwrap());
    let device = SimDevice::with_model(&board, board.port(), model);
    // SAFETY: the map is the model's, whose function is a kernel's.
    let driver = unsafe { ApCtrl::open(device.window().unwrap(), twice()).unwrap() };
    (board, device, Queue::new(driver, 1).unwrap(), pool)
}

#[test]
fn pointer_without_length_has_the_bytes_handed_over() {
    let (board, _device, mut queue, pool) = own(|call| {
        // The buffers lie side by side.
        assert_eq!([call.len_bytes(0), call.len_bytes(1)], [1024, 1024]);
        let (mut bytes, mut rest) = ([0; 60], [0; 4]);
        call.read(0, 0, &mut bytes)?;
        call.write(1, 0, &bytes.map(|byte| byte * 2))?;
        // What the kernel only writes can be looked at, and is no access.
        call.probe(1, 56, &mut rest)?;
        assert_eq!(rest, [14; 4]);
        Ok([0; 4])
    });
    let (mut from, to) = (pool.take().unwrap(), pool.take().unwrap());
    from.view_mut::<u8>().unwrap().fill(7);
    let done = queue.run([from.to_device(..), to.from_device(..)], &[], LIMIT).unwrap();
    assert_eq!(done.buffers[1].view_at::<u8>(..60).unwrap(), [14; 60]);
    clean(&board);
}

#[test]
fn job_fails_where_its_function_does() {
    type Compute = fn(&mut KernelCall<'_, '_>) -> Result<[u32; 4], KernelError>;
    let functions: [(Compute, KernelError); 4] = [
        (|_| Err(KernelError::Failed), KernelError::Failed),
        (
            |call| call.write(1, 60, &[0; 5]).map(|()| [0; 4]),
            KernelError::Outside { index: 1, at: 60, len: 5 },
        ),
        (
            |call| call.write(0, 0, &[0]).map(|()| [0; 4]),
            KernelError::Outside { index: 0, at: 0, len: 1 },
        ),
        (
            |call| call.read(2, 0, &mut [0]).map(|()| [0; 4]),
            KernelError::Outside { index: 2, at: 0, len: 1 },
        ),
    ];
    for (compute, expected) in functions {
        let seen = Arc::new(Mutex::new(None));
        let of_model = seen.clone();
        let (board, _device, mut queue, pool) = own(move |call| {
            let computed = compute(call);
            *of_model.lock().unwrap() = computed.err();
            computed
        });
        let failed = queue.run(copies(&pool, ..60, ..64), &[], LIMIT).unwrap_err();
        assert_eq!(failed.error, Error::NotComputed { device: "ap_ctrl", jobs: 1 });
        assert_eq!(*seen.lock().unwrap(), Some(expected));
        assert_eq!(failed.buffers.unwrap().len(), 2, "both are back");
        clean(&board);
    }
}

#[test]
fn function_that_has_not_ended_is_asked_again_and_never_for_another_job() {
    let answers = Arc::new(AtomicU64::new(0));
    let of_model = answers.clone();
    let (board, device, mut queue, pool) = own(move |call| {
        let is_answered = of_model.load(Ordering::Relaxed) == call.number();
        if !is_answered {
            return Err(KernelError::WouldBlock);
        }
        call.write(1, 0, &[9; 4])?;
        Ok([0; 4])
    });
    let soon = std::time::Duration::from_millis(1);
    queue.submit(copies(&pool, ..60, ..64), &[]).unwrap();
    assert!(queue.wait::<2>(soon).unwrap().is_none(), "busy");
    answers.store(1, Ordering::Relaxed);
    let done = queue.wait::<2>(soon).unwrap().unwrap();
    assert_eq!(done.buffers[1].view_at::<u8>(..4).unwrap(), [9; 4]);
    drop(done);
    // One that does not end keeps its buffers until a reset; its answer is not the next job's.
    queue.submit(copies(&pool, ..60, ..64), &[]).unwrap();
    assert!(queue.stop().is_err());
    device.reset().unwrap();
    queue.clear().unwrap();
    answers.store(2, Ordering::Relaxed);
    queue.submit(copies(&pool, ..60, ..64), &[]).unwrap();
    assert!(queue.wait::<2>(soon).unwrap().is_none(), "job 3 has no answer");
    answers.store(3, Ordering::Relaxed);
    drop(queue.wait::<2>(soon).unwrap().unwrap());
    clean(&board);
}

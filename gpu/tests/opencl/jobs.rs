//! Jobs: the right bytes, in the same memory.

use super::{SOURCE, WAIT, device, in_place, keyed, module, region, run_there};
use contigo::{
    OperandSpec, Queue,
    job::{
        Launch,
        Parameter::{Operand, Words},
        Signature,
    },
    names::DeviceName,
};
use contigo_gpu::opencl::OpenClKernel;
use fastrand::Rng;
use std::{mem, time::Duration};

fn words(count: usize, key: u8) -> contigo::job::Words {
    let count = u32::try_from(count).unwrap();
    Launch::of(count.div_ceil(64), 64).with(&[count, key.into()])
}

fn xored(bytes: &[u8], key: u8) -> Vec<u8> {
    bytes.iter().map(|byte| byte ^ key).collect()
}

#[test]
fn every_byte_is_right_at_every_offset() {
    let Some(gpu) = device("jobs::every_byte_is_right_at_every_offset") else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 20));
    let mut queue = Queue::new(keyed(&module), 1).unwrap();
    let mut rng = Rng::with_seed(1);
    let align = gpu.align().bytes();
    let (mut left, mut right) = (
        region.alloc(64 * align, gpu.align()).unwrap(),
        region.alloc(64 * align, gpu.align()).unwrap(),
    );
    let (left_at, right_at) = (left.as_mut_ptr(), right.as_mut_ptr());
    for round in 0..100_u32 {
        let (from, to) = (rng.usize(0..32) * align, rng.usize(0..32) * align);
        let (len, key) = (rng.usize(1..=32 * align), u8::try_from(round).unwrap());
        for buf in [&mut left, &mut right] {
            rng.fill(buf.view_mut::<u8>().unwrap());
        }
        let (read, before) =
            (left.view::<u8>().unwrap().to_vec(), right.view::<u8>().unwrap().to_vec());
        let operands = [left.to_device(from..from + len), right.from_device(to..to + len)];
        let done = queue.run(operands, &words(len, key), WAIT).unwrap();
        [left, right] = done.buffers;
        let mut expected = before;
        expected[to..to + len].copy_from_slice(&xored(&read[from..from + len], key));
        assert_eq!(
            right.view::<u8>().unwrap(),
            expected,
            "round {round}: {len} bytes from {from} to {to}"
        );
        assert_eq!(left.view::<u8>().unwrap(), read, "round {round}: the input");
        // Both ways: what was the output is the input of the next round.
        mem::swap(&mut left, &mut right);
    }
    // The same bytes, all the time.
    let mut found = [left.as_mut_ptr(), right.as_mut_ptr()];
    found.sort_unstable();
    assert_eq!(found, [left_at.min(right_at), left_at.max(right_at)]);
}

#[test]
fn several_are_in_flight_and_end_in_order() {
    let Some(gpu) = device("jobs::several_are_in_flight_and_end_in_order") else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 20));
    let pool = region.pool(32, 4096).unwrap();
    let mut queue = Queue::new(keyed(&module), 8).unwrap();
    let mut rng = Rng::with_seed(2);
    let (mut most, mut told) = (0, 0);
    let mut expected = std::collections::VecDeque::new();
    for job in 0..200_u32 {
        let mut input = pool.take().unwrap();
        rng.fill(input.view_mut::<u8>().unwrap());
        let key = u8::try_from(job % 251).unwrap();
        expected.push_back(xored(input.view::<u8>().unwrap(), key));
        queue
            .submit([input.to_device(..), pool.take().unwrap().from_device(..)], &words(4096, key))
            .unwrap();
        most = most.max(expected.len());
        if expected.len() == 8 {
            let [_, output] = queue.wait(WAIT).unwrap().unwrap().buffers;
            assert_eq!(output.view::<u8>().unwrap(), expected.pop_front().unwrap(), "job {told}");
            told += 1;
        }
    }
    while let Some(done) = queue.wait(WAIT).unwrap() {
        let [_, output] = done.buffers;
        assert_eq!(output.view::<u8>().unwrap(), expected.pop_front().unwrap(), "job {told}");
        told += 1;
    }
    assert_eq!((most, told, pool.taken()), (8, 200, 0));
}

#[test]
fn a_chain_stays_the_devices() {
    let Some(gpu) = device("jobs::a_chain_stays_the_devices") else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    // Two kernels, each on a queue of its own.
    let (mut first, mut second) = (
        Queue::new(keyed(&module), 1).unwrap(),
        Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap(),
    );
    let [mut input, output] = [(); 2].map(|()| region.alloc(4096, gpu.align()).unwrap());
    Rng::with_seed(3).fill(input.view_mut::<u8>().unwrap());
    let expected = xored(input.view::<u8>().unwrap(), 0x0F ^ 0xFF);
    let before = region.stats().syncs;
    let [_input, middle] =
        run_there(&mut first, [input.to_device(..), output.from_device(..)], &words(4096, 0x0F));
    let [end] = run_there(&mut second, [middle.in_out(..)], &Launch::of(64, 64).with(&[]));
    assert_eq!(
        region.stats().syncs - before,
        2,
        "the two operands' way to the device, and nothing between the jobs"
    );
    assert_eq!(end.into_cpu().unwrap().view::<u8>().unwrap(), expected);
}

#[test]
fn scalars_of_one_and_two_words_arrive() {
    let Some(gpu) = device("jobs::scalars_of_one_and_two_words_arrive") else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
    let signature = Signature::new("add", &[from, to, Words(1), Words(2)])
        .unwrap()
        .sized(0, 8, &[0])
        .unwrap()
        .sized(1, 8, &[0])
        .unwrap();
    let signature =
        signature.launched(Launch { grid: [2, 2, 1], block: [8, 1, 1], shared_bytes: 0 });
    // SAFETY: an item reads `from[i]` and writes `to[i]`, where `i < count`.
    let mut queue =
        Queue::new(unsafe { OpenClKernel::new(&module, c"add", signature) }.unwrap(), 1).unwrap();
    let [mut input, output] = [(); 2].map(|()| region.alloc(128, gpu.align()).unwrap());
    input.view_at_mut::<u64>(..128).unwrap().copy_from_slice(&[5; 16]);
    let operands = [input.to_device(..128), output.from_device(..128)];
    let [_, output] = queue.run(operands, &[16, 0x89AB_CDEF, 0x0123_4567], WAIT).unwrap().buffers;
    assert_eq!(output.view_at::<u64>(..128).unwrap(), [0x0123_4567_89AB_CDEF + 5; 16]);
}

#[test]
fn a_job_that_was_forgotten_keeps_its_memory() {
    let Some(gpu) = device("jobs::a_job_that_was_forgotten_keeps_its_memory") else { return };
    let module = module(gpu);
    let block = {
        let region = region(gpu, 1 << 16);
        let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
        let mut buf = region.alloc(4096, gpu.align()).unwrap();
        buf.view_mut::<u8>().unwrap().fill(0x0F);
        let block = buf.as_mut_ptr();
        queue.submit([buf.in_out(..)], &Launch::of(64, 64).with(&[])).unwrap();
        mem::forget(queue);
        block
    };
    // The region is gone, the memory is not: the kernel may write it, and did.
    let deadline = std::time::Instant::now() + WAIT;
    // SAFETY: leaked, so that it stays mapped. No other code reads it.
    while unsafe { block.read_volatile() } != 0xF0 {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Many parts of a block go back and forth.
#[test]
fn many_parts_of_a_block_are_right() {
    let Some(gpu) = device("jobs::many_parts_of_a_block_are_right") else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 20));
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let len = gpu.align().bytes();
    let mut bufs: Vec<_> = (0..100).map(|_| region.alloc(len, gpu.align()).unwrap()).collect();
    let words = Launch::of(1, u32::try_from(len).unwrap()).with(&[]);
    for round in 0..4_u8 {
        for (buf, number) in mem::take(&mut bufs).into_iter().zip(0_u8..) {
            let mut buf = buf;
            buf.view_mut::<u8>().unwrap().fill(number ^ round);
            let [buf] = queue.run([buf.in_out(..)], &words, WAIT).unwrap().buffers;
            bufs.push(buf);
        }
        for (buf, number) in bufs.iter().zip(0_u8..) {
            assert!(
                buf.view::<u8>().unwrap().iter().all(|byte| *byte == !(number ^ round)),
                "buffer {number} in round {round}"
            );
        }
    }
}

/// A buffer is cut while the CPU has it: each part goes its own way, with what the CPU wrote.
#[test]
fn parts_of_what_came_back_as_one_are_right() {
    let Some(gpu) = device("jobs::parts_of_what_came_back_as_one_are_right") else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let words = Launch::of(32, 64).with(&[]);
    let whole = region.alloc(4096, gpu.align()).unwrap();
    let [whole] =
        queue.run([whole.in_out(..)], &Launch::of(64, 64).with(&[]), WAIT).unwrap().buffers;
    assert_eq!(whole.view::<u8>().unwrap(), [0xFF; 4096]);
    let (mut left, mut right) = whole.split_at(2048).unwrap();
    left.view_mut::<u8>().unwrap().fill(1);
    queue.submit([left.in_out(..)], &words).unwrap();
    // Written while the other part is the device's.
    right.view_mut::<u8>().unwrap().fill(2);
    let [left] = queue.wait(WAIT).unwrap().unwrap().buffers;
    let [right] = queue.run([right.in_out(..)], &words, WAIT).unwrap().buffers;
    assert_eq!(
        (left.view::<u8>().unwrap(), right.view::<u8>().unwrap()),
        (&[!1_u8; 2048][..], &[!2_u8; 2048][..])
    );
}

/// The code stays as long as a kernel of it, also where its name opened it.
#[test]
fn a_kernel_keeps_its_module() {
    let Some(gpu) = device("jobs::a_kernel_keeps_its_module") else { return };
    contigo::names::provide(&contigo_gpu::opencl::KIND).unwrap();
    let region = region(gpu, 1 << 16);
    let words = Launch::of(64, 64).with(&[]);
    let mut buf = region.alloc(4096, gpu.align()).unwrap();
    buf.view_mut::<u8>().unwrap().fill(0x0F);
    let module = module(gpu);
    let mut queue = Queue::new(in_place(&module.clone(), "flip", c"flip"), 1).unwrap();
    drop(module);
    let [buf] = queue.run([buf.in_out(..)], &words, WAIT).unwrap().buffers;
    assert_eq!(buf.view::<u8>().unwrap(), [0xF0; 4096]);
    let signature = Signature::new("flip", &[Operand(OperandSpec::in_out())]).unwrap();
    let owner = "opencl".parse::<DeviceName>().unwrap().open().unwrap();
    // SAFETY: the source above.
    let module = unsafe { owner.load(SOURCE.as_bytes(), &mut String::new()) }.unwrap();
    // SAFETY: it is launched with as many items as there are bytes.
    let kernel = unsafe { module.kernel(c"flip", signature) }.unwrap();
    drop((module, owner));
    let [buf] = Queue::new(kernel, 1).unwrap().run([buf.in_out(..)], &words, WAIT).unwrap().buffers;
    assert_eq!(buf.view::<u8>().unwrap(), [0x0F; 4096]);
}

/// A queue for each of two threads, over one region.
#[test]
fn two_threads_have_jobs_at_once() {
    let Some(gpu) = device("jobs::two_threads_have_jobs_at_once") else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 20));
    let pool = region.pool(16, 4096).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (module, pool) = (&module, &pool);
            scope.spawn(move || {
                let (mut rng, mut queue) =
                    (Rng::with_seed(seed), Queue::new(keyed(module), 1).unwrap());
                for round in 0..100 {
                    let mut input = pool.take().unwrap();
                    rng.fill(input.view_mut::<u8>().unwrap());
                    let expected = xored(input.view::<u8>().unwrap(), round);
                    let operands = [input.to_device(..), pool.take().unwrap().from_device(..)];
                    let [_, output] =
                        queue.run(operands, &words(4096, round), WAIT).unwrap().buffers;
                    assert_eq!(
                        output.view::<u8>().unwrap(),
                        expected,
                        "thread {seed}, round {round}"
                    );
                }
            });
        }
    });
    assert_eq!(pool.taken(), 0);
}

//! Jobs: right bit for bit, several in flight, and what is forgotten. Both interfaces have these
//! tests; `super` has the device and two kernels of each.

use super::{KIND, Kernel, LIMIT, opened};
use contigo::job::{Launch, Words};
use contigo::names::DeviceName;
use contigo::{Driver, Queue, Region};
use fastrand::Rng;
use std::collections::VecDeque;
use std::{mem, thread};

fn words(count: usize, value: u32) -> Words {
    let count = u32::try_from(count).unwrap();
    Launch::of(count.div_ceil(64), 64).with(&[count, value])
}

#[test]
fn jobs_of_any_size_and_offset_are_bit_exact() {
    let Some(gpu) = opened() else { return };
    let (mut queue, region) = (Queue::new(gpu.xor(), 1).unwrap(), gpu.region(1 << 20));
    let step = gpu.align().bytes();
    let [mut input, mut output] = [(); 2].map(|()| region.alloc(64 * step, gpu.align()).unwrap());
    let mut rng = Rng::with_seed(1);
    for job in 0..100 {
        let [from, to] = [(); 2].map(|()| rng.usize(0..32) * step);
        let (count, key) = (rng.usize(1..=32 * step / 4), rng.u32(..));
        for buf in [&mut input, &mut output] {
            buf.view_mut::<u32>().unwrap().fill_with(|| rng.u32(..));
        }
        let read = input.view::<u32>().unwrap().to_vec();
        let mut expected = output.view::<u32>().unwrap().to_vec();
        let words_read = read[from / 4..].iter().take(count);
        expected[to / 4..].iter_mut().zip(words_read).for_each(|(to, from)| *to = from ^ key);
        // An operand may end with the kernel's words, or behind them.
        let len = if job % 2 == 0 { 4 * count } else { 32 * step };
        let operands = [input.to_device(from..from + len), output.from_device(to..to + len)];
        let done = queue.run(operands, &words(count, key), LIMIT).unwrap();
        [input, output] = done.buffers.map(|buf| buf.whole());
        let is_right = output.view::<u32>().unwrap() == expected;
        assert!(is_right, "job {job}: {count} words from {from} to {to}");
        assert!(input.view::<u32>().unwrap() == read, "job {job}: the input");
        // Both ways: what was the output is the input of the next one.
        mem::swap(&mut input, &mut output);
    }
}

#[test]
fn jobs_in_flight_end_in_order() {
    let Some(gpu) = opened() else { return };
    let region = gpu.region(1 << 20);
    let pool = region.pool(16, 16_384).unwrap();
    let mut queue = Queue::new(gpu.xor(), Kernel::DEPTH).unwrap();
    assert_eq!((queue.capacity(), queue.driver().depth()), (8, 8));
    let (mut rng, mut expected, mut done) = (Rng::with_seed(2), VecDeque::<Vec<u32>>::new(), 0);
    for job in 0..201_u32 {
        // The last turn gives no job, and waits for all.
        while queue.is_full() || job == 200 {
            let Some(end) = queue.wait::<2>(LIMIT).unwrap() else { break };
            let [_, output] = end.buffers;
            let first = expected.pop_front().unwrap();
            assert!(output.view::<u32>().unwrap().starts_with(&first), "job {done}");
            done += 1;
        }
        if job < 200 {
            let count = rng.usize(1..=4_096);
            let (mut input, output) = (pool.take().unwrap(), pool.take().unwrap());
            input.view_mut::<u32>().unwrap().fill_with(|| rng.u32(..));
            let read = &input.view::<u32>().unwrap()[..count];
            expected.push_back(read.iter().map(|word| word ^ job).collect());
            let operands = [input.to_device(..4 * count), output.from_device(..4 * count)];
            queue.submit(operands, &words(count, job)).unwrap();
        }
    }
    assert_eq!((done, expected.len(), pool.taken()), (200, 0, 0));
}

/// One job's output is the next one's input, by another kernel, and the CPU looks at the end only.
#[test]
fn a_chain_stays_with_the_device() {
    let Some(gpu) = opened() else { return };
    let (mut first, mut second) =
        (Queue::new(gpu.xor(), 1).unwrap(), Queue::new(gpu.scale(), 1).unwrap());
    let region = gpu.region(64 << 10);
    let [mut input, mut output] = [(); 2].map(|()| region.alloc(4_096, gpu.align()).unwrap());
    for round in 1..50_u32 {
        let view = input.view_mut::<u32>().unwrap();
        view.iter_mut().zip(round..).for_each(|(word, value)| *word = value);
        let before = region.stats().syncs;
        first.submit([input.to_device(..), output.from_device(..)], &words(1_024, 7)).unwrap();
        let [from, middle] = first.wait_device(LIMIT).unwrap().unwrap().buffers;
        second.submit([middle.in_out(..)], &words(1_024, 5)).unwrap();
        let [end] = second.wait_device(LIMIT).unwrap().unwrap().buffers;
        // The two operands' way to the device, and nothing between the jobs.
        let syncs = if first.port().coherent { 0 } else { 2 };
        assert_eq!(region.stats().syncs - before, syncs, "round {round}");
        (input, output) = (from.into_cpu().unwrap(), end.into_cpu().unwrap());
        let mut found = output.view::<u32>().unwrap().iter().zip(round..);
        assert!(found.all(|(word, value)| *word == (value ^ 7) * 5 + 1), "round {round}");
    }
}

#[test]
fn kernels_on_threads_share_one_device() {
    let Some(gpu) = opened() else { return };
    let region = gpu.region(1 << 20);
    let pool = region.pool(8, 4_096).unwrap();
    thread::scope(|scope| {
        for key in 1..4_u32 {
            let (mut queue, pool) = (Queue::new(gpu.xor(), 1).unwrap(), &pool);
            scope.spawn(move || {
                for _ in 0..50 {
                    let (mut input, output) = (pool.take().unwrap(), pool.take().unwrap());
                    input.view_mut::<u32>().unwrap().fill(key << 8);
                    let operands = [input.to_device(..), output.from_device(..)];
                    let done = queue.run(operands, &words(1_024, key), LIMIT).unwrap();
                    let [_, output] = done.buffers;
                    assert_eq!(output.view::<u32>().unwrap(), [key << 8 | key; 1_024]);
                }
            });
        }
    });
    assert_eq!(pool.taken(), 0);
}

/// A queue that was forgotten keeps its jobs' buffers and their region; one that was dropped waits
/// for its jobs.
#[test]
fn forgotten_queue_keeps_dropped_returns() {
    let Some(gpu) = opened() else { return };
    let whole = gpu.region(64 << 10);
    let pool = whole.pool(4, 4_096).unwrap();
    let queue = || Queue::new(gpu.xor(), 1).unwrap();
    let mut dropped = queue();
    let operands = [pool.take().unwrap().to_device(..), pool.take().unwrap().from_device(..)];
    dropped.submit(operands, &words(1_024, 1)).unwrap();
    drop(dropped);
    assert_eq!(pool.taken(), 0);
    let (mut forgotten, mut input) = (queue(), pool.take().unwrap());
    input.view_mut::<u32>().unwrap().fill(5);
    let first = input.as_mut_ptr();
    let operands = [input.to_device(..), pool.take().unwrap().from_device(..)];
    forgotten.submit(operands, &words(1_024, 1)).unwrap();
    assert_eq!(pool.taken(), 2);
    mem::forget(forgotten);
    drop(pool);
    // The block stays: its object keeps its place on the bus, and its bytes stay mapped.
    let base = whole.base();
    drop(whole);
    // SAFETY: it was leaked, and the forgotten job reads it at most.
    assert_eq!(unsafe { first.read_volatile() }, 5);
    assert_ne!(gpu.region(64 << 10).base(), base);
}

/// The code stays as long as a kernel of it, also where its name opened it; the name has memory,
/// too.
#[test]
fn a_kernel_keeps_its_module() {
    let Some(gpu) = opened() else { return };
    contigo::names::provide(&KIND).unwrap();
    let owner = KIND.kind.parse::<DeviceName>().unwrap().open().unwrap();
    let region = Region::new(owner.memory(&KIND.kind.parse().unwrap(), 100).unwrap()).unwrap();
    let found = (region.name(), region.len_bytes(), region.line());
    assert_eq!(found, (KIND.kind, 1 << 16, gpu.align()));
    let mut buf = region.alloc(4_096, gpu.align()).unwrap();
    buf.view_mut::<u32>().unwrap().fill(1);
    let (code, entry, signature) = gpu.code_of_scale();
    let mut queue = Queue::new(gpu.scale(), 1).unwrap();
    assert_eq!(owner.port(), Some(*queue.port()));
    drop(gpu);
    let [buf] = queue.run([buf.in_out(..)], &words(1_024, 5), LIMIT).unwrap().buffers;
    assert_eq!(buf.view::<u32>().unwrap(), [6; 1_024]);
    // SAFETY: the code of this file's `super`.
    let module = unsafe { owner.load(&code, &mut String::new()) }.unwrap();
    // SAFETY: an item touches the words that the signature sizes.
    let kernel = unsafe { module.kernel(entry, signature) }.unwrap();
    drop((module, owner));
    let mut queue = Queue::new(kernel, 1).unwrap();
    let [buf] = queue.run([buf.in_out(..)], &words(1_024, 5), LIMIT).unwrap().buffers;
    assert_eq!(buf.view::<u32>().unwrap(), [31; 1_024]);
}

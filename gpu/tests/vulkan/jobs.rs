//! Shaders as jobs: results bit for bit, several in flight, and what is forgotten.

use super::{
    LIMIT, kernel, region,
    shaders::{LENGTH, SCALE, XOR, compiled, scale, xor},
    with_shader,
};
use contigo::{
    CpuBuf, Driver, Error, OperandSpec, Queue, Region,
    job::{Launch, Parameter::Operand, Signature},
    names::DeviceName,
};
use contigo_gpu::vulkan::VulkanKernel;
use fastrand::Rng;
use std::{collections::VecDeque, thread, time::Duration};

fn words(count: usize, value: u32) -> contigo::job::Words {
    let count = u32::try_from(count).unwrap();
    Launch::of(count.div_ceil(64), 64).with(&[count, value])
}

#[test]
fn jobs_of_any_size_are_bit_exact_both_ways() {
    let Some((gpu, module)) = with_shader("jobs::jobs_of_any_size_are_bit_exact_both_ways", XOR)
    else {
        return;
    };
    let mut queue = Queue::new(kernel(&module, xor()), 1).unwrap();
    let region = region(gpu, 1 << 20);
    let pool = region.pool(4, 65_536).unwrap();
    let mut rng = Rng::with_seed(1);
    for job in 0..100 {
        let (count, key) = (if job == 0 { 16_384 } else { rng.usize(1..=16_384) }, rng.u32(..));
        let (mut input, mut output) = (pool.take().unwrap(), pool.take().unwrap());
        input.view_mut::<u32>().unwrap().fill_with(|| rng.u32(..));
        output.view_mut::<u32>().unwrap().fill(0x5A5A_5A5A);
        let expected: Vec<_> = input.view::<u32>().unwrap().iter().map(|word| word ^ key).collect();
        // An operand may end with the shader's words, or behind them.
        let end = if job % 2 == 0 { 4 * count } else { 65_536 };
        let operands = [input.to_device(..end), output.from_device(..end)];
        let [input, output] = queue.run(operands, &words(count, key), LIMIT).unwrap().buffers;
        let output = output.whole();
        let found = output.view::<u32>().unwrap();
        assert!(found[..count] == expected[..count], "job {job} of {count} words");
        assert!(
            found[count..].iter().all(|word| *word == 0x5A5A_5A5A),
            "job {job} wrote behind its {count} words"
        );
        assert!(
            input
                .whole()
                .view::<u32>()
                .unwrap()
                .iter()
                .zip(&expected)
                .all(|(word, expected)| word ^ key == *expected)
        );
    }
    assert_eq!((queue.len(), pool.taken()), (0, 0));
}

#[test]
fn job_in_place_touches_no_neighbour() {
    let Some((gpu, module)) = with_shader("jobs::job_in_place_touches_no_neighbour", SCALE) else {
        return;
    };
    let mut queue = Queue::new(kernel(&module, scale()), 1).unwrap();
    let region = region(gpu, 64 << 10);
    let step = gpu.align().bytes();
    let mut whole = region.alloc(16 * step, gpu.align()).unwrap();
    let count = step / 4;
    for round in 0..3_u32 {
        for at in [0, 5, 15] {
            whole
                .view_mut::<u32>()
                .unwrap()
                .iter_mut()
                .zip(0..)
                .for_each(|(word, index)| *word = index + 1_000 * round);
            let launch = Launch {
                grid: [u32::try_from(count.div_ceil(64)).unwrap(), 2 + round, 1],
                block: [64, 1, 1],
                shared_bytes: 0,
            };
            let words = launch.with(&[u32::try_from(count).unwrap(), 3]);
            let [back] = queue
                .run([whole.in_out(at * step..(at + 1) * step)], &words, LIMIT)
                .unwrap()
                .buffers;
            whole = back.whole();
            for (index, word) in (0..).zip(whole.view::<u32>().unwrap()) {
                let before = index + 1_000 * round;
                let inside =
                    (at * count..(at + 1) * count).contains(&usize::try_from(index).unwrap());
                assert_eq!(
                    *word,
                    if inside { before * 3 + 2 + round } else { before },
                    "word {index}, slice {at}"
                );
            }
        }
    }
}

/// A shader sees its operand, and not the block that this is a part of.
#[test]
fn an_operand_is_as_long_for_the_shader() {
    let Some((gpu, module)) = with_shader("jobs::an_operand_is_as_long_for_the_shader", LENGTH)
    else {
        return;
    };
    let signature = Signature::new("length", &[Operand(OperandSpec::in_out())]).unwrap();
    let mut queue = Queue::new(kernel(&module, signature), 1).unwrap();
    let region = region(gpu, 64 << 10);
    let mut buffer = region.alloc(8_192, gpu.align()).unwrap();
    for words in [1, 2, 100, 1_024] {
        let operand = buffer.in_out(4_096..4_096 + 4 * words);
        let [back] = queue.run([operand], &Launch::of(1, 64).with(&[]), LIMIT).unwrap().buffers;
        buffer = back.whole();
        assert_eq!(usize::try_from(buffer.view::<u32>().unwrap()[1_024]).unwrap(), words);
    }
}

#[test]
fn jobs_in_flight_end_in_order() {
    let Some((gpu, module)) = with_shader("jobs::jobs_in_flight_end_in_order", XOR) else {
        return;
    };
    let region = region(gpu, 1 << 20);
    let pool = region.pool(16, 16_384).unwrap();
    let mut queue = Queue::new(kernel(&module, xor()), VulkanKernel::DEPTH).unwrap();
    assert_eq!(queue.capacity(), 8);
    let (mut rng, mut expected, mut done) = (Rng::with_seed(2), VecDeque::new(), 0);
    for job in 0..200_u32 {
        if queue.is_full() {
            check(queue.wait(LIMIT).unwrap().unwrap().buffers, &mut expected);
            done += 1;
        }
        let count = rng.usize(1..=4_096);
        let (mut input, output) = (pool.take().unwrap(), pool.take().unwrap());
        input.view_mut::<u32>().unwrap().fill_with(|| rng.u32(..));
        expected.push_back(
            input.view::<u32>().unwrap()[..count].iter().map(|word| word ^ job).collect::<Vec<_>>(),
        );
        queue
            .submit(
                [input.to_device(..4 * count), output.from_device(..4 * count)],
                &words(count, job),
            )
            .unwrap();
    }
    while let Some(end) = queue.wait(LIMIT).unwrap() {
        check(end.buffers, &mut expected);
        done += 1;
    }
    assert_eq!((done, expected.len(), pool.taken()), (200, 0, 0));
}

fn check([_, output]: [CpuBuf; 2], expected: &mut VecDeque<Vec<u32>>) {
    let expected = expected.pop_front().unwrap();
    assert!(
        output.view::<u32>().unwrap().starts_with(&expected),
        "a job of {} words",
        expected.len()
    );
}

/// One job's output is the next one's input, by another kernel, and the CPU looks at the end only.
#[test]
fn a_chain_stays_with_the_device() {
    let Some((gpu, module)) = with_shader("jobs::a_chain_stays_with_the_device", XOR) else {
        return;
    };
    let Some((_, scaling)) = with_shader("jobs::a_chain_stays_with_the_device", SCALE) else {
        return;
    };
    let (mut first, mut second) = (
        Queue::new(kernel(&module, xor()), 1).unwrap(),
        Queue::new(kernel(&scaling, scale()), 1).unwrap(),
    );
    let region = region(gpu, 64 << 10);
    let [mut input, mut output] = [(); 2].map(|()| region.alloc(4_096, gpu.align()).unwrap());
    for round in 1..50_u32 {
        input
            .view_mut::<u32>()
            .unwrap()
            .iter_mut()
            .zip(round..)
            .for_each(|(word, value)| *word = value);
        first.submit([input.to_device(..), output.from_device(..)], &words(1_024, 7)).unwrap();
        let [from, middle] = first.wait_device(LIMIT).unwrap().unwrap().buffers;
        let [back] = second.run([middle.in_out(..)], &words(1_024, 5), LIMIT).unwrap().buffers;
        (input, output) = (from.into_cpu().unwrap(), back);
        let found = output.view::<u32>().unwrap();
        assert!(
            found.iter().zip(round..).all(|(word, value)| *word == (value ^ 7) * 5 + 1),
            "round {round}"
        );
    }
}

#[test]
fn kernels_on_threads_share_one_queue() {
    let Some((gpu, module)) = with_shader("jobs::kernels_on_threads_share_one_queue", XOR) else {
        return;
    };
    let region = region(gpu, 1 << 20);
    let pool = region.pool(8, 4_096).unwrap();
    thread::scope(|scope| {
        for key in 1..4_u32 {
            let (module, pool) = (&module, &pool);
            scope.spawn(move || {
                let mut queue = Queue::new(kernel(module, xor()), 1).unwrap();
                for _ in 0..50 {
                    let (mut input, output) = (pool.take().unwrap(), pool.take().unwrap());
                    input.view_mut::<u32>().unwrap().fill(key << 8);
                    let operands = [input.to_device(..), output.from_device(..)];
                    let [_, output] =
                        queue.run(operands, &words(1_024, key), LIMIT).unwrap().buffers;
                    assert!(
                        output.view::<u32>().unwrap().iter().all(|word| *word == key << 8 | key)
                    );
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
    let Some((gpu, module)) = with_shader("jobs::forgotten_queue_keeps_dropped_returns", XOR)
    else {
        return;
    };
    let whole = region(gpu, 64 << 10);
    let pool = whole.pool(4, 4_096).unwrap();
    let queue = || Queue::new(kernel(&module, xor()), 1).unwrap();
    let mut dropped = queue();
    dropped
        .submit(
            [pool.take().unwrap().to_device(..), pool.take().unwrap().from_device(..)],
            &words(1_024, 1),
        )
        .unwrap();
    drop(dropped);
    assert_eq!(pool.taken(), 0);
    let (mut forgotten, mut input) = (queue(), pool.take().unwrap());
    input.view_mut::<u32>().unwrap().fill(5);
    let first = input.as_mut_ptr();
    forgotten
        .submit([input.to_device(..), pool.take().unwrap().from_device(..)], &words(1_024, 1))
        .unwrap();
    assert_eq!(pool.taken(), 2);
    std::mem::forget(forgotten);
    drop(pool);
    // The block stays: its object keeps its place on the bus, and its bytes stay mapped.
    let base = whole.base();
    drop(whole);
    // SAFETY: it was leaked, and the forgotten job reads it at most.
    assert_eq!(unsafe { first.read_volatile() }, 5);
    assert_ne!(region(gpu, 64 << 10).base(), base);
}

/// The code stays as long as a kernel of it, also where its name opened it.
#[test]
fn a_kernel_keeps_its_module() {
    const TEST: &str = "jobs::a_kernel_keeps_its_module";
    let Some((gpu, module)) = with_shader(TEST, SCALE) else { return };
    contigo::names::provide(&contigo_gpu::vulkan::KIND).unwrap();
    let region = region(gpu, 64 << 10);
    let mut buf = region.alloc(4_096, gpu.align()).unwrap();
    buf.view_mut::<u32>().unwrap().fill(1);
    let mut queue = Queue::new(kernel(&module.clone(), scale()), 1).unwrap();
    drop(module);
    let [buf] = queue.run([buf.in_out(..)], &words(1_024, 5), LIMIT).unwrap().buffers;
    assert_eq!(buf.view::<u32>().unwrap(), [6; 1_024]);
    let owner = "vulkan".parse::<DeviceName>().unwrap().open().unwrap();
    // SAFETY: glslangValidator made it.
    let module = unsafe { owner.load(&compiled(SCALE).unwrap(), &mut String::new()) }.unwrap();
    // SAFETY: the shader touches the elements that its signature sizes.
    let kernel = unsafe { module.kernel(c"main", scale()) }.unwrap();
    drop((module, owner));
    let [buf] = Queue::new(kernel, 1)
        .unwrap()
        .run([buf.in_out(..)], &words(1_024, 5), LIMIT)
        .unwrap()
        .buffers;
    assert_eq!(buf.view::<u32>().unwrap(), [31; 1_024]);
}

/// A job may be looked at again and again, and a queue works on behind a time limit of zero.
#[test]
fn a_look_that_comes_too_early_loses_nothing() {
    let Some((gpu, module)) = with_shader("jobs::a_look_that_comes_too_early_loses_nothing", XOR)
    else {
        return;
    };
    let mut queue = Queue::new(kernel(&module, xor()), 1).unwrap();
    let region = region(gpu, 1 << 20);
    let [input, output] = [(); 2].map(|()| region.alloc(256 << 10, gpu.align()).unwrap());
    queue.submit([input.to_device(..), output.from_device(..)], &words(65_536, 9)).unwrap();
    let mut looks = 0_u32;
    let [_, output] = loop {
        if let Some(done) = queue.wait(Duration::from_micros(1)).unwrap() {
            break done.buffers;
        }
        looks += 1;
        assert!(looks < 10_000_000);
    };
    assert!(output.view::<u32>().unwrap().iter().all(|word| *word == 9));
    assert_eq!((queue.driver().name(), queue.driver().depth()), ("xor", 8));
}

/// An FPGA gets none of this memory, and a shader none of an FPGA's.
#[test]
fn no_other_device_understands_its_addresses() {
    let Some((gpu, module)) = with_shader("jobs::no_other_device_understands_its_addresses", XOR)
    else {
        return;
    };
    let board = contigo::sim::SimBoard::new(1);
    let theirs = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = theirs.pool(2, 4_096).unwrap();
    let mut queue = Queue::new(kernel(&module, xor()), 1).unwrap();
    let operands = [pool.take().unwrap().to_device(..), pool.take().unwrap().from_device(..)];
    let refused = queue.submit(operands, &words(64, 0)).unwrap_err();
    assert!(
        matches!(refused.error, Error::WrongBus { port: "vulkan", memory: contigo::Bus::Sim(_) }),
        "{refused:?}"
    );
    drop(refused);
    assert_eq!(pool.taken(), 0);
    assert_ne!(gpu.bus(), board.port().bus);
}

//! Shaders as jobs: results bit for bit, several in flight, and what is forgotten.

use super::{
    LIMIT, kernel, region,
    shaders::{LENGTH, SCALE, XOR, scale, xor},
    with_shader,
};
use contigo::{
    Align, Attempt, CpuBuf, DevBuf, Driver, Engine, Error, OperandSpec, Pool, Queue, Region,
    kernel::{Launch, Parameter::Operand, Signature},
};
use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanMemory};
use fastrand::Rng;
use std::{collections::VecDeque, thread, time::Duration};

fn words(count: usize, value: u32) -> contigo::kernel::Words {
    let count = u32::try_from(count).unwrap();
    Launch::of(count.div_ceil(64), 64).with(&[count, value])
}

#[test]
fn jobs_of_every_size_are_right_bit_for_bit_in_both_directions() {
    let Some((gpu, module)) = with_shader("jobs::jobs_of_every_size_are_right_bit_for_bit_in_both_directions", XOR) else { return };
    let mut engine = Engine::new(kernel(&module, xor())).unwrap();
    let region = region(gpu, 1 << 20);
    let pool = Pool::<4>::new(region.carve(4 * 65_536, gpu.align()).unwrap(), 65_536).unwrap();
    let mut rng = Rng::with_seed(1);
    for job in 0..100 {
        let (count, key) = (if job == 0 { 16_384 } else { rng.usize(1..=16_384) }, rng.u32(..));
        let (mut input, mut output) = (pool.take().unwrap(), pool.take().unwrap());
        input.view_mut::<u32>().unwrap().fill_with(|| rng.u32(..));
        output.view_mut::<u32>().unwrap().fill(0x5A5A_5A5A);
        let expected: Vec<_> = input.view::<u32>().unwrap().iter().map(|word| word ^ key).collect();
        // An operand may end with the shader's words, or behind them.
        let end = if job % 2 == 0 { 4 * count } else { 65_536 };
        let running = engine.start([input.to_device(..end), output.from_device(..end)], &words(count, key)).unwrap();
        let [input, output]: [CpuBuf<'_>; 2] = running.wait(LIMIT).unwrap().buffers;
        let output = output.whole();
        let found = output.view::<u32>().unwrap();
        assert!(found[..count] == expected[..count], "job {job} of {count} words");
        assert!(found[count..].iter().all(|word| *word == 0x5A5A_5A5A), "job {job} wrote behind its {count} words");
        assert!(input.whole().view::<u32>().unwrap().iter().zip(&expected).all(|(word, expected)| word ^ key == *expected));
    }
    assert_eq!((engine.is_busy(), pool.taken()), (false, 0));
}

#[test]
fn a_job_changes_its_operand_in_place_at_its_offset_and_no_neighbour() {
    let Some((gpu, module)) = with_shader("jobs::a_job_changes_its_operand_in_place_at_its_offset_and_no_neighbour", SCALE) else { return };
    let mut engine = Engine::new(kernel(&module, scale())).unwrap();
    let region = region(gpu, 64 << 10);
    let step = gpu.align().bytes();
    let mut whole = region.carve(16 * step, gpu.align()).unwrap().into_buf();
    let count = step / 4;
    for round in 0..3_u32 {
        for at in [0, 5, 15] {
            whole.view_mut::<u32>().unwrap().iter_mut().zip(0..).for_each(|(word, index)| *word = index + 1_000 * round);
            let launch = Launch { grid: [u32::try_from(count.div_ceil(64)).unwrap(), 2 + round, 1], block: [64, 1, 1], shared_bytes: 0 };
            let job = engine.start([whole.in_out(at * step..(at + 1) * step)], &launch.with(&[u32::try_from(count).unwrap(), 3])).unwrap();
            let [back] = job.wait(LIMIT).unwrap().buffers;
            whole = back.whole();
            for (index, word) in (0..).zip(whole.view::<u32>().unwrap()) {
                let before = index + 1_000 * round;
                let inside = (at * count..(at + 1) * count).contains(&usize::try_from(index).unwrap());
                assert_eq!(*word, if inside { before * 3 + 2 + round } else { before }, "word {index}, slice {at}");
            }
        }
    }
}

/// A shader sees its operand, and not the block that this is a part of.
#[test]
fn an_operand_is_as_long_for_the_shader() {
    let Some((gpu, module)) = with_shader("jobs::an_operand_is_as_long_for_the_shader", LENGTH) else { return };
    let signature = Signature::new("length", &[Operand(OperandSpec::in_out())]).unwrap();
    let mut engine = Engine::new(kernel(&module, signature)).unwrap();
    let region = region(gpu, 64 << 10);
    let mut buffer = region.carve(8_192, gpu.align()).unwrap().into_buf();
    for words in [1, 2, 100, 1_024] {
        let job = engine.start([buffer.in_out(4_096..4_096 + 4 * words)], &Launch::of(1, 64).with(&[])).unwrap();
        let [back] = job.wait(LIMIT).unwrap().buffers;
        buffer = back.whole();
        assert_eq!(usize::try_from(buffer.view::<u32>().unwrap()[1_024]).unwrap(), words);
    }
}

#[test]
fn several_jobs_are_in_flight_and_end_in_their_order() {
    let Some((gpu, module)) = with_shader("jobs::several_jobs_are_in_flight_and_end_in_their_order", XOR) else { return };
    let region = region(gpu, 1 << 20);
    let pool = Pool::<16>::new(region.carve(16 * 16_384, gpu.align()).unwrap(), 16_384).unwrap();
    let mut queue: Queue<'_, _, { VulkanKernel::DEPTH }, 2> = Queue::new(kernel(&module, xor())).unwrap();
    assert_eq!(queue.depth(), 8);
    let (mut rng, mut expected, mut done) = (Rng::with_seed(2), VecDeque::new(), 0);
    for job in 0..200_u32 {
        if queue.is_full() {
            check(queue.next(LIMIT).unwrap().unwrap().buffers, &mut expected);
            done += 1;
        }
        let count = rng.usize(1..=4_096);
        let (mut input, output) = (pool.take().unwrap(), pool.take().unwrap());
        input.view_mut::<u32>().unwrap().fill_with(|| rng.u32(..));
        expected.push_back(input.view::<u32>().unwrap()[..count].iter().map(|word| word ^ job).collect::<Vec<_>>());
        queue.push([input.to_device(..4 * count), output.from_device(..4 * count)], &words(count, job)).unwrap();
    }
    while let Some(end) = queue.next(LIMIT).unwrap() {
        check(end.buffers, &mut expected);
        done += 1;
    }
    assert_eq!((done, expected.len(), pool.taken()), (200, 0, 0));
}

fn check([_, output]: [CpuBuf<'_>; 2], expected: &mut VecDeque<Vec<u32>>) {
    let expected = expected.pop_front().unwrap();
    assert!(output.view::<u32>().unwrap().starts_with(&expected), "a job of {} words", expected.len());
}

/// One job's output is the next one's input, by another kernel, and the CPU looks at the end only.
#[test]
fn a_chain_stays_with_the_device() {
    let Some((gpu, module)) = with_shader("jobs::a_chain_stays_with_the_device", XOR) else { return };
    let Some((_, scaling)) = with_shader("jobs::a_chain_stays_with_the_device", SCALE) else { return };
    let (mut first, mut second) = (Engine::new(kernel(&module, xor())).unwrap(), Engine::new(kernel(&scaling, scale())).unwrap());
    let region = region(gpu, 64 << 10);
    let [mut input, mut output] = [(); 2].map(|()| region.carve(4_096, gpu.align()).unwrap().into_buf());
    for round in 1..50_u32 {
        input.view_mut::<u32>().unwrap().iter_mut().zip(round..).for_each(|(word, value)| *word = value);
        let job = first.start([input.to_device(..), output.from_device(..)], &words(1_024, 7)).unwrap();
        let [from, middle]: [DevBuf<'_>; 2] = job.wait_device(LIMIT).unwrap().buffers;
        let job = second.start([middle.in_out(..)], &words(1_024, 5)).unwrap();
        let [back] = job.wait(LIMIT).unwrap().buffers;
        (input, output) = (from.into_cpu().unwrap(), back);
        let found = output.view::<u32>().unwrap();
        assert!(found.iter().zip(round..).all(|(word, value)| *word == (value ^ 7) * 5 + 1), "round {round}");
    }
}

#[test]
fn kernels_on_several_threads_share_the_device_s_queue() {
    let Some((gpu, module)) = with_shader("jobs::kernels_on_several_threads_share_the_device_s_queue", XOR) else { return };
    let region = region(gpu, 1 << 20);
    let pool = Pool::<8>::new(region.carve(8 * 4_096, gpu.align()).unwrap(), 4_096).unwrap();
    thread::scope(|scope| {
        for key in 1..4_u32 {
            let (module, pool) = (&module, &pool);
            scope.spawn(move || {
                let mut engine = Engine::new(kernel(module, xor())).unwrap();
                for _ in 0..50 {
                    let (mut input, output) = (pool.take().unwrap(), pool.take().unwrap());
                    input.view_mut::<u32>().unwrap().fill(key << 8);
                    let job = engine.start([input.to_device(..), output.from_device(..)], &words(1_024, key)).unwrap();
                    let [_, output] = job.wait(LIMIT).unwrap().buffers;
                    assert!(output.view::<u32>().unwrap().iter().all(|word| *word == key << 8 | key));
                }
            });
        }
    });
    assert_eq!(pool.taken(), 0);
}

/// A job that was forgotten keeps its buffers and its region; one that was dropped is waited for.
#[test]
fn what_was_forgotten_stays_and_what_was_dropped_comes_back() {
    let Some((gpu, module)) = with_shader("jobs::what_was_forgotten_stays_and_what_was_dropped_comes_back", XOR) else { return };
    let whole = region(gpu, 64 << 10);
    let pool = Pool::<4>::new(whole.carve(4 * 4_096, gpu.align()).unwrap(), 4_096).unwrap();
    let operands = || [pool.take().unwrap().to_device(..), pool.take().unwrap().from_device(..)];
    let mut engine = Engine::new(kernel(&module, xor())).unwrap();
    drop(engine.start(operands(), &words(1_024, 1)).unwrap());
    assert_eq!(pool.taken(), 0);
    std::mem::forget(engine.start(operands(), &words(1_024, 1)).unwrap());
    assert_eq!(pool.taken(), 2);
    drop(engine);
    drop(pool);
    // The block stays: its object keeps its place on the bus, and its bytes stay mapped.
    let (base, first) = (whole.base(), first_byte(&whole, gpu));
    drop(whole);
    // SAFETY: it was leaked, and the forgotten job has ended long ago (its kernel was dropped).
    assert_eq!(unsafe { first.read_volatile() }, 0);
    assert_ne!(region(gpu, 64 << 10).base(), base);
}

fn first_byte(region: &Region<VulkanMemory>, gpu: &VulkanGpu) -> *const u8 {
    let contigo::BaseAddr::Dev(base) = region.base() else { panic!("{:?}", region.base()) };
    region.host_ptr_of(&gpu.port(), base).unwrap().as_ptr()
}

/// A job may be looked at again and again, and an engine works on behind a time limit of zero.
#[test]
fn a_look_that_comes_too_early_loses_nothing() {
    let Some((gpu, module)) = with_shader("jobs::a_look_that_comes_too_early_loses_nothing", XOR) else { return };
    let mut engine = Engine::new(kernel(&module, xor())).unwrap();
    let region = region(gpu, 1 << 20);
    let [input, output] = [(); 2].map(|()| region.carve(256 << 10, gpu.align()).unwrap().into_buf());
    let mut running = engine.start([input.to_device(..), output.from_device(..)], &words(65_536, 9)).unwrap();
    let mut looks = 0_u32;
    let done = loop {
        match running.wait_for(Duration::from_micros(1)).unwrap() {
            Attempt::Done(done) => break done,
            Attempt::Pending(again) => (running, looks) = (again, looks + 1),
        }
        assert!(looks < 10_000_000);
    };
    assert!(done.buffers[1].view::<u32>().unwrap().iter().all(|word| *word == 9));
    assert_eq!((engine.driver().name(), engine.driver().depth()), ("xor", 8));
}

/// An FPGA gets none of this memory, and a shader none of an FPGA's.
#[test]
fn no_other_device_understands_its_addresses() {
    let Some((gpu, module)) = with_shader("jobs::no_other_device_understands_its_addresses", XOR) else { return };
    let board = contigo::sim::SimBoard::new(1);
    let theirs = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = Pool::<2>::new(theirs.carve(8_192, Align::PAGE).unwrap(), 4_096).unwrap();
    let mut engine = Engine::new(kernel(&module, xor())).unwrap();
    let operands = [pool.take().unwrap().to_device(..), pool.take().unwrap().from_device(..)];
    let refused = engine.start(operands, &words(64, 0)).unwrap_err();
    assert!(matches!(refused.error, Error::WrongBus { port: "vulkan", memory: contigo::Bus::Sim(_) }), "{refused:?}");
    drop(refused);
    assert_eq!(pool.taken(), 0);
    assert_ne!(gpu.bus(), board.port().bus);
}

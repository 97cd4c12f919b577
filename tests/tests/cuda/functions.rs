//! Kernels that have no type of their own, several launches in a stream at once.

use super::{block, clean, clean_but_for, code, driver, jobs::loaded};
use contigo::{
    Align, AnyDriver, Driver, Engine, Error, Operand, OperandSpec, Pool, Queue, Region,
    cuda::{CudaFunction, Gpu, Launch, Parameter, Signature},
};
use fake_cuda::{Config, Controls, Function, code as answers};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(1);
const DEPTH: usize = CudaFunction::DEPTH;
const SLOT: usize = 256;

/// `fill_bytes(dst, value, len)`, whose argument words are a launch, the value and the length.
fn signature() -> Signature {
    let output = Parameter::Operand(OperandSpec::from_device());
    Signature::new("fill_bytes", &[output, Parameter::Words(1), Parameter::Words(2)]).unwrap().sized(0, 1, &[1]).unwrap()
}

/// The words of a job that writes `len` bytes.
fn words(value: u8, len: u32) -> contigo::cuda::Words {
    Launch::of(2, 32).with(&[value.into(), len, 0])
}

/// Runs `act` with the kernel and a pool on a driver like `config`; they are dropped before the
/// counters are read.
fn with_function(config: &Config, act: impl FnOnce(CudaFunction<'_>, &Pool<'_, 16>, &Controls)) -> Controls {
    let (controls, cuda) = driver(config);
    {
        let gpu = Gpu::primary(&cuda, 0).unwrap();
        let module = loaded(&gpu);
        let region = Region::new(block(&gpu).unwrap()).unwrap();
        let pool = Pool::<16>::new(region.carve(16 * SLOT, Align::DLPACK).unwrap(), SLOT).unwrap();
        // SAFETY: `examples/gemm8/kernels/gemm8.cu`: it writes `len` bytes at the operand.
        let function = unsafe { CudaFunction::new(module.module(), c"fill_bytes", signature()) }.unwrap();
        act(function, &pool, &controls);
    }
    controls
}

fn output<'p>(pool: &'p Pool<'_, 16>) -> [Operand<'p>; 1] {
    [pool.take().unwrap().from_device(..)]
}

/// The next job's slot and the first byte that it wrote. All of its bytes are the same.
fn next<'p, D: Driver>(queue: &mut Queue<'p, D, 16, 1>) -> Option<(usize, u8)> {
    let done = queue.next_words(LIMIT).unwrap()?;
    let [buf] = done.buffers.into_array().ok().unwrap();
    let buf = buf.into_cpu().unwrap();
    let bytes = buf.view::<u8>().unwrap();
    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    Some((done.completion.slot, bytes[0]))
}

#[test]
fn a_queue_keeps_as_many_launches_in_the_stream_as_it_has_events() {
    let controls = with_function(&Config { kernel_polls: 3, ..Config::default() }, |function, pool, controls| {
        // As C and Python have it: one type for every driver.
        let mut queue = Queue::<_, 16, 1>::new(AnyDriver::new(function).unwrap()).unwrap();
        assert_eq!((queue.depth(), queue.driver().name()), (DEPTH, "fill_bytes"));
        // The value of a job and its slot, by its number.
        let job = |number: usize| (number % DEPTH, u8::try_from(number % 251).unwrap());
        let (mut pushed, mut popped) = (0, 0);
        for _ in 0..20 {
            // Nothing is looked at in between, so no launch goes on meanwhile.
            while !queue.is_full() {
                let slot = queue.push_words(output(pool), &words(job(pushed).1, 256)).unwrap();
                assert_eq!(slot, job(pushed).0);
                pushed += 1;
            }
            assert_eq!((pushed - popped, controls.counters().launches), (DEPTH, pushed as u64));
            let full = queue.push_words(output(pool), &words(0, 256)).unwrap_err();
            assert_eq!(full.error, Error::QueueFull { depth: DEPTH });
            drop(full);
            // Three stay.
            while queue.len() > 3 {
                assert_eq!(next(&mut queue), Some(job(popped)));
                popped += 1;
            }
        }
        assert_eq!((queue.len(), pool.taken()), (3, 3));
        assert_eq!((queue.counts().completed, queue.counts().failed), (20 * 5, 0));
    });
    clean(&controls);
}

/// A kernel cannot be stopped: what was launched before a stop has ended after it, and can be had.
#[test]
fn what_was_in_the_stream_at_a_stop_comes_out_and_never_again() {
    let controls = with_function(&Config::default(), |function, pool, _| {
        let mut queue = Queue::<_, 16, 1>::new(function).unwrap();
        for value in 1..=5 {
            queue.push_words(output(pool), &words(value, 256)).unwrap();
        }
        queue.stop().unwrap();
        assert_eq!([next(&mut queue), next(&mut queue)], [Some((0, 1)), Some((1, 2))]);
        // The others are taken back without a look: nobody is told of them later.
        assert_eq!([(); 4].map(|()| queue.take_back().map(|job| job.slot)), [Some(2), Some(3), Some(4), None]);
        assert_eq!(pool.taken(), 0);
        for value in 11..=13 {
            queue.push_words(output(pool), &words(value, 256)).unwrap();
        }
        assert_eq!([(); 4].map(|()| next(&mut queue)), [Some((0, 11)), Some((1, 12)), Some((2, 13)), None]);
        // Dropped with launches in the stream, it waits for them.
        queue.push_words(output(pool), &words(1, 256)).unwrap();
        drop(queue);
        assert_eq!(pool.taken(), 0);
    });
    clean(&controls);
}

/// Its memory is used by one launch after the other.
#[test]
fn copies_of_several_jobs_do_not_mix() {
    let (controls, cuda) = driver(&Config { kernel_polls: 3, ..Config::default() });
    {
        let gpu = Gpu::primary(&cuda, 0).unwrap();
        let module = loaded(&gpu);
        let region = Region::new(block(&gpu).unwrap()).unwrap();
        let pool = Pool::<16>::new(region.carve(16 * SLOT, Align::DLPACK).unwrap(), SLOT).unwrap();
        let new = |capacity_bytes: &[usize]| {
            // SAFETY: as in `with_function`.
            unsafe { contigo::cuda::CopyingFunction::new(module.module(), c"fill_bytes", signature(), capacity_bytes) }
        };
        assert!(matches!(new(&[SLOT; 2]), Err(Error::Argument { value: 2, min: 1, max: 1, .. })));
        let mut queue = Queue::<_, 16, 1>::new(new(&[SLOT]).unwrap()).unwrap();
        for value in 1..=8 {
            queue.push_words(output(&pool), &words(value, 256)).unwrap();
        }
        for value in 1..=8 {
            assert_eq!(next(&mut queue), Some((usize::from(value) - 1, value)));
        }
        assert_eq!(queue.driver().bytes_copied(), 8 * SLOT as u64);
    }
    clean(&controls);
}

#[test]
fn words_that_a_kernel_cannot_take_are_refused() {
    let controls = with_function(&Config::default(), |function, pool, controls| {
        let mut engine = Engine::<_, 1>::new(function).unwrap();
        let mut refusal = |words: &[u32]| engine.start(output(pool), words).unwrap_err().error;
        let count = |value, n| Error::Argument { name: "the count of argument words", value, min: n, max: n, multiple_of: 1 };
        assert_eq!((refusal(&[]), refusal(&[1; 9]), refusal(&[1; 100])), (count(0, 10), count(9, 10), count(65, 10)));
        for place in 0..6 {
            let mut words = words(7, 256);
            words[place] = 0;
            assert!(matches!(refusal(&words), Error::Argument { name: "blocks and threads of a launch", value: 0, .. }));
        }
        let have_bytes = SLOT;
        assert_eq!(refusal(&words(7, 257)), Error::BufferSize { index: 0, need_bytes: 257, have_bytes });
        let wide = Launch::of(1, 1).with(&[7, 1, 1]);
        assert_eq!(refusal(&wide), Error::BufferSize { index: 0, need_bytes: 1 << 32 | 1, have_bytes });
        assert_eq!((controls.counters().launches, pool.taken()), (0, 0));
        // The low byte of the value counts.
        let [buf] = engine.start(output(pool), &Launch::of(1, 1).with(&[0x107, 100, 0])).unwrap().wait(LIMIT).unwrap().buffers;
        assert_eq!(buf.view_at::<u8>(..100).unwrap(), [7; 100]);
    });
    clean(&controls);
}

#[test]
fn a_launch_that_is_refused_stops_the_queue_and_loses_nothing() {
    for function in [Function::cuLaunchKernel, Function::cuEventRecord] {
        let controls = with_function(&Config::default().failing(function, 3, answers::INVALID_VALUE), |kernel, pool, _| {
            let mut queue = Queue::<_, 16, 1>::new(kernel).unwrap();
            for value in 1..=2 {
                queue.push_words(output(pool), &words(value, 256)).unwrap();
            }
            let refused = queue.push_words(output(pool), &words(3, 256)).unwrap_err();
            assert_eq!((code(refused.error).1, refused.buffers.is_some(), queue.len()), (answers::INVALID_VALUE, true, 2));
            drop(refused);
            assert_eq!([(); 3].map(|()| next(&mut queue)), [Some((0, 1)), Some((1, 2)), None]);
            queue.push_words(output(pool), &words(4, 256)).unwrap();
            assert_eq!(next(&mut queue), Some((0, 4)));
            assert_eq!(pool.taken(), 0);
        });
        clean_but_for(&controls, &[function]);
    }
}

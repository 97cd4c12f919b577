//! Kernels that have no type of their own, several launches in a stream at once.

use super::code;
use super::jobs::{Rig, rig_with};
use contigo::cuda::{CopyingFunction, CudaFunction, Launch, Parameter, Signature};
use contigo::job::AnyDriver;
use contigo::{Driver, Error, Operand, OperandSpec, Pool, Queue};
use fake_cuda::{Config, Function, code as answers};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(1);
/// How many launches the stream has at once.
const DEPTH: usize = 8;
/// More than are launched at once.
const JOBS: usize = DEPTH + 4;
const SLOT: usize = 256;

/// `fill_bytes(dst, value, len)`, whose argument words are a launch, the value and the length.
fn signature() -> Signature {
    let output = Parameter::Operand(OperandSpec::from_device());
    Signature::new("fill_bytes", &[output, Parameter::Words(1), Parameter::Words(2)])
        .unwrap()
        .sized(0, 1, &[1])
        .unwrap()
}

/// The words of a job that writes `len` bytes.
fn words(value: u8, len: u32) -> contigo::cuda::Words {
    Launch::of(2, 32).with(&[value.into(), len, 0])
}

fn rig(config: &Config) -> Rig {
    rig_with(config, 16, SLOT)
}

fn kernel(rig: &Rig) -> CudaFunction {
    // SAFETY: `examples/gemm8/kernels/gemm8.cu`: it writes `len` bytes at the operand.
    unsafe { CudaFunction::new(rig.module.module(), c"fill_bytes", signature()) }.unwrap()
}

fn output(pool: &Pool) -> [Operand; 1] {
    [pool.take().unwrap().from_device(..)]
}

/// The next job's number and the first byte that it wrote. All of its bytes are the same.
fn next(queue: &mut Queue<impl Driver>) -> Option<(u64, u8)> {
    let done = queue.wait(LIMIT).unwrap()?;
    let [buf] = done.buffers;
    let bytes = buf.view::<u8>().unwrap();
    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    Some((done.job, bytes[0]))
}

#[test]
fn queue_keeps_as_many_launches_as_events() {
    let rig = rig(&Config { kernel_polls: 3, ..Config::default() });
    let (function, pool) = (kernel(&rig), &rig.pool);
    // As C and Python have it: one type for every driver.
    let mut queue = Queue::new(AnyDriver::new(function).unwrap(), JOBS).unwrap();
    assert_eq!(
        (queue.capacity(), queue.driver().depth(), queue.driver().name()),
        (JOBS, DEPTH, "fill_bytes")
    );
    // A job and the value that it writes, by its number.
    let job = |number: u64| (number, u8::try_from(number % 251).unwrap());
    let (mut pushed, mut popped) = (0, 0);
    for _ in 0..20 {
        // Nothing is looked at in between, so no launch goes on meanwhile.
        while !queue.is_full() {
            assert_eq!(queue.submit(output(pool), &words(job(pushed).1, 256)).unwrap(), pushed);
            pushed += 1;
        }
        // The others wait until there is an event for them.
        assert_eq!(
            (pushed - popped, rig.controls.counters().launches),
            (JOBS as u64, popped + DEPTH as u64)
        );
        let full = queue.submit(output(pool), &words(0, 256)).unwrap_err();
        assert_eq!(full.error, Error::QueueFull { depth: JOBS });
        drop(full);
        // Three stay.
        while queue.len() > 3 {
            assert_eq!(next(&mut queue), Some(job(popped)));
            popped += 1;
        }
    }
    assert_eq!((queue.len(), pool.taken()), (3, 3));
    assert_eq!((queue.counts().completed, queue.counts().failed), (20 * (JOBS as u64 - 3), 0));
}

/// A kernel cannot be stopped: what was launched before a stop has ended after it, and can be had.
#[test]
fn stopped_stream_work_comes_out_once() {
    let rig = rig(&Config::default());
    let (function, pool) = (kernel(&rig), &rig.pool);
    let mut queue = Queue::new(function, JOBS).unwrap();
    for value in 1..=5 {
        queue.submit(output(pool), &words(value, 256)).unwrap();
    }
    queue.stop().unwrap();
    assert_eq!([next(&mut queue), next(&mut queue)], [Some((0, 1)), Some((1, 2))]);
    // The others are taken back without a poll: the queue does not report them later.
    assert_eq!(
        [(); 4].map(|()| queue.take_back::<1>().unwrap().map(|cancelled| cancelled.job)),
        [Some(2), Some(3), Some(4), None]
    );
    assert_eq!(pool.taken(), 0);
    for value in 11..=13 {
        queue.submit(output(pool), &words(value, 256)).unwrap();
    }
    assert_eq!(
        [(); 4].map(|()| next(&mut queue)),
        [Some((5, 11)), Some((6, 12)), Some((7, 13)), None]
    );
    // Dropped with launches in the stream, it waits for them.
    queue.submit(output(pool), &words(1, 256)).unwrap();
    drop(queue);
    assert_eq!(pool.taken(), 0);
}

/// Its memory is used by one launch after the other.
#[test]
fn copies_of_several_jobs_do_not_mix() {
    let rig = rig(&Config { kernel_polls: 3, ..Config::default() });
    let new = |capacity_bytes: &[usize]| {
        // SAFETY: as in `kernel`.
        unsafe {
            CopyingFunction::new(rig.module.module(), c"fill_bytes", signature(), capacity_bytes)
        }
    };
    assert!(matches!(new(&[SLOT; 2]), Err(Error::Argument { value: 2, min: 1, max: 1, .. })));
    let mut queue = Queue::new(new(&[SLOT]).unwrap(), JOBS).unwrap();
    for value in 1..=8 {
        queue.submit(output(&rig.pool), &words(value, 256)).unwrap();
    }
    for value in 1..=8 {
        assert_eq!(next(&mut queue), Some((u64::from(value) - 1, value)));
    }
    assert_eq!(queue.driver().bytes_copied(), 8 * SLOT as u64);
}

#[test]
fn words_that_a_kernel_cannot_take_are_refused() {
    let rig = rig(&Config::default());
    let (function, pool) = (kernel(&rig), &rig.pool);
    let mut queue = Queue::new(function, 1).unwrap();
    let mut refusal = |words: &[u32]| queue.submit(output(pool), words).unwrap_err().error;
    let count = |value, min, max| Error::Argument {
        name: "the count of argument words",
        value,
        min,
        max,
        multiple_of: 1,
    };
    for value in [0, 9, 11, 64] {
        assert_eq!(refusal(&vec![1; value]), count(value as u64, 10, 10));
    }
    assert_eq!(refusal(&[1; 100]), count(100, 0, 64), "more than any job has");
    for place in 0..6 {
        let mut words = words(7, 256);
        words[place] = 0;
        assert!(matches!(
            refusal(&words),
            Error::Argument { name: "blocks and threads of a launch", value: 0, .. }
        ));
    }
    let have_bytes = SLOT;
    assert_eq!(
        refusal(&words(7, 257)),
        Error::BufferSize { index: 0, need_bytes: 257, have_bytes }
    );
    let wide = Launch::of(1, 1).with(&[7, 1, 1]);
    assert_eq!(refusal(&wide), Error::BufferSize { index: 0, need_bytes: 1 << 32 | 1, have_bytes });
    assert_eq!((rig.controls.counters().launches, pool.taken()), (0, 0));
    // The low byte of the value counts.
    let [buf] =
        queue.run(output(pool), &Launch::of(1, 1).with(&[0x107, 100, 0]), LIMIT).unwrap().buffers;
    assert_eq!(buf.view_at::<u8>(..100).unwrap(), [7; 100]);
}

#[test]
fn refused_launch_stops_queue_loses_nothing() {
    for function in [Function::cuLaunchKernel, Function::cuEventRecord] {
        let mut rig = rig(&Config::default().failing(function, 3, answers::INVALID_VALUE));
        rig.controls.provoked = vec![function];
        let (mut queue, pool) = (Queue::new(kernel(&rig), JOBS).unwrap(), &rig.pool);
        for value in 1..=2 {
            queue.submit(output(pool), &words(value, 256)).unwrap();
        }
        let refused = queue.submit(output(pool), &words(3, 256)).unwrap_err();
        assert_eq!(
            (code(refused.error).1, refused.buffers.is_some(), queue.len()),
            (answers::INVALID_VALUE, true, 2)
        );
        drop(refused);
        assert_eq!([(); 3].map(|()| next(&mut queue)), [Some((0, 1)), Some((1, 2)), None]);
        queue.submit(output(pool), &words(4, 256)).unwrap();
        assert_eq!(next(&mut queue), Some((2, 4)));
        assert_eq!(pool.taken(), 0);
    }
}

//! The measured part: memory, queue, images through it. Nothing here asks the heap for anything.

use super::{
    DemoError,
    digits::{Digit, PIXELS},
    network::{self, HIDDEN, INPUTS, LAYER1, LAYER2, Layer, SCORES},
};
use crate::{Gemm8, SimGemm8};
use contigo::{
    Align, Backend, CpuBuf, DevBuf, Driver, Error, Operand, Port, Queue, Region,
    job::QueueCounts,
    sim::SimBoard,
    trace::Stats,
    types::{BaseAddr, timeout_us},
};
use core::time::Duration;
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

/// Slots that images and scores pass through: the image at the engine, the next one, and one for
/// scores; one to spare.
const SLOTS: usize = 4;
/// One image's scores: sixteen int32.
const SCORE_BYTES: usize = SCORES * size_of::<i32>();
/// A slot holds an image or its scores.
const SLOT_BYTES: usize = if PIXELS > SCORE_BYTES { PIXELS } else { SCORE_BYTES };
/// The plan adds up to 2,048 + 128 + 512 + 64 (weights and biases) + 64 (hidden) + 4 · 64 (slots)
/// bytes with lines of 64 bytes. With lines of 256, the longest of any processor here, it adds up
/// to 4,352.
pub const REGION_BYTES: usize = 8 * 1024;
/// Virtual time that one job may take: a job here takes some microseconds.
const JOB_TIMEOUT: Duration = Duration::from_millis(100);

/// One image's work, prepared before anything is measured.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The image.
    pub digit: Digit,
    /// The reference's scores.
    pub expected: [i32; SCORES],
}

/// The result of one image.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// The network's answer.
    pub answer: u8,
    /// How many of its scores differ from the reference.
    pub wrong_scores: usize,
    /// From "parsed into its slot" to "scores visible to the CPU", its wait for the engine
    /// included.
    pub latency_ns: u64,
}

/// The facts about the memory and the engine at the end.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The kind of the memory.
    pub backend: &'static str,
    /// Its address.
    pub base: BaseAddr,
    /// Its size.
    pub len_bytes: usize,
    /// The engine's way to it.
    pub port: Port,
    /// The bytes copied and synchronised.
    pub stats: Stats,
    /// The engine's jobs.
    pub jobs: QueueCounts,
    /// The engine's name.
    pub engine: &'static str,
    /// Virtual time of the whole run, where time is.
    pub device_ns: Option<u64>,
}

/// Streams the images of `tasks` through a simulated engine on `board`, which reaches `memory`
/// through `port`, and counts in `done`. Asks the heap for nothing.
///
/// # Errors
/// [`DemoError::Runtime`] where memory or engine fail; [`DemoError::Data`] where the data are not
/// what they should be.
pub fn stream<B: Backend + 'static>(
    memory: B,
    board: &SimBoard,
    port: Port,
    tasks: &[Task],
    outcomes: &mut [Outcome],
    done: &AtomicUsize,
) -> Result<Measured, DemoError> {
    let device = SimGemm8::new(board, port);
    let queue = Queue::new(Gemm8::open_simulated(device.window()?)?, 1)?;
    let measured = stream_through(memory, queue, JOB_TIMEOUT, tasks, outcomes, done)?;
    Ok(Measured { engine: "simulated gemm8", device_ns: Some(board.now_ns()), ..measured })
}

/// As [`stream`], on a GPU: `kernel` is `gemm8` there, called `engine`, and `memory` what it shares
/// with the CPU.
///
/// # Errors
/// As [`stream`].
#[cfg(any(feature = "cuda", feature = "opencl", feature = "vulkan"))]
pub fn stream_on_gpu<B: Backend + 'static, F: Driver>(
    memory: B,
    kernel: crate::gpu::Gemm8Kernel<F>,
    engine: &'static str,
    tasks: &[Task],
    outcomes: &mut [Outcome],
    done: &AtomicUsize,
) -> Result<Measured, DemoError> {
    /// Real time; the first launch may compile.
    const LIMIT: Duration = Duration::from_secs(10);
    let measured = stream_through(memory, Queue::new(kernel, 1)?, LIMIT, tasks, outcomes, done)?;
    Ok(Measured { engine, ..measured })
}

/// As [`stream`], through `queue`, of any `gemm8`. A job may take `timeout`.
///
/// # Errors
/// As [`stream`].
pub fn stream_through<B: Backend + 'static, D: Driver>(
    memory: B,
    mut queue: Queue<D>,
    timeout: Duration,
    tasks: &[Task],
    outcomes: &mut [Outcome],
    done: &AtomicUsize,
) -> Result<Measured, DemoError> {
    let region = Region::new(memory)?;
    let pool = region.pool(SLOTS, SLOT_BYTES)?;
    // Decoded where the device reads them. The CPU has no view of an operand, and after their first
    // job they stay with the device: their caches are cleaned once.
    let [mut weights1, mut bias1] = layer_in(&region, LAYER1)?;
    let [mut weights2, mut bias2] = layer_in(&region, LAYER2)?;
    let mut hidden = region.alloc(HIDDEN, Align::LINE)?.from_device(..HIDDEN);

    let [job1, job2] = network::jobs()?;

    let parse = |task: &Task| -> Result<(CpuBuf, Instant), DemoError> {
        let mut image = pool.take()?;
        task.digit.decode(image.view_at_mut(..PIXELS)?)?;
        Ok((image, Instant::now()))
    };
    let mut upcoming = tasks.iter();
    let mut parsed = upcoming.next().map(parse).transpose()?;
    for (task, outcome) in tasks.iter().zip(outcomes) {
        let Some((image, since)) = parsed.take() else { break };

        queue.submit([image.to_device(..INPUTS), weights1, bias1, hidden], &job1.words())?;
        let [image, weights, bias, between] = ended(&mut queue, timeout)?;
        drop(image); // its slot is free for another
        (weights1, bias1) = (weights.to_device(..), bias.to_device(..));

        // Layer 2 reads the bytes that layer 1 wrote: no CPU and no cache maintenance between them.
        let scores = pool.take()?.from_device(..SCORE_BYTES);
        queue.submit([between.to_device(..), weights2, bias2, scores], &job2.words())?;
        parsed = upcoming.next().map(parse).transpose()?; // the next image, while the device works
        let [between, weights, bias, scores] = ended(&mut queue, timeout)?;
        (hidden, weights2, bias2) =
            (between.from_device(..), weights.to_device(..), bias.to_device(..));

        let scores = scores.into_cpu()?;
        let scores: &[i32] = scores.view_at(..SCORE_BYTES)?;
        outcome.latency_ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        outcome.wrong_scores =
            scores.iter().zip(&task.expected).filter(|(found, expected)| found != expected).count();
        outcome.answer = scores.first_chunk().map_or(0, network::answer);
        done.fetch_add(1, Ordering::Relaxed);
    }

    Ok(Measured {
        backend: region.name(),
        base: region.base(),
        len_bytes: region.len_bytes(),
        port: *queue.port(),
        stats: region.stats(),
        jobs: queue.counts(),
        engine: queue.driver().name(),
        device_ns: None,
    })
}

/// The buffers of the queue's only job, still on the device's side. A job that is late is stopped
/// when the queue is dropped.
fn ended<D: Driver>(queue: &mut Queue<D>, timeout: Duration) -> Result<[DevBuf; 4], DemoError> {
    let timeout_us = timeout_us(timeout)?;
    Ok(queue.wait_device(timeout)?.ok_or(Error::Timeout { timeout_us })?.buffers)
}

/// One layer's weights and bias, parsed from text straight into memory that the device reads.
fn layer_in(region: &Region, layer: Layer) -> Result<[Operand; 2], DemoError> {
    let mut weights = region.alloc(layer.weight_bytes(), Align::LINE)?;
    let mut bias = region.alloc(layer.bias_bytes(), Align::LINE)?;
    layer.decode_weights(weights.view_at_mut(..layer.weight_bytes())?)?;
    layer.decode_bias(bias.view_at_mut(..layer.bias_bytes())?)?;
    Ok([weights.to_device(..layer.weight_bytes()), bias.to_device(..layer.bias_bytes())])
}

#[cfg(test)]
mod tests {
    use super::super::{digits, reference::Reference};
    use super::*;
    use contigo::sim::Faults;
    use std::vec::Vec;

    fn tasks(images: usize) -> Result<Vec<Task>, DemoError> {
        let reference = Reference::new()?;
        let task = |digit: Digit| {
            let mut pixels = [0; PIXELS];
            digit.decode(&mut pixels)?;
            Ok(Task { digit, expected: reference.scores(&pixels)? })
        };
        digits::held_out().take(images).map(task).collect()
    }

    /// How many scores of each image are wrong, with the facts of the run.
    fn streamed<const N: usize>(
        board: &SimBoard,
        len_bytes: usize,
        port: Port,
        tasks: &[Task],
    ) -> Result<([usize; N], Measured), DemoError> {
        let mut outcomes = [Outcome::default(); N];
        let (memory, done) = (board.memory(len_bytes)?, AtomicUsize::new(0));
        let measured = stream(memory, board, port, tasks, &mut outcomes, &done)?;
        assert_eq!(done.into_inner(), N);
        Ok((outcomes.map(|outcome| outcome.wrong_scores), measured))
    }

    #[test]
    fn one_wrong_score_is_found() -> Result<(), DemoError> {
        let (board, mut tasks) = (SimBoard::new(1), tasks(3)?);
        if let Some(score) = tasks.get_mut(1).and_then(|task| task.expected.last_mut()) {
            *score += 1;
        }
        let (wrong, _) = streamed(&board, REGION_BYTES, board.port(), &tasks)?;
        assert_eq!(wrong, [0, 1, 0]);
        Ok(())
    }

    #[test]
    fn a_coherent_port_needs_no_maintenance() -> Result<(), DemoError> {
        let board = SimBoard::new(1);
        let (wrong, measured) = streamed(&board, REGION_BYTES, board.coherent_port(), &tasks(3)?)?;
        assert_eq!(wrong, [0; 3]);
        assert_eq!(measured.stats.syncs, 2, "the region's first touch, and nothing after it");
        Ok(())
    }

    #[test]
    fn failing_device_ends_run_with_its_error() -> Result<(), DemoError> {
        let faults = Faults { error: 1000, ..Faults::NONE };
        let board = SimBoard::with(1, faults);
        let ended = streamed::<1>(&board, REGION_BYTES, board.port(), &tasks(1)?);
        assert!(
            matches!(ended, Err(DemoError::Runtime(Error::Fault { device: "gemm8", .. }))),
            "{:?}",
            ended.err()
        );
        Ok(())
    }

    #[test]
    fn memory_that_is_too_small_says_so() -> Result<(), DemoError> {
        let board = SimBoard::new(1);
        let ended = streamed::<1>(&board, 1024, board.port(), &tasks(1)?);
        assert!(
            matches!(ended, Err(DemoError::Runtime(Error::Exhausted { capacity_bytes: 1024, .. }))),
            "{:?}",
            ended.err()
        );
        Ok(())
    }
}

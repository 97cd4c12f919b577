#![allow(unsafe_code, reason = "a driver is opened on a core")]
//! A camera that never waits, through the project's own core: a job is a frame of a stream.

use super::jobs::{QUIET_US, STOP_EVERY, TIMEOUT_US};
use super::{Setting, TableError, Tally};
use crate::RtlConfig;
use crate::s2mm::{DEPTH, S2mm, WINDOW_BYTES};
use contigo::hw::mmio::{ReadWrite, Register};
use contigo::job::Frame;
use contigo::sim::SimBoard;
use contigo::sim::stream::{SourceConfig, StreamConfig, packet};
use contigo::{Error, Region, Stream};
use fastrand::Rng;
use std::time::Duration;

const FRAME_BYTES: usize = 512;
/// At this rate no memory of the table is too slow, and the program is never late.
const SOURCE: SourceConfig = SourceConfig {
    packets: u32::MAX,
    packet_bytes: FRAME_BYTES,
    bytes_per_us: 50,
    gap_ns: 0,
    short_every: None,
    marks_last: true,
    goes_on: false,
};
/// A frame has 10.24 µs: a stop comes at any moment of it.
const FRAME_US: u32 = 11;
/// The camera keeps so many bytes: the core takes every beat.
const FIFO_BYTES: usize = 64;

/// Frames through the core; with a `fault` it makes that mistake (`cores/s2mm/top.v`), and with 0
/// none. After one in [`STOP_EVERY`] the camera is stopped, and starts again.
///
/// A frame is right where it is the next one, is whole, and has its end reported. None is lost at
/// this rate.
///
/// # Errors
/// [`TableError::NoCore`]; [`TableError::Runtime`]: a frame failed, or none came.
pub fn run(fault: u32, setting: &Setting, jobs: u64) -> Result<Tally, TableError> {
    const FAULT: Register<ReadWrite> = Register::at(0x2C);
    let board = SimBoard::new(setting.seed);
    board.allow_wrong_accesses(true)?;
    let stream = StreamConfig::source(SOURCE, FIFO_BYTES);
    let device = setting.device_with(
        &board,
        "s2mm",
        RtlConfig { window_bytes: WINDOW_BYTES, stream, ..RtlConfig::default() },
    )?;
    let window = device.window()?;
    // SAFETY: nothing runs, and this is the core's only window.
    let driver = unsafe {
        FAULT.write(&window, fault);
        S2mm::open(window)?
    };
    let region = Region::new(board.memory(DEPTH * FRAME_BYTES)?)?;
    let mut camera = Stream::new(driver, region.pool(DEPTH, FRAME_BYTES)?, DEPTH, &[])?;
    let (mut tally, mut rng) = (Tally::default(), Rng::with_seed(setting.seed));
    // After a start the next number is not known: the camera went on.
    let mut next = None;
    camera.start()?;
    for number in 0..jobs {
        let frame = camera
            .next(Duration::from_micros(TIMEOUT_US.into()))?
            .ok_or(Error::Timeout { timeout_us: TIMEOUT_US })?;
        tally.jobs += 1;
        tally.mismatches += u64::from(!is_right(&frame, &mut next)?);
        camera.give_back(frame.buf)?;
        if number % STOP_EVERY == STOP_EVERY - 1 {
            device.run_for(rng.u32(..FRAME_US))?;
            camera.stop()?;
            device.run_for(QUIET_US)?;
            tally.stops += 1;
            while let Some(frame) = camera.next(Duration::ZERO)? {
                tally.mismatches += u64::from(!is_right(&frame, &mut next)?);
            }
            next = None;
            camera.start()?;
        }
    }
    camera.stop()?;
    drop(camera);
    device.run_for(QUIET_US)?;
    tally.judge(&board, &device)?;
    Ok(tally)
}

fn is_right(frame: &Frame, next: &mut Option<u32>) -> Result<bool, TableError> {
    // The bytes that the core says it wrote.
    let seen = frame.buf.view::<u8>()?;
    let number = packet::number(seen);
    let in_turn = next.is_none_or(|next| number == Some(next));
    *next = number.map(|number| number.wrapping_add(1));
    let is_whole = seen.len() == FRAME_BYTES && frame.last == Some(true);
    Ok(in_turn && is_whole && number.is_some_and(|number| packet::is(number, seen)))
}

//! The guide's "Event loops": two cameras and a copy in one thread, with one sleep for all three.
//! `tests/tests/linux/dev_node/several.rs` runs it.

use contigo::{CpuBuf, Driver, Error, Pool, Queue, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::BorrowedFd;

/// Copies each frame of both cameras, whose queues have buffers already, and gives the copies to
/// `copied`, until there were `left`.
#[rustfmt::skip]
pub(crate) fn run(
    cameras: &mut [Queue<impl Driver>; 2],
    copy: &mut Queue<impl Driver>,
    pool: &Pool,
    mut left: usize,
    mut copied: impl FnMut(CpuBuf),
) -> Result<()> {
    for _ in 0..1_000 { // a bound: so many sleeps
        // First arm all: what ends from here on ends the sleep.
        let [first, second] = &*cameras;
        let bells = [first.arm_irq()?, second.arm_irq()?, copy.arm_irq()?];
        // Then poll all, for what ended before.
        for camera in cameras.iter_mut() {
            while !copy.is_full() && let Some(done) = camera.try_next()? {
                let [frame] = done.buffers;
                copy.submit([frame.to_device(..), pool.take()?.from_device(..)], &[])?;
                camera.submit([pool.take()?.from_device(..)], &[])?;
            }
        }
        while let Some(done) = copy.try_next()? {
            let [_frame, copy] = done.buffers; // the frame goes back to the pool
            copied(copy);
            left = left.saturating_sub(1);
        }
        if left == 0 {
            return Ok(());
        }
        sleep(bells)?;
    }
    Err(Error::Timeout { timeout_us: 20_000 })
}

/// Sleeps until one of three devices has raised its interrupt, 20 ms at most: hardware can lose
/// one, and a simulated device has no file (`None`).
fn sleep(bells: [Option<i32>; 3]) -> Result<()> {
    // SAFETY: they are the queues' own files, which stay open as long as the queues.
    let bells = bells.into_iter().flatten().map(|raw| unsafe { BorrowedFd::borrow_raw(raw) });
    let mut files: Vec<_> = bells.map(|bell| PollFd::new(bell, PollFlags::POLLIN)).collect();
    match poll(&mut files, PollTimeout::from(20_u8)) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(errno) => Err(Error::Os { call: "poll", errno: errno as i32 }),
    }
}

//! The guide's "Event loops": a queue in tokio.
//! `tests/tests/linux/dev_node/event_loop.rs` runs it.

use contigo::{CpuBuf, Driver, Queue};
use std::{io, os::fd::BorrowedFd, time::Duration};
use tokio::{io::unix::AsyncFd, time::timeout};

/// Gives the buffers of each job to `ended`, until the queue is empty.
#[rustfmt::skip]
pub(crate) async fn until_empty(queue: &mut Queue<impl Driver>, mut ended: impl FnMut([CpuBuf; 2])) -> io::Result<()> {
    let raw = queue.arm_irq()?.ok_or(io::ErrorKind::Unsupported)?; // simulated, or polled: it has none
    // SAFETY: it is the driver's own, which the queue keeps open.
    let bell = unsafe { BorrowedFd::borrow_raw(raw) }.try_clone_to_owned()?;
    // SAFETY: the clone stays open as long as its owner, and its number stays.
    let bell = unsafe { AsyncFd::register(bell) }?;
    loop {
        queue.arm_irq()?;
        while let Some(done) = queue.try_next()? {
            ended(done.buffers);
        }
        if queue.is_empty() {
            return Ok(());
        }
        // A time that is over is no error: an interrupt can get lost, so it looks again.
        if let Ok(rung) = timeout(Duration::from_millis(20), bell.readable()).await {
            rung?.clear_ready();
        }
    }
}

//! docs/jobs.md, on a simulated board whose device hangs, is reset, and works.

use contigo::{
    Driver, Pool, Queue, Region, Result, Stream,
    drivers::zdma::Zdma,
    names::{Attach, DeviceName},
};
use core::time::Duration;

#[rustfmt::skip]
pub(crate) fn run() -> Result<()> {
    let device = "sim:zdma".parse::<DeviceName>()?.open()?;
    let region = Region::new(device.memory(&"sim".parse()?, 1 << 16)?)?;
    let pool = region.pool(16, 1024)?;
    // SAFETY: the model is a ZDMA.
    let core = unsafe { Zdma::simple(device.attach(Attach::default())?)? };
    let mut queue = Queue::new(core, 8)?;       // at most 8 jobs, whatever the core takes at once
    let (mut from, to) = (pool.take()?, pool.take()?);
    from.view_mut::<u8>()?.fill(7);
    let operands = [from.to_device(..64), to.from_device(..64)];
    let [from, to] = queue.run(operands, &[], Duration::from_millis(20))?.buffers;
    assert_eq!(to.view_at::<u8>(..64)?, [7; 64]);
    let operands = [from.to_device(..64), to.from_device(..64)];
    match queue.run(operands, &[], Duration::from_millis(20)) {
        Ok(done) => drop(done.buffers),
        Err(failed) => {
            let Some([from, to]) = failed.buffers else { return Err(failed.error) }; // in the queue
            drop((from.into_cpu()?, to.into_cpu()?)); // views again; written in part, perhaps
        }
    }
    device.reset_simulated()?;
    queue.clear()?;
    while !queue.is_full() {
        queue.submit([pool.take()?.to_device(..64), pool.take()?.from_device(..64)], &[])?;
    }
    while !queue.is_empty() {
        let Some(done) = queue.wait(Duration::from_millis(20))? else { continue }; // late: it goes on
        let [_from, _to] = done.buffers;
    }
    Ok(())
}

/// The sum of a camera's bytes: any driver whose jobs have one operand, which the device writes.
pub(crate) fn stream(driver: impl Driver, frames: Pool) -> Result<u32> {
    let mut sum = 0;
    let mut camera = Stream::new(driver, frames, 8, &[])?; // 8 buffers of the pool with the device
    camera.start()?;
    for _ in 0..1_000 {
        let Some(frame) = camera.next(Duration::from_millis(100))? else { continue }; // late: it goes on
        sum += frame.buf.view::<u8>()?.iter().map(|&byte| u32::from(byte)).sum::<u32>();
        camera.give_back(frame.buf)?; // the device's again
    }
    camera.stop()?;
    Ok(sum)
}

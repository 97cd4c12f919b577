//! Page "Jobs", on a simulated board whose device hangs, is reset, and works.

use contigo::{
    Align, Engine, Error, Frames, Pool, Queue, Region, Result, Stream, TypedDriver,
    drivers::zdma::Zdma,
    names::{Attach, DeviceName},
};
use core::time::Duration;

pub(crate) fn run() -> Result<()> {
    let device = "sim:zdma".parse::<DeviceName>()?.open()?;
    let region = Region::new(device.memory(&"sim".parse()?, 1 << 16)?)?;
    let pool = Pool::<8>::new(region.carve(8 * 1024, Align::LINE)?, 1024)?;
    // SAFETY: the model is a ZDMA.
    let mut copy = Engine::new(unsafe { Zdma::simple(device.attach(Attach::default())?)? })?;
    let (mut from, to) = (pool.take()?, pool.take()?);
    from.view_mut::<u8>()?.fill(7);
    let job = copy.start([from.to_device(..64), to.from_device(..64)], &())?;
    let [from, to] = job.wait(Duration::from_millis(20))?.buffers;
    assert_eq!(to.view_at::<u8>(..64)?, [7; 64]);
    let job = copy.start([from.to_device(..64), to.from_device(..64)], &())?;
    match job.wait(Duration::from_millis(20)) {
        Ok(done) => drop(done.buffers),
        Err(failed) => {
            let Some([from, to]) = failed.buffers else { return Err(failed.error) }; // leaked
            drop((from.into_cpu()?, to.into_cpu()?)); // views again; written in part, perhaps
        }
    }
    device.reset_simulated()?;
    copy.recover()?;
    let driver = copy.into_driver();
    let mut queue: Queue<'_, _, 8, 2> = Queue::new(driver)?; // 8 places, 2 operands a job
    while !queue.is_full() {
        queue.push([pool.take()?.to_device(..64), pool.take()?.from_device(..64)], &())?;
    }
    let Some(done) = queue.next(Duration::from_millis(20))? else { return Ok(()) };
    drop(done);
    if queue.is_empty() { Ok(()) } else { Err(Error::Busy) }
}

/// The sum of a camera's bytes: any driver whose jobs have one operand, which the device writes.
pub(crate) fn stream<'p, D: TypedDriver<1>, P: Frames<'p>>(driver: D, frames: P, args: &D::Args) -> Result<u32> {
    let mut sum = 0;
    let mut camera: Stream<'_, _, _, 8> = Stream::new(driver, frames, args)?; // 8 places; frames: a pool
    camera.start()?;
    for _ in 0..1_000 {
        let Some(frame) = camera.next(Duration::from_millis(100))? else { continue }; // late: it goes on
        sum += frame.buf.view::<u8>()?.iter().map(|&byte| u32::from(byte)).sum::<u32>();
        camera.give_back(frame.buf)?; // the device's again
    }
    camera.stop()?;
    Ok(sum)
}

//! README: a kernel of Vitis HLS in ten lines, on a simulated board.

use contigo::{
    Align, Engine, Pool, Region, Result,
    drivers::ap_ctrl::{ApCtrl, describe},
    names::{Attach, DeviceName},
};
use core::time::Duration;

const MAP: &[u8] = include_bytes!("copy.json");

#[rustfmt::skip]
pub(crate) fn run() -> Result<()> {
    let device = "sim:ap_ctrl".parse::<DeviceName>()?.open()?;          // "guard:copy@40000000"
    let region = Region::new(device.memory(&"sim".parse()?, 1 << 16)?)?; // "guard"
    let pool = Pool::<8>::new(region.carve(8 * 4096, Align::LINE)?, 4096)?;
    let map = describe::any(MAP, "")?.build()?;                 // JSON, or what the tools write
    // SAFETY: the device is this kernel, and nobody else drives it.
    let mut copy = Engine::new(unsafe { ApCtrl::open(device.attach(Attach::default())?, map)? })?;
    let (mut from, to) = (pool.take()?, pool.take()?);
    from.view_mut::<u8>()?.fill(7);
    let job = copy.start([from.to_device(..1000), to.from_device(..1000)], &[1000])?;
    let [_, to] = job.wait(Duration::from_millis(20))?.buffers; // bounded; caches are done
    assert_eq!(to.view_at::<u8>(..1000)?, [7; 1000]);
    Ok(())
}

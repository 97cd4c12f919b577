//! docs/memories.md.

use contigo::{
    Region, Result,
    names::{DeviceName, MemoryName},
};

#[rustfmt::skip]
pub(crate) fn run() -> Result<()> {
    let device = "sim:zdma@7".parse::<DeviceName>()?.open()?;
    let region = Region::new(device.memory(&"sim".parse()?, 1 << 20)?)?;    // of a device
    let region = Region::new("sim:8".parse::<MemoryName>()?.open(1 << 20)?)?; // and its owner, if any
    Ok(())
}

//! Page "Memories, ports and caches".

use contigo::{
    Region, Result,
    names::{DeviceName, MemoryName},
};
use core::cell::OnceCell;

#[rustfmt::skip]
pub(crate) fn run() -> Result<()> {
    let device = "sim:zdma@7".parse::<DeviceName>()?.open()?;
    let region = Region::new(device.memory(&"sim".parse()?, 1 << 20)?)?;    // of a device
    let alone = OnceCell::new();                                            // its owner, if any
    let region = Region::new("sim:8".parse::<MemoryName>()?.open_in(&alone, 1 << 20)?)?;
    Ok(())
}

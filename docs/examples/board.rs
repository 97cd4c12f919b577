//! docs/boards.md and docs/stopping.md: compiled, and not run.

use contigo::{
    Error, Queue, Result,
    design::kernel,
    drivers::ap_ctrl::ApCtrl,
    linux::{dev_node::DmaBuf, memory::UDmaBuf},
    names::{Attach, DeviceName},
};
use contigo_boards::zynq7000::HP0;
use core::time::Duration;

const HEADER: &[u8] = include_bytes!("xcopy_hw.h");
const NO_DEV_NODE: Error = Error::Unsupported {
    what: "this device is not behind the module contigo",
    fix: "open it as contigo:NAME",
};

pub(crate) fn on_hp0() -> Result<()> {
    use contigo::Direction::{FromDevice, ToDevice};
    let map = kernel::any(HEADER, "")?;
    let map = map.direction("from", ToDevice).length("from", "n");
    let map = map.direction("to", FromDevice).length("to", "n").build()?;
    let device = "contigo:copy@40000000".parse::<DeviceName>()?.open()?;
    // SAFETY: in this bitstream the kernel's master is wired to HP0.
    let attached = unsafe { device.attach_wired(HP0, Attach::default())? };
    // SAFETY: the node is this kernel's, and no other code drives it.
    let mut copy = Queue::new(unsafe { ApCtrl::open(attached, map)? }, 8)?;
    let dev_node = device.dev_node().ok_or(NO_DEV_NODE)?;
    // SAFETY: the contigo device is this queue's device, and window 0 its registers.
    unsafe { copy.arm(dev_node, 0)? };
    copy.stop()?;
    Ok(())
}

pub(crate) fn with_a_longer_stop() -> Result<()> {
    let map = kernel::any(HEADER, "")?.build()?;
    let device = "contigo:copy@40000000".parse::<DeviceName>()?.open()?;
    // SAFETY: as above.
    let driver = unsafe { ApCtrl::open(device.attach_wired(HP0, Attach::default())?, map)? };
    // The longest job of this kernel takes two seconds.
    let driver = driver.stops_within(Duration::from_secs(2));
    drop(driver);
    Ok(())
}

pub(crate) fn a_block_of_u_dma_buf() -> Result<()> {
    use contigo::Region;
    use std::os::fd::AsFd as _;
    let block = Region::new(UDmaBuf::open("udmabuf0")?)?;
    let device = "contigo:copy@40000000".parse::<DeviceName>()?.open()?;
    let dev_node = device.dev_node().ok_or(NO_DEV_NODE)?;
    // SAFETY: nothing is allocated from the block itself, and it outlives the import.
    let exported = unsafe { block.export()? };
    // SAFETY: no other code uses its bytes.
    let region = Region::new(unsafe { DmaBuf::import(dev_node, exported.as_fd())? })?;
    // SAFETY: in this bitstream the kernel's master is wired to HP0.
    let attached = unsafe { device.attach_wired(HP0, Attach::default())? };
    // SAFETY: the node is this kernel's, and no other code drives it.
    let copy =
        Queue::new(unsafe { ApCtrl::open(attached, kernel::any(HEADER, "")?.build()?)? }, 8)?;
    // SAFETY: the contigo device is this queue's device, and window 0 its registers.
    unsafe { copy.arm(dev_node, 0)? };
    drop((region, copy));
    Ok(())
}

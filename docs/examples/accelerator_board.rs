//! docs/my-accelerator.md, on a PYNQ-Z2: compiled, and not run.

use contigo::{
    Align, Error, Queue, Region, Result,
    drivers::axi_dma::{AxiDma, AxiDmaConfig},
    names::{Attach, DeviceName},
};
use contigo_boards::zynq7000::HP0;

#[rustfmt::skip]
pub(crate) fn stream() -> Result<()> {
    let dma = "contigo:axi_dma@40400000".parse::<DeviceName>()?.open()?;
    let memory = Region::new(dma.memory(&"contigo".parse()?, 1 << 20)?)?;
    let ring = memory.alloc(2 * 4096, Align::PAGE)?;
    let config = AxiDmaConfig { length_bits: 23, ..AxiDmaConfig::default() }; // as in the block design
    // SAFETY: in this bitstream the core's masters are wired to HP0.
    let attached = unsafe { dma.attach_wired(HP0, Attach::default())? };
    // SAFETY: the node is an AXI DMA like this, and no other code drives it.
    let stream = Queue::new(unsafe { AxiDma::open(attached, config, Some(ring))? }, 8)?;
    let dev_node = dma.dev_node().ok_or(Error::Busy)?;
    // SAFETY: the contigo device is this queue's device, and window 0 its registers.
    unsafe { stream.arm(dev_node, 0)? };                       // the kernel stops it, too
    Ok(())
}

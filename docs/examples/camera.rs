//! docs/jobs.md: frames of an AXI DMA, lent as tensors, with no copy.

use contigo::{
    Align, Error, Region, Result, Stream,
    dlpack::{Contract, DataType, Shape, TensorSpec, TensorTable},
    drivers::axi_dma::{AxiDmaChannel, AxiDmaConfig, Side},
    names::{Attach, DeviceName},
};
use core::time::Duration;

static LENT: TensorTable<4> = TensorTable::new();

/// A model, which looks at the core's bytes.
fn brightest(pixels: &[u8]) -> u8 {
    pixels.iter().copied().max().unwrap_or(0)
}

#[rustfmt::skip]
pub(crate) fn run() -> Result<()> {
    let device = "sim:axi_dma_camera".parse::<DeviceName>()?.open()?;   // "contigo:axi_dma@40400000"
    let region = Region::new(device.memory(&"sim".parse()?, 1 << 20)?)?; // "contigo"
    let frames = region.pool(10, 4096)?;
    let ring = region.alloc(4096, Align::PAGE)?;                        // the core's descriptors
    let config = AxiDmaConfig { depth: Some(8), ..AxiDmaConfig::default() };
    // SAFETY: the device is this core, and no other code drives it.
    let core = unsafe { AxiDmaChannel::alone(device.attach(Attach::default())?, Side::S2mm, config, Some(ring))? };
    let picture = TensorSpec { contract: Contract::TVM, ..TensorSpec::new(DataType::U8, Shape::new(&[64, 64])?) };

    let (mut lost, mut expected, mut bright) = (0, 0, 0);
    let mut camera = Stream::new(core, frames, 8, &[])?;                // 8 buffers with the core
    camera.start()?;
    while expected < 2_000 {
        let frame = camera.next(Duration::from_millis(100))?.ok_or(Error::Busy)?;
        let number = frame.buf.view_at::<u32>(..4)?[0];                 // this camera counts
        (lost, expected) = (lost + number - expected, number + 1);
        let mut lent = LENT.lend(frame.buf, &picture)?;                 // for a model's from_dlpack
        let tensor = lent.tensor()?;
        // SAFETY: the tensor was lent here: 64 by 64 bytes, until its deleter is called.
        unsafe {
            let data = tensor.as_ref().tensor.data.cast::<u8>();
            bright += u32::from(brightest(core::slice::from_raw_parts(data, 64 * 64)) > 100);
            tensor.as_ref().deleter.map(|delete| delete(tensor.as_ptr()));
        }
        camera.give_back(lent.take_back()?)?;                           // the core's again
    }
    camera.stop()?;
    if lost == 0 && bright == 2_000 { Ok(()) } else { Err(Error::Busy) }
}

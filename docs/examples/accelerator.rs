//! docs/my-accelerator.md, on a simulated board.

use contigo::{
    Align, Device, Direction, Mmio, Queue, Region, Result,
    design::kernel,
    drivers::{
        ap_ctrl::ApCtrl,
        axi_dma::{AxiDma, AxiDmaConfig},
    },
    hw::{
        mmio::{Pointer, ReadClears, ReadWrite, Register},
        wait::poll_until,
    },
    names::{Attach, DeviceName},
};
use core::time::Duration;

const MAP: &[u8] = include_bytes!("copy.json");

#[rustfmt::skip]
pub(crate) fn kernel() -> Result<()> {
    let device = "sim:ap_ctrl".parse::<DeviceName>()?.open()?;
    let region = Region::new(device.memory(&"sim".parse()?, 1 << 16)?)?;
    let pool = region.pool(8, 4096)?;
    let map = kernel::any(MAP, "")?.build()?;             // on a board: xcopy_hw.h, from Vitis
    // SAFETY: the device is this kernel, and no other code drives it.
    let mut copy = Queue::new(unsafe { ApCtrl::open(device.attach(Attach::default())?, map)? }, 1)?;
    let (mut a, b) = (pool.take()?, pool.take()?);
    a.view_mut::<u8>()?.fill(7);
    let operands = [a.to_device(..1000), b.from_device(..1000)];
    let done = copy.run(operands, &[1000], Duration::from_millis(20))?;
    assert_eq!(done.words[0], 1000);                        // as the C function that you wrote
    assert_eq!(done.buffers[1].view_at::<u8>(..1000)?, [7; 1000]);
    Ok(())
}

#[rustfmt::skip]
pub(crate) fn stream() -> Result<()> {
    let dma = "sim:axi_dma".parse::<DeviceName>()?.open()?;
    let memory = Region::new(dma.memory(&"sim".parse()?, 1 << 20)?)?;
    let pool = memory.pool(8, 4096)?;
    let ring = memory.alloc(2 * 4096, Align::PAGE)?;        // the core's descriptors
    let config = AxiDmaConfig::default();                   // as Vivado builds it
    // SAFETY: the device is an AXI DMA like this, and no other code drives it.
    let core = unsafe { AxiDma::open(dma.attach(Attach::default())?, config, Some(ring))? };
    let mut stream = Queue::new(core, 1)?;
    let (mut packet, answer) = (pool.take()?, pool.take()?);
    packet.view_mut::<u8>()?.fill(7);
    let operands = [packet.to_device(..1000), answer.from_device(..4096)];
    let done = stream.run(operands, &[], Duration::from_millis(20))?;
    assert_eq!(done.bytes, Some(1000));                     // so much came; there was room for 4096
    assert_eq!(done.buffers[1].view_at::<u8>(..1000)?, [7; 1000]);
    Ok(())
}

const CTRL: Register<ReadClears> = Register::at(0x00);
const FROM: Pointer = Pointer::at(0x18); // 64 bits
const TO: Pointer = Pointer::at(0x24);
const N: Register<ReadWrite> = Register::at(0x30);

#[rustfmt::skip]
pub(crate) fn own_registers() -> Result<()> {
    let device = "sim:ap_ctrl".parse::<DeviceName>()?.open()?;
    let region = Region::new(device.memory(&"sim".parse()?, 1 << 16)?)?;
    let pool = region.pool(8, 4096)?;
    let core = device.attach(Attach::default())?;
    let (mut x, y) = (pool.take()?, pool.take()?);
    x.view_mut::<u8>()?.fill(7);
    // SAFETY: the core touches these bytes alone, as the directions say, and has ended below.
    let (x, y) = unsafe {
        (x.hand_over(core.port(), 64, ..1000, Direction::ToDevice)?,
         y.hand_over(core.port(), 64, ..1000, Direction::FromDevice)?)
    };
    // SAFETY: they are the addresses of what was handed over.
    unsafe {
        FROM.write(&core, x.slice().addr);
        TO.write(&core, y.slice().addr);
        N.write(&core, 1000);
        CTRL.write(&core, 1);                               // go
    }
    let ended = poll_until(&core, Duration::from_millis(20), |core| CTRL.read_and_clear(core) & 2 != 0)?;
    assert!(ended);                                         // if not: the core may still write
    let (_, y) = (x.into_cpu()?, y.into_cpu()?);
    assert_eq!(y.view_at::<u8>(..1000)?, [7; 1000]);        // both are yours again
    Ok(())
}

// docs/my-accelerator.md: a kernel of one's own, before there is a bitstream.

use contigo::{
    Direction, Queue, Region,
    design::kernel,
    drivers::ap_ctrl::ApCtrl,
    names::{Attach, OpenDevice},
    sim::{
        AnyModel, SimBoard,
        ap_ctrl::{ApCtrlModel, KernelCall, KernelError},
    },
};
use std::time::Duration;

const HEADER: &[u8] = include_bytes!("xfir_hw.h"); // the file that Vitis HLS wrote for your kernel

/// What the C++ does: the kernel is `int fir(const int *x, int *y, unsigned n)`.
fn fir(call: &mut KernelCall<'_, '_>) -> Result<[u32; 4], KernelError> {
    let (mut last, mut most) = ([0; 2], 0);
    for at in (0..4 * call.scalar(0)).step_by(4) {
        let mut word = [0; 4];
        call.read(0, at, &mut word)?;
        let x = i32::from_le_bytes(word);
        let y: i32 = x + 2 * last[0] + last[1];
        call.write(1, at, &y.to_le_bytes())?;
        (last, most) = ([x, last[0]], most.max(y));
    }
    Ok([most.cast_unsigned(), 0, 0, 0])
}

#[rustfmt::skip]
fn main() -> contigo::Result<()> {
    let map = kernel::any(HEADER, "")?
        .direction("x", Direction::ToDevice).length("x", "4*n")     // what the file does not say
        .direction("y", Direction::FromDevice).length("y", "4*n")
        .build()?;
    let model = AnyModel::new(ApCtrlModel::new(map.clone(), fir)?);
    let device = OpenDevice::of_model(&SimBoard::new(1), "fir", model)?; // "contigo:fir".parse()?.open()?
    let region = Region::new(device.memory(&"sim".parse()?, 1 << 16)?)?; // "contigo"
    // SAFETY: the device is this kernel, and no other code drives it.
    let mut kernel = Queue::new(unsafe { ApCtrl::open(device.attach(Attach::default())?, map)? }, 1)?;
    let (mut x, y) = (region.alloc(400, region.line())?, region.alloc(400, region.line())?);
    x.view_mut::<i32>()?.iter_mut().zip(0..).for_each(|(x, i)| *x = i);
    let done = kernel.run([x.to_device(..), y.from_device(..)], &[100], Duration::from_millis(20))?;
    assert_eq!(done.words[0], 392);                         // as the C function
    assert_eq!(done.buffers[1].view_at::<i32>(..400)?[99], 392);
    Ok(())
}

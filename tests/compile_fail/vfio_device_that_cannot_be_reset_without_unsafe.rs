// Where the kernel cannot reset a device, only the program knows what ran in it before its opening.
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};

fn open(vfio: &Vfio) {
    let _device = VfioDevice::open_unreset(vfio, 0, Interrupt::Any, |_| Ok(())); //~ E0133 call to unsafe function `VfioDevice::open_unreset` is unsafe and requires unsafe block
}

fn main() {}

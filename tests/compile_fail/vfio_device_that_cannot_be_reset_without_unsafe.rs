// error: E0133
// What was running in a device before it was opened is for the program to know, where the kernel cannot reset it.
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};

fn open(vfio: &Vfio) {
    let _device = VfioDevice::open_unreset(vfio, 0, Interrupt::Any, |_| Ok(()));
}

fn main() {}

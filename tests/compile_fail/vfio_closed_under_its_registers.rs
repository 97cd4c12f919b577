// error: E0505
// A device cannot be closed while a driver has its registers.
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};

fn gone(vfio: Vfio) {
    let device = VfioDevice::open(&vfio, 0, Interrupt::Any).unwrap();
    drop(vfio);
    drop(device);
}

fn main() {}

// error: E0133
// That no code is starting a job on the device is a claim.
use contigo::{linux::{guard::Guard, vfio::Vfio}, names::OpenDevice};

fn by_the_kernel_module(guard: &Guard) {
    let _ = guard.reset();
}

fn by_its_name(device: &OpenDevice) {
    let _ = device.reset();
}

fn by_vfio(vfio: &Vfio) {
    let _ = vfio.reset();
}

fn main() {}

// error: E0505
// A device's I/O address space cannot go while memory of it is in use.
use contigo::{Region, linux::vfio::Vfio};

fn gone(vfio: Vfio) {
    let region = Region::new(vfio.memory(4096).unwrap()).unwrap();
    drop(vfio);
    drop(region);
}

fn main() {}

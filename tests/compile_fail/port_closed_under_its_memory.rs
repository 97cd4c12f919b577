// error: E0505
// A port of the kernel's cannot go while memory that was imported for it is in use.
use contigo::{DmaHeap, KernelPort, Region};

fn gone(port: KernelPort) {
    let region = Region::new(DmaHeap::allocate_for(&port, "linux,cma", 4096).unwrap()).unwrap();
    drop(port);
    drop(region);
}

fn main() {}

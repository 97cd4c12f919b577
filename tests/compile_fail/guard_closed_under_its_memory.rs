// error: E0505
// A guard cannot go while its own memory, or memory that was imported for it, is in use.
use contigo::{DmaHeap, Guard, Region};

fn own(guard: Guard) {
    let region = Region::new(guard.allocate(4096).unwrap()).unwrap();
    drop(guard);
    drop(region);
}

fn imported(guard: Guard) {
    let region = Region::new(DmaHeap::allocate_for(&guard, "linux,cma", 4096).unwrap()).unwrap();
    drop(guard);
    drop(region);
}

fn main() {}

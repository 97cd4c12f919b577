// error: E0505
// A guard cannot go while memory that was imported for it is in use.
use contigo::{DmaHeap, Guard, Region};

fn gone(guard: Guard) {
    let region = Region::new(DmaHeap::allocate_for(&guard, "linux,cma", 4096).unwrap()).unwrap();
    drop(guard);
    drop(region);
}

fn main() {}

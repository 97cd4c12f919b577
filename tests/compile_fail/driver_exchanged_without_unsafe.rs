// A driver that is exchanged under jobs in flight would take their ends for its own.
use contigo::{Driver, Queue};

fn exchange<D: Driver>(queue: &mut Queue<D>, other: &mut D) {
    core::mem::swap(queue.driver_mut(), other); //~ E0133 call to unsafe function `Queue::<D>::driver_mut` is unsafe and requires unsafe block
}

fn main() {}

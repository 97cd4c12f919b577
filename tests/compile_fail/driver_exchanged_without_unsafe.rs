// error: E0133
// A driver that is exchanged under jobs in flight would take their ends for its own.
use contigo::{Driver, Queue};

fn exchange<D: Driver>(queue: &mut Queue<D>, other: &mut D) {
    core::mem::swap(queue.driver_mut(), other);
}

fn main() {}

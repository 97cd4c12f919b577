// error: E0616
// The buffers of jobs in flight belong to the device.
use contigo::{Driver, Queue};

fn peek(queue: &Queue<impl Driver>) {
    let _ = &queue.places;
}

fn main() {}

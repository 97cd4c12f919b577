// The buffers of jobs in flight belong to the device.
use contigo::{Driver, Queue};

fn peek(queue: &Queue<impl Driver>) {
    let _ = &queue.places; //~ E0616 field `places` of struct `Queue` is private
}

fn main() {}

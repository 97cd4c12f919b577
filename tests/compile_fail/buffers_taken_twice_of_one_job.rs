// The buffers of a job come back once.
use contigo::{CpuBuf, Done};

fn twice(done: Done<[CpuBuf; 2]>) -> [[CpuBuf; 2]; 2] {
    [done.buffers, done.buffers] //~ E0382 use of moved value: `done.buffers`
}

fn main() {}

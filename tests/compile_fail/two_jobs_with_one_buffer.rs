// error: E0382
// A buffer is in one job at a time.
use contigo::{
    Driver,
    CpuBuf, Queue,
};

fn twice(queue: &mut Queue<impl Driver>, buf: CpuBuf) {
    let _ = queue.submit([buf.to_device(..)], &[]);
    let _ = queue.submit([buf.to_device(..)], &[]);
}

fn main() {}

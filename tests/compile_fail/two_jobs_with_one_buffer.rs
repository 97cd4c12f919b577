// A buffer is in one job at a time.
use contigo::{
    Driver,
    CpuBuf, Queue,
};

fn twice(queue: &mut Queue<impl Driver>, buf: CpuBuf) {
    let _ = queue.submit([buf.to_device(..)], &[]);
    let _ = queue.submit([buf.to_device(..)], &[]); //~ E0382 use of moved value: `buf`
}

fn main() {}

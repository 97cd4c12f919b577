// From its job's beginning to its end a buffer has no view.
use contigo::{
    Driver,
    CpuBuf, Queue,
};

fn peek(queue: &mut Queue<impl Driver>, buf: CpuBuf) {
    let _ = queue.submit([buf.from_device(..)], &[]);
    let _ = buf.view::<u8>(); //~ E0382 borrow of moved value: `buf`
}

fn main() {}

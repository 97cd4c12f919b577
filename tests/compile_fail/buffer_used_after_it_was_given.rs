// A buffer that was given to a job is gone from here.
use contigo::CpuBuf;

fn both(mut buf: CpuBuf) {
    let _operand = buf.in_out(..);
    buf.view_mut::<u8>().unwrap().fill(0); //~ E0382 borrow of moved value: `buf`
}

fn main() {}

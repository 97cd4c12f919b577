// A view cannot outlive the moment when its buffer is given to a device.
use contigo::CpuBuf;

fn race(mut buf: CpuBuf) {
    let view = buf.view_mut::<u8>().unwrap();
    let _operand = buf.to_device(..); //~ E0505 cannot move out of `buf` because it is borrowed
    view[0] = 1;
}

fn main() {}

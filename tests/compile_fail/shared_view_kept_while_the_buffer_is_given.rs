// Neither can a view that only reads: the device may write.
use contigo::CpuBuf;

fn race(buf: CpuBuf) -> u8 {
    let view = buf.view::<u8>().unwrap();
    let _operand = buf.from_device(..); //~ E0505 cannot move out of `buf` because it is borrowed
    view[0]
}

fn main() {}

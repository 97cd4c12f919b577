// error: E0505
// Neither can a view that only reads: the device may write.
use contigo::CpuBuf;

fn race(buf: CpuBuf) -> u8 {
    let view = buf.view::<u8>().unwrap();
    let _operand = buf.from_device(..);
    view[0]
}

fn main() {}

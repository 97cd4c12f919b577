// error: E0277
// Least of all a pointer that a device wrote.
use contigo::CpuBuf;

fn trust<'b>(buf: &'b CpuBuf) -> &'b [&'static u8] {
    buf.view::<&'static u8>().unwrap()
}

fn main() {}

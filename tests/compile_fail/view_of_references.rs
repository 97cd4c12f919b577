// Least of all a pointer that a device wrote.
use contigo::CpuBuf;

fn trust<'b>(buf: &'b CpuBuf) -> &'b [&'static u8] {
    buf.view::<&'static u8>().unwrap() //~ E0277 the trait bound `&'static u8: zerocopy::FromBytes` is not satisfied
}

fn main() {}

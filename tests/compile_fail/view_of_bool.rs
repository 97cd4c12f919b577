// A device can write any bits: a view is of a type that has no forbidden ones.
use contigo::CpuBuf;

fn trust(buf: &CpuBuf) -> bool {
    buf.view::<bool>().unwrap()[0] //~ E0277 the trait bound `bool: zerocopy::FromBytes` is not satisfied
}

fn main() {}

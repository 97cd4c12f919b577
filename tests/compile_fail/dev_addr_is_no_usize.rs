// A bus address is never a usize: it has 64 bits on a 32-bit processor too.
use contigo::DevAddr;

fn index(addr: DevAddr) -> usize {
    addr //~ E0308 mismatched types
}

fn main() {}

// error: E0308
// A bus address is never a usize: it has 64 bits on a 32-bit processor too.
use contigo::DevAddr;

fn index(addr: DevAddr) -> usize {
    addr
}

fn main() {}

// error: E0308
// A physical address becomes a bus address only by a port.
use contigo::{DevAddr, PhysAddr};

fn confuse(addr: PhysAddr) -> DevAddr {
    addr
}

fn main() {}

// A physical address becomes a bus address only by a port.
use contigo::{DevAddr, PhysAddr};

fn confuse(addr: PhysAddr) -> DevAddr {
    addr //~ E0308 mismatched types
}

fn main() {}

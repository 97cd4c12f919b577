// error: E0277
// Nor by a conversion.
use contigo::{DevAddr, PhysAddr};

fn confuse(addr: PhysAddr) -> DevAddr {
    addr.into()
}

fn main() {}

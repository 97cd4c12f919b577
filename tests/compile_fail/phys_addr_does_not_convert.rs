// Nor by a conversion.
use contigo::{DevAddr, PhysAddr};

fn confuse(addr: PhysAddr) -> DevAddr {
    addr.into() //~ E0277 the trait bound `DevAddr: From<PhysAddr>` is not satisfied
}

fn main() {}

// A register that clears when it is read is read under that name.
use contigo::hw::mmio::{Mmio, ReadClears, Register};

const CTRL: Register<ReadClears> = Register::at(0x00);

fn peek(window: &impl Mmio) -> u32 {
    CTRL.read(window) //~ E0599 the method `read` exists for struct `contigo::hw::mmio::Register<ReadClears>`, but its trait bounds were not satisfied
}

fn main() {}

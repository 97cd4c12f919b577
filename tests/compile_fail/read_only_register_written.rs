// A register that is read only cannot be written.
use contigo::hw::mmio::{Mmio, ReadOnly, Register};

const STATUS: Register<ReadOnly> = Register::at(0x04);

fn clear(window: &impl Mmio) {
    unsafe { STATUS.write(window, 0) } //~ E0599 the method `write` exists for struct `contigo::hw::mmio::Register<ReadOnly>`, but its trait bounds were not satisfied
}

fn main() {}

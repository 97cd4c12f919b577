// Writing a register may start a transfer.
use contigo::hw::mmio::{Mmio, ReadWrite, Register};

const CTRL: Register<ReadWrite> = Register::at(0x00);

fn doorbell(window: &impl Mmio) {
    CTRL.write(window, 1); //~ E0133 call to unsafe function `contigo::hw::mmio::Register::<Access>::write` is unsafe and requires unsafe block
}

fn main() {}

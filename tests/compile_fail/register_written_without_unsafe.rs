// error: E0133
// Writing a register may start a transfer.
use contigo::hw::mmio::{Mmio, ReadWrite, Register};

const CTRL: Register<ReadWrite> = Register::at(0x00);

fn doorbell(window: &impl Mmio) {
    CTRL.write(window, 1);
}

fn main() {}

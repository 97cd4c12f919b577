// A 32-bit register lies at a multiple of 4.
use contigo::hw::mmio::{ReadOnly, Register};

pub const STATUS: Register<ReadOnly> = Register::at(0x02); //~ E0080 evaluation panicked: a 32-bit register lies at a multiple of 4

fn main() {}

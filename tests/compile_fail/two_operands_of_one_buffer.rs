// One buffer is one operand.
use contigo::{CpuBuf, Operand};

fn twice(buf: CpuBuf) -> [Operand; 2] {
    [buf.to_device(..64), buf.from_device(64..)] //~ E0382 use of moved value: `buf`
}

fn main() {}

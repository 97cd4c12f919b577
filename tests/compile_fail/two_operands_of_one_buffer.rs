// error: E0382
// One buffer is one operand.
use contigo::{CpuBuf, Operand};

fn twice(buf: CpuBuf) -> [Operand; 2] {
    [buf.to_device(..64), buf.from_device(64..)]
}

fn main() {}

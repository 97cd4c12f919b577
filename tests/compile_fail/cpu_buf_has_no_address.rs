// error: E0599
// What is the CPU's has views and no address.
use contigo::CpuBuf;

fn leak(buf: &CpuBuf) {
    let _ = buf.addr();
}

fn main() {}

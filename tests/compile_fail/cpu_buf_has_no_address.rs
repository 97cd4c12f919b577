// What is the CPU's has views and no address.
use contigo::CpuBuf;

fn leak(buf: &CpuBuf) {
    let _ = buf.addr(); //~ E0599 no method named `addr` found for reference `&CpuBuf` in the current scope
}

fn main() {}

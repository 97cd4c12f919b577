// error: E0133
// That the device is behind the translation that a u-dma-buf's addresses are of is a claim.
use contigo::linux::memory::UDmaBuf;

fn main() {
    let _ = UDmaBuf::open_translated("udmabuf0");
}

// That the device is behind the translation that a u-dma-buf's addresses are of is a claim.
use contigo::linux::memory::UDmaBuf;

fn main() {
    let _ = UDmaBuf::open_translated("udmabuf0"); //~ E0133 call to unsafe function `UDmaBuf::open_translated` is unsafe and requires unsafe block
}

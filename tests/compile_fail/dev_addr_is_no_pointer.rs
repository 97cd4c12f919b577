// A bus address is never a pointer.
use contigo::DevAddr;

fn dereference(addr: DevAddr) -> *const u8 {
    addr as *const u8 //~ E0605 non-primitive cast: `DevAddr` as `*const u8`
}

fn main() {}

// error: E0605
// Nor by a cast.
use contigo::DevAddr;

fn index(addr: DevAddr) -> usize {
    addr as usize
}

fn main() {}

// Nor by a cast.
use contigo::DevAddr;

fn index(addr: DevAddr) -> usize {
    addr as usize //~ E0605 non-primitive cast: `DevAddr` as `usize`
}

fn main() {}

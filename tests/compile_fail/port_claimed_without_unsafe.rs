// What port a real device is wired to is a claim about the board.
use contigo::{Port, hw::{MmioWindow, Wired}, linux::Spin};

fn claim(window: MmioWindow, port: Port) -> Wired<MmioWindow, Spin> {
    Wired::new(window, Spin, port) //~ E0133 call to unsafe function `contigo::hw::Wired::<W, I>::new` is unsafe and requires unsafe block
}

fn main() {}

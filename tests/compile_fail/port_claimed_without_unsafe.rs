// error: E0133
// What port a real device is wired to is a claim about the board.
use contigo::{Port, hw::{MmioWindow, Wired}, linux::Spin};

fn claim(window: MmioWindow, port: Port) -> Wired<MmioWindow, Spin> {
    Wired::new(window, Spin, port)
}

fn main() {}

// error: E0597
// A region's handles live as long as they like: so does its backend, which may borrow nothing.
use contigo::{own::Region, sim::SimBoard};

fn main() {
    let board = SimBoard::new(1);
    let _region = Region::new(board.memory(4096).unwrap()).unwrap();
}

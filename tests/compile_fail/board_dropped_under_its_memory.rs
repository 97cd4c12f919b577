// error: E0505
// A simulated board cannot go while memory of it is in use.
use contigo::{Region, sim::SimBoard};

fn gone(board: SimBoard) {
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    drop(board);
    drop(region);
}

fn main() {}

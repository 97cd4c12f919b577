// error: E0505
// Nor while a pool over it lives.
use contigo::{Align, Backend, Pool, Region};

fn gone<B: Backend>(region: Region<B>) {
    let pool = Pool::<2>::new(region.carve(128, Align::LINE).unwrap(), 64).unwrap();
    drop(region);
    drop(pool);
}

fn main() {}

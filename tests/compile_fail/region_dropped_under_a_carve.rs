// error: E0505
// A region cannot go while anything carved from it is out.
use contigo::{Align, Backend, Region};

fn gone<B: Backend>(region: Region<B>) {
    let buf = region.carve(64, Align::LINE).unwrap().into_buf();
    drop(region);
    drop(buf);
}

fn main() {}

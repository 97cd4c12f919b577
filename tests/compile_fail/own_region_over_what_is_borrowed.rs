// error: E0597
// A region's handles live as long as they like: so does its backend, which may borrow nothing.
use contigo::{Guard, own::Region};

fn main() {
    let guard = Guard::open("43c00000").unwrap();
    let _region = Region::new(guard.allocate(4096).unwrap()).unwrap();
}

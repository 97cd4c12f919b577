// A region's handles live as long as they like: so does its backend, which may borrow nothing.
use contigo::{Backend, Region};

fn over<B: Backend>(backend: B) {
    let _region = Region::new(backend); //~ E0310 the parameter type `B` may not live long enough
}

fn main() {}

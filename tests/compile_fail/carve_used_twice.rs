// error: E0382
// One carve is one pool: two would hand out the same bytes.
use contigo::{Carve, Pool};

fn twice(carve: Carve<'_>) {
    let _one = Pool::<1>::new(carve, 64);
    let _two = Pool::<1>::new(carve, 64);
}

fn main() {}

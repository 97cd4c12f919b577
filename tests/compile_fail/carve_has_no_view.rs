// error: E0599
// A carve is bytes that are nobody's yet.
use contigo::Carve;

fn peek(carve: &Carve<'_>) {
    let _ = carve.view::<u8>();
}

fn main() {}

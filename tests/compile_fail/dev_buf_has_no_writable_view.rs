// error: E0599
// What is a device's cannot be written either.
use contigo::DevBuf;

fn poke(buf: &mut DevBuf) {
    let _ = buf.view_mut::<u8>();
}

fn main() {}

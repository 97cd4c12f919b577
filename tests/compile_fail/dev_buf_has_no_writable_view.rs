// What is a device's cannot be written either.
use contigo::DevBuf;

fn poke(buf: &mut DevBuf) {
    let _ = buf.view_mut::<u8>(); //~ E0599 no method named `view_mut` found for mutable reference `&mut DevBuf` in the current scope
}

fn main() {}

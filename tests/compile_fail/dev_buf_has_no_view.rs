// error: E0599
// What is a device's has an address and no view.
use contigo::DevBuf;

fn peek(buf: &DevBuf) {
    let _ = buf.view::<u8>();
}

fn main() {}

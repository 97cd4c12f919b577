// What is a device's has an address and no view.
use contigo::DevBuf;

fn peek(buf: &DevBuf) {
    let _ = buf.view::<u8>(); //~ E0599 no method named `view` found for reference `&DevBuf` in the current scope
}

fn main() {}

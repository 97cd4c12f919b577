// error: E0277
// Nor may they leave as a device's, or as an operand.
use contigo::{DevBuf, OneThread};

fn elsewhere(buf: DevBuf<'static, OneThread>) {
    std::thread::spawn(move || drop(buf));
}

fn main() {}

// error: E0382
// A buffer that was given to a device is gone for the CPU.
use contigo::own::Region;
use contigo::Align;

fn race(region: &Region) {
    let buf = region.alloc(4096, Align::LINE).unwrap();
    let _operand = buf.to_device(..);
    let _ = buf.view::<u8>();
}

fn main() {}

// Two writable views of one buffer would alias.
use contigo::CpuBuf;

fn alias(buf: &mut CpuBuf) {
    let one = buf.view_mut::<u8>().unwrap();
    let two = buf.view_mut::<u32>().unwrap(); //~ E0499 cannot borrow `*buf` as mutable more than once at a time
    one[0] = 1;
    two[0] = 2;
}

fn main() {}

// What the CPU writes for a device has no padding: it would hand over bytes of another owner.
use contigo::CpuBuf;

#[repr(C)]
struct Padded(u8, u32);

fn leak(buf: &mut CpuBuf) {
    buf.view_mut::<Padded>().unwrap(); //~ E0277 the trait bound `Padded: zerocopy::FromBytes` is not satisfied //~ E0277 the trait bound `Padded: zerocopy::IntoBytes` is not satisfied
}

fn main() {}

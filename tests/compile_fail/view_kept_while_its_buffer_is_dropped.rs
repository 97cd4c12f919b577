// A view cannot outlive its buffer: the drop may unmap the memory.
use contigo::Pool;

fn stale(pool: Pool) -> u8 {
    let buf = pool.take().unwrap();
    let view = buf.view::<u8>().unwrap();
    drop(buf); //~ E0505 cannot move out of `buf` because it is borrowed
    view[0]
}

fn main() {}

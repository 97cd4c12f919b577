// error: E0505
// A view cannot outlive its buffer: the drop may unmap the memory.
use contigo::Pool;

fn stale(pool: Pool) -> u8 {
    let buf = pool.take().unwrap();
    let view = buf.view::<u8>().unwrap();
    drop(buf);
    view[0]
}

fn main() {}

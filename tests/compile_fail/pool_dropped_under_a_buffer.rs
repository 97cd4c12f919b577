// error: E0505
// A pool cannot go while a buffer of it is out.
use contigo::Pool;

fn gone(pool: Pool<'_, 2>) {
    let buf = pool.take().unwrap();
    drop(pool);
    drop(buf);
}

fn main() {}

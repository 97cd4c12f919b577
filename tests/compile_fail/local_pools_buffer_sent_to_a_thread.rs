// error: E0277
// A LocalPool's buffers stay on its thread: they go back with no atomic operation.
use contigo::LocalPool;

fn elsewhere(pool: &LocalPool<'_, 2>) {
    let buf = pool.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(buf));
    });
}

fn main() {}

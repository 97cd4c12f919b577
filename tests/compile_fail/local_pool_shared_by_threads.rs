// error: E0277
// A LocalPool itself is for one thread at a time.
use contigo::LocalPool;

fn shared(pool: &LocalPool<'_, 2>) {
    std::thread::scope(|scope| {
        scope.spawn(|| pool.taken());
    });
}

fn main() {}

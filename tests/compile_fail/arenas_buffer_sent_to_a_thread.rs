// error: E0277
// An Arena's buffers stay on its thread.
use contigo::Arena;

fn elsewhere(arena: &Arena<'_, 2>) {
    let buf = arena.take(64).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(buf));
    });
}

fn main() {}

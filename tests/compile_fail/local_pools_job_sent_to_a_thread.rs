// error: E0277
// A job whose buffers stay on a thread stays there with them, also where its engine may be sent.
use contigo::{Engine, LocalPool, TypedDriver};

fn elsewhere<D: TypedDriver<1, Args = ()> + Send>(engine: &mut Engine<D, 1>, pool: &LocalPool<'_, 2>) {
    let job = engine.start([pool.take().unwrap().from_device(..)], &()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(job));
    });
}

fn main() {}

// error: E0505
// A pool cannot go while a job has a buffer of it: the operands lie in the engine, which has no
// lifetime of theirs.
use contigo::{Engine, Pool, TypedDriver};

fn gone<D: TypedDriver<1, Args = ()>>(engine: &mut Engine<D, 1>, pool: Pool<'_, 2>) {
    let job = engine.start([pool.take().unwrap().from_device(..)], &()).unwrap();
    drop(pool);
    drop(job);
}

fn main() {}

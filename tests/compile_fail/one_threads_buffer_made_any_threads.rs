// error: E0277
// A buffer may give up leaving its thread, never gain it.
use contigo::{AnyThread, CpuBuf, OneThread};

fn gain(buf: CpuBuf<'_, OneThread>) -> CpuBuf<'_, AnyThread> {
    buf.into()
}

fn main() {}

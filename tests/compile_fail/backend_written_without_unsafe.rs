// A backend is a promise about memory.
use contigo::{Backend, Direction, Result, mem::Mapping};
use std::ops::Range;

struct Mine(Mapping);

impl Backend for Mine { //~ E0200 the trait `Backend` requires an `unsafe impl` declaration
    fn name(&self) -> &'static str {
        "mine"
    }
    fn mapping(&self) -> Mapping {
        self.0
    }
    fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }
    fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }
}

fn main() {}

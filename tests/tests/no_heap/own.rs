//! Handles that own their memory, and whole programs of them, without the heap.

use super::counting::count;
use contigo::job::{AnyDriver, queue_bytes};
use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{Sim, SimBoard, SimDevice};
use contigo::{Align, Limits, Pool, Queue, Region, Result};
use std::mem::MaybeUninit;
use std::time::Duration;

struct App {
    region: Region,
    frames: Pool,
    queue: Queue<AnyDriver>,
}

impl App {
    fn run(&mut self) -> Result<()> {
        for _ in 0..10 {
            let (mut from, to) = (self.frames.take()?, self.region.alloc(1000, Align::LINE)?);
            from.view_at_mut::<u8>(..1000)?.fill(7);
            let operands = [from.to_device(..1000), to.from_device(..1000)];
            let [_, to] = self.queue.run(operands, &[], Duration::from_millis(200))?.buffers;
            assert_eq!(to.view_at::<u8>(..1000)?, [7; 1000]);
        }
        let (left, right) = self.frames.take()?.split_at(512)?;
        drop((self.region.clone(), self.frames.clone(), left));
        drop(right);
        Ok(())
    }
}

#[test]
fn none_in_programs_that_own_their_memory() {
    let memory =
        |bytes: usize| &mut *Box::leak(vec![MaybeUninit::<u8>::uninit(); bytes].into_boxed_slice());
    // Once in memory of the program's, twice in pages from the kernel.
    let given = (
        memory(Limits::default().control_bytes::<Sim>().unwrap()),
        memory(Pool::control_bytes(8).unwrap()),
        memory(queue_bytes(8, 2).unwrap()),
    );
    let mut given = Some(given);
    let (ran, allocations) = count(|| -> Result<()> {
        for _ in 0..3 {
            let board = SimBoard::new(7);
            let device = SimDevice::<ZdmaModel>::new(&board, board.port());
            let driver = AnyDriver::new(device.window()?.simple()?)?;
            let backend = board.memory(256 << 10)?;
            let (region, frames, queue) = if let Some((of_region, of_pool, of_queue)) = given.take()
            {
                let (needs, limits) = (Default::default(), Limits::default());
                let region = Region::with_memory(backend, needs, limits, of_region)?;
                let frames = region.pool_with_memory(8, 4096, of_pool)?;
                (region, frames, Queue::with_memory(driver, 8, of_queue)?)
            } else {
                let region = Region::new(backend)?;
                let frames = region.pool(8, 4096)?;
                (region, frames, Queue::new(driver, 8)?)
            };
            let mut app = App { region, frames, queue };
            app.run()?;
            let last = app.frames.take()?;
            drop(app);
            drop(last);
        }
        Ok(())
    });
    assert_eq!((ran, allocations), (Ok(()), 0));
}

//! What a job costs in the queue that owns, beside `Engine` and the queue with const parameters, in
//! one run: `cargo run --release --package contigo --example queue_cost`. The device is done at
//! once, so what is left is the runtime's share. Figures are medians of batches that take turns.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a measurement stops where something is wrong; a driver and a backend are promises"
)]

use contigo::{
    Align, Backend, BaseAddr, Bus, Completion, DevSlice, Direction, Driver, Engine, Error, Mapping, OperandSpec, PhysAddr, Pool, Port,
    Queue, Region, SyncScope, TypedDriver, own,
};
use std::{
    alloc::{Layout, alloc_zeroed},
    hint::black_box,
    ops::Range,
    ptr::NonNull,
    time::{Duration, Instant},
};

const SLOT: usize = 4096;
const BATCHES: usize = 101;
const JOBS: u32 = 20_000;
const PLAIN_BYTES: usize = 1 << 20;

struct AtOnce<const N: usize> {
    port: Port,
    depth: usize,
    oldest: usize,
}

// SAFETY: it touches no memory.
unsafe impl<const N: usize> Driver for AtOnce<N> {
    fn name(&self) -> &'static str {
        "at once"
    }
    fn addr_bits(&self) -> u32 {
        32
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::from_device(); N] }
    }
    fn port(&self) -> &Port {
        &self.port
    }
    fn depth(&self) -> usize {
        self.depth
    }
    fn check(&self, buffers: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        black_box(buffers);
        Ok(())
    }
    unsafe fn submit(&mut self, _: usize, buffers: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        black_box(buffers);
        Ok(())
    }
    fn poll(&mut self, _timeout: Duration) -> Result<Option<Completion>, Error> {
        let slot = self.oldest;
        self.oldest = if slot + 1 == self.depth { 0 } else { slot + 1 };
        Ok(Some(Completion::of(slot)))
    }
    fn stop(&mut self) -> Result<(), Error> {
        self.oldest = 0;
        Ok(())
    }
}

impl<const N: usize> TypedDriver<N> for AtOnce<N> {
    contigo::no_report!();
}

/// Memory to which no simulated board counts the accesses.
struct Plain(NonNull<u8>);

impl Plain {
    fn new() -> Self {
        let layout = Layout::from_size_align(PLAIN_BYTES, 4096).unwrap();
        // SAFETY: the layout has a size.
        Self(NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap())
    }
}

// SAFETY: 1, 2. A block that is leaked, zeroed, and used by nothing else. 3, 5. A coherent block is
// never synchronised. 4. No device exists, so no other memory answers.
unsafe impl Backend for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }
    fn mapping(&self) -> Mapping {
        let (bus, scope) = (Bus::Soc, SyncScope::Coherent);
        Mapping { cpu: self.0, len_bytes: PLAIN_BYTES, base: BaseAddr::Phys(PhysAddr(1 << 28)), bus, scope, coherent: Some(true) }
    }
    unsafe fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<(), Error> {
        Ok(())
    }
    unsafe fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<(), Error> {
        Ok(())
    }
}

// SAFETY: an address of memory that nothing else uses.
unsafe impl Send for Plain {}
// SAFETY: as for `Send`.
unsafe impl Sync for Plain {}

/// Nanoseconds a call.
fn batch(call: &mut dyn FnMut()) -> f64 {
    let began = Instant::now();
    (0..JOBS).for_each(|_| call());
    began.elapsed().as_secs_f64() * 1e9 / f64::from(JOBS)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn row(name: &str, old: &mut dyn FnMut(), new: &mut dyn FnMut()) {
    let (olds, news): (Vec<_>, Vec<_>) = (0..BATCHES).map(|_| (batch(old), batch(new))).unzip();
    let (old, new) = (median(olds), median(news));
    println!("| {name} | {old:.1} | {new:.1} | {:+.1} |", new - old);
}

fn main() {
    let port = Port { name: "plain", bus: Bus::Soc, offset: 0, addr_bits: 32, window: (0, u64::from(u32::MAX)), coherent: true };
    let region = Region::new(Plain::new()).unwrap();
    let old_pool = Pool::<32>::new(region.carve(32 * SLOT, Align::LINE).unwrap(), SLOT).unwrap();
    let new_pool = own::Region::new(Plain::new()).map_err(|refused| refused.error).unwrap().pool(32, SLOT).unwrap();
    println!("| ns a job, median of {BATCHES} | Engine, Queue<.., SLOTS, OPERANDS> | own::Queue | more |\n|---|---|---|---|");

    let mut old = Engine::<AtOnce<1>, 1>::new(AtOnce { port, depth: 1, oldest: 0 }).unwrap();
    let mut new = own::Queue::new(AtOnce::<1> { port, depth: 1, oldest: 0 }, 1).unwrap();
    row(
        "1 operand: take, run, drop",
        &mut || drop(old.start([old_pool.take().unwrap().from_device(..)], &()).unwrap().wait(Duration::ZERO).unwrap()),
        &mut || drop(new.run([new_pool.take().unwrap().from_device(..)], &[], Duration::ZERO).unwrap()),
    );

    let mut old = Engine::<AtOnce<4>, 4>::new(AtOnce { port, depth: 1, oldest: 0 }).unwrap();
    let mut new = own::Queue::new(AtOnce::<4> { port, depth: 1, oldest: 0 }, 1).unwrap();
    let mut old_bufs = Some([(); 4].map(|()| old_pool.take().unwrap()));
    let mut new_bufs = Some([(); 4].map(|()| new_pool.take().unwrap()));
    row(
        "4 operands: run",
        &mut || {
            let operands = old_bufs.take().unwrap().map(|buf| buf.from_device(..));
            old_bufs = Some(old.start(operands, &()).unwrap().wait(Duration::ZERO).unwrap().buffers);
        },
        &mut || {
            let operands = new_bufs.take().unwrap().map(|buf| buf.from_device(..));
            new_bufs = Some(new.run(operands, &[], Duration::ZERO).unwrap().buffers);
        },
    );

    let mut old: Queue<'_, _, 8, 1> = Queue::new(AtOnce::<1> { port, depth: 8, oldest: 0 }).unwrap();
    let mut new = own::Queue::new(AtOnce::<1> { port, depth: 8, oldest: 0 }, 8).unwrap();
    let mut waiting = own::Queue::new(AtOnce::<1> { port, depth: 1, oldest: 0 }, 8).unwrap();
    for _ in 0..7 {
        old.push([old_pool.take().unwrap().from_device(..)], &()).unwrap();
        new.submit([new_pool.take().unwrap().from_device(..)], &[]).unwrap();
        waiting.submit([new_pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    let mut old_job = || {
        old.push([old_pool.take().unwrap().from_device(..)], &()).unwrap();
        drop(old.next(Duration::ZERO).unwrap().unwrap());
    };
    row("8 in flight: take, submit, wait, drop", &mut old_job, &mut || {
        new.submit([new_pool.take().unwrap().from_device(..)], &[]).unwrap();
        drop(new.wait::<1>(Duration::ZERO).unwrap().unwrap());
    });
    row("the same, 7 of them waiting (before: 8 in flight)", &mut old_job, &mut || {
        waiting.submit([new_pool.take().unwrap().from_device(..)], &[]).unwrap();
        drop(waiting.wait::<1>(Duration::ZERO).unwrap().unwrap());
    });
}

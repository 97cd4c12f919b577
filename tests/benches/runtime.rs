//! The runtime's cost: `cargo bench --package contigo-tests`.
//!
//! README.md has the figures of one run beside DPDK's of the same minutes. Machines are noisy:
//! quote ratios of one run.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark stops where something is wrong"
)]

use contigo::dlpack::{Contract, DataType, Foreign, Imported, Shape, TensorSpec, TensorTable};
use contigo::job::AnyDriver;
use contigo::mem::{DevSlice, Mapping, Requirements, SyncScope};
use contigo::sim::{SimBoard, SimSpec};
use contigo::types::BaseAddr;
use contigo::{
    Align, Backend, Bus, Completion, CpuBuf, Direction, Driver, Error, Limits, OperandSpec,
    PhysAddr, Port, Queue, Region,
};
use contigo_gemm8::{Gemm, Gemm8, Output, SimGemm8};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::alloc::{Layout, alloc_zeroed};
use std::hint::black_box;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SLOT: usize = 4096;

/// As many allocations at once as the benchmark below has live.
const BLOCKS: usize = 4096;

fn region(board: &SimBoard) -> Region {
    let memory = board
        .memory_with(SimSpec { len_bytes: 32 << 20, coherent: Some(true), ..SimSpec::default() })
        .unwrap();
    Region::with(memory, Requirements::default(), Limits { allocations: BLOCKS }).unwrap()
}

fn pools(c: &mut Criterion) {
    let board = SimBoard::new(1);
    let region = region(&board);
    let pool = region.pool(64, SLOT).unwrap();
    c.bench_function("pool of 64: take+drop, 1 thread", |b| {
        b.iter(|| drop(black_box(pool.take().unwrap())))
    });
    let wide = region.pool(1024, SLOT).unwrap();
    let held: Vec<_> = (0..1000).map(|_| wide.take().unwrap()).collect();
    c.bench_function("pool of 1024: take+drop, 1000 out", |b| {
        b.iter(|| drop(black_box(wide.take().unwrap())))
    });
    drop(held);

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(black_box(pool.take().unwrap()));
            }
        });
        c.bench_function("pool of 64: take+drop, 2 threads", |b| {
            b.iter(|| drop(black_box(pool.take().unwrap())))
        });
        stop.store(true, Ordering::Relaxed);
    });
}

/// Frees a random block and allocates one of another size, at a steady fill.
fn blocks(c: &mut Criterion) {
    let board = SimBoard::new(1);
    let region = region(&board);
    let mut rng = fastrand::Rng::with_seed(1);
    // 64 bytes to 64 KiB, every power of two as likely: 9.3 KiB on average.
    let size = |rng: &mut fastrand::Rng| 64_usize << rng.u32(0..=10) | rng.usize(0..64);
    for percent in [10, 50, 90] {
        let target = region.len_bytes() / 100 * percent;
        let mut live: Vec<CpuBuf> = Vec::with_capacity(BLOCKS);
        let mut bytes = 0;
        while bytes < target {
            match region.alloc(size(&mut rng), Align::LINE) {
                Ok(buf) => {
                    bytes += buf.len_bytes();
                    live.push(buf);
                }
                Err(_) => break,
            }
        }
        let sizes: Vec<usize> = (0..1024).map(|_| size(&mut rng)).collect();
        let victims: Vec<usize> = (0..1024).map(|_| rng.usize(..live.len())).collect();
        let (mut turn, mut failed, mut tries) = (0_usize, 0_u64, 0_u64);
        c.bench_function(&format!("alloc+free of mixed sizes, {percent} % full"), |b| {
            b.iter(|| {
                turn = (turn + 1) % 1024;
                tries += 1;
                match region.alloc(sizes[turn], Align::LINE) {
                    Ok(buf) => {
                        let victim = victims[turn] % live.len();
                        live[victim] = buf;
                    }
                    Err(_) => failed += 1,
                }
            });
        });
        println!("    {} blocks live, {failed} of {tries} allocations found no room", live.len());
        live.clear();
        let held: Vec<_> = (0..(target / SLOT).min(BLOCKS - 1))
            .map_while(|_| region.alloc(SLOT, Align::LINE).ok())
            .collect();
        c.bench_function(&format!("alloc+free of 4 KiB, {percent} % full"), |b| {
            b.iter(|| drop(black_box(region.alloc(SLOT, Align::LINE).unwrap())))
        });
        drop(held);
    }
}

fn translation(c: &mut Criterion) {
    let board = SimBoard::new(1);
    let region = region(&board);
    let mut buf = region.alloc(SLOT, Align::LINE).unwrap();
    let ptr = buf.view_mut::<u8>().unwrap()[100..].as_ptr();
    let port = board.coherent_port();
    c.bench_function("dev_addr_of", |b| {
        b.iter(|| region.dev_addr_of(&port, black_box(ptr), 64).unwrap())
    });
    let addr = region.dev_addr_of(&port, ptr, 64).unwrap();
    c.bench_function("host_ptr_of", |b| {
        b.iter(|| region.host_ptr_of(&port, black_box(addr)).unwrap())
    });
}

/// A device that is done at once, one job after the other: what is left is the runtime's share of a
/// job.
struct Instant<const N: usize> {
    port: Port,
    depth: usize,
    /// The slot of the oldest job.
    oldest: usize,
}

impl<const N: usize> Instant<N> {
    const fn new(port: Port, depth: usize) -> Self {
        Self { port, depth, oldest: 0 }
    }
}

// SAFETY: it touches no memory.
unsafe impl<const N: usize> Driver for Instant<N> {
    fn name(&self) -> &'static str {
        "instant"
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

/// Memory that no simulated board counts the accesses to, as on a board that is real.
struct Plain(NonNull<u8>);

const PLAIN_BYTES: usize = 1 << 20;

// SAFETY: 1, 2. A block that is leaked, zeroed, and used by no other code. 3, 5. A coherent block
// is never synchronised. 4. No device exists, so no other memory answers.
unsafe impl Backend for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }
    fn mapping(&self) -> Mapping {
        let (bus, scope) = (Bus::Soc, SyncScope::Coherent);
        Mapping {
            cpu: self.0,
            len_bytes: PLAIN_BYTES,
            base: BaseAddr::Phys(PhysAddr(1 << 28)),
            bus,
            scope,
            coherent: Some(true),
        }
    }
    unsafe fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<(), Error> {
        Ok(())
    }
    unsafe fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<(), Error> {
        Ok(())
    }
}

// SAFETY: an address of memory that no other code uses.
unsafe impl Send for Plain {}
// SAFETY: as for `Send`.
unsafe impl Sync for Plain {}

fn jobs(c: &mut Criterion) {
    let layout = Layout::from_size_align(PLAIN_BYTES, 4096).unwrap();
    // SAFETY: the layout has a size.
    let plain = Plain(NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap());
    let region = Region::new(plain).unwrap();
    let pool = region.pool(8, SLOT).unwrap();
    let port = Port {
        name: "plain",
        bus: Bus::Soc,
        offset: 0,
        addr_bits: 32,
        window: (0, u64::from(u32::MAX)),
        coherent: true,
    };
    let mut one = Queue::new(Instant::<1>::new(port, 1), 1).unwrap();
    c.bench_function("job with 1 operand: take, run, drop", |b| {
        b.iter(|| one.run([pool.take().unwrap().from_device(..)], &[], Duration::ZERO).unwrap());
    });
    let mut four = Queue::new(Instant::<4>::new(port, 1), 1).unwrap();
    let mut bufs = Some([(); 4].map(|()| pool.take().unwrap()));
    c.bench_function("job with 4 operands: run", |b| {
        b.iter(|| {
            let operands = bufs.take().unwrap().map(|buf| buf.from_device(..));
            bufs = Some(four.run(operands, &[], Duration::ZERO).unwrap().buffers);
        });
    });
    drop(bufs);
    let mut queue = Queue::new(Instant::<1>::new(port, 64), 8).unwrap();
    while !queue.is_full() {
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    c.bench_function("queue, 8 in flight: wait, submit", |b| {
        b.iter(|| {
            let [buf] = queue.wait(Duration::ZERO).unwrap().unwrap().buffers;
            queue.submit([buf.from_device(..)], &[]).unwrap()
        });
    });
    drop(queue);
    let mut queue = Queue::new(AnyDriver::new(Instant::<1>::new(port, 64)).unwrap(), 8).unwrap();
    while !queue.is_full() {
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    c.bench_function("the same over AnyDriver", |b| {
        b.iter(|| {
            let [buf] = queue.wait(Duration::ZERO).unwrap().unwrap().buffers;
            queue.submit([buf.from_device(..)], &[]).unwrap()
        });
    });
    drop(queue);
    let board = SimBoard::new(1);
    let region = self::region(&board);
    let pool = region.pool(8, SLOT).unwrap();
    let device = SimGemm8::new(&board, board.coherent_port());
    let mut gemm = Queue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap();
    let words = Gemm { m: 1, n: 16, k: 16, output: Output::Int32 { relu: false } }.words();
    c.bench_function(
        "gemm8 job on the simulated board, 1x16x16, registers and arithmetic included",
        |b| {
            b.iter_batched(
                || [(); 4].map(|()| pool.take().unwrap()),
                |[a, b, bias, out]| {
                    let operands = [
                        a.to_device(..16),
                        b.to_device(..256),
                        bias.to_device(..64),
                        out.from_device(..64),
                    ];
                    gemm.run(operands, &words, Duration::from_millis(1)).unwrap()
                },
                BatchSize::PerIteration,
            );
        },
    );
}

/// A frame that is lent to a framework, whose deleter is called, and taken back; and a framework's
/// tensor taken over.
fn tensors(c: &mut Criterion) {
    static TENSORS: TensorTable<16> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = contigo::Region::new(board.memory(SLOT).unwrap()).unwrap();
    let spec = TensorSpec {
        contract: Contract::TVM,
        ..TensorSpec::new(DataType::F32, Shape::new(&[1, 3, 16, 16]).unwrap())
    };
    let mut buf = Some(region.alloc(SLOT, Align::DLPACK).unwrap());
    c.bench_function("TensorTable lend+tensor+delete+take_back", |b| {
        b.iter(|| {
            let mut lent = TENSORS.lend(buf.take().unwrap(), black_box(&spec)).unwrap();
            let tensor = black_box(lent.tensor().unwrap());
            // SAFETY: the tensor that was just given out, once.
            unsafe { (tensor.as_ref().deleter.unwrap())(tensor.as_ptr()) };
            buf = Some(lent.take_back().unwrap());
        });
    });
    c.bench_function("the same, imported and given back by into_buf", |b| {
        b.iter(|| {
            let mut lent = TENSORS.lend(buf.take().unwrap(), black_box(&spec)).unwrap();
            // SAFETY: as above; `Foreign` calls the deleter.
            let foreign =
                unsafe { Foreign::from_versioned(black_box(lent.tensor().unwrap()).as_ptr()) }
                    .unwrap();
            buf = Some(
                Imported::new(&region, foreign, &Contract::TVM)
                    .unwrap()
                    .into_buf(lent)
                    .unwrap()
                    .whole(),
            );
        });
    });
}

criterion_group!(benches, pools, blocks, translation, jobs, tensors);
criterion_main!(benches);

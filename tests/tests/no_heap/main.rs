//! No heap: not one allocation from opening a backend to the end of a thousand jobs, on every
//! backend that can run here. The counting allocator sees what the runtime calls too: nix, memmap2,
//! heapless, and std below them.
//!
//! It counts by thread, because the test harness allocates on others. A fake of the kernel may
//! allocate in its own calls; the runtime did not, so it is not counted.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; allocators and fakes of the \
        kernel are promises"
)]

mod backends;
mod counting;
#[cfg(target_pointer_width = "64")]
mod cuda;
mod jobs;
mod opened;
mod own;

use contigo::sim::{Faults, SimBoard, SimWindow};
use contigo::trace::{self, Kind, Ledger};
use contigo::{Align, Backend, DevBuf, Done, Error, JobError, Port, Queue, Region, Result};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model, Output, SimGemm8};
use counting::{count, uncounted};
use std::time::Duration;

#[test]
fn the_counter_counts() {
    use std::hint::black_box;
    assert_eq!(count(|| drop(black_box(Box::new(1_u64)))).1, 1);
    assert_eq!(count(|| drop(black_box(vec![0_u8; 64]))).1, 1, "zeroed");
    let mut grown: Vec<u64> = Vec::with_capacity(1);
    assert_eq!(count(|| grown.extend(black_box([1, 2, 3]))).1, 1, "reallocated");
    assert_eq!(count(|| std::thread::spawn(|| ()).join().is_ok()).1.min(1), 1);
    assert_eq!(count(|| black_box([0_u8; 64])).1, 0);
    assert_eq!(count(|| uncounted(|| drop(black_box(Box::new(1_u64))))).1, 0);
}

const GEMM: Gemm = Gemm { m: 1, n: 16, k: 16, output: Output::Int8 { relu: true, shift: 0 } };
const SLOT: usize = 256;
const LIMIT: Duration = Duration::from_micros(500);
const JOBS: usize = 1_000;

/// Everything that goes wrong, and a device that sticks now and then.
const FAULTS: Faults = Faults { stuck: 5, ..Faults::OFTEN };

/// How the jobs ended.
#[derive(Debug, Default)]
struct Tally {
    good: usize,
    chained: usize,
    failed: usize,
    stuck: usize,
    refused: usize,
}

type GemmQueue = Queue<Gemm8<SimWindow<Gemm8Model>>>;
type Ended = Result<Option<Done<[DevBuf; 4]>>, JobError<[DevBuf; 4]>>;

impl Tally {
    /// The buffers of a job that worked out; after one that did not, the queue is empty.
    fn settle(
        &mut self,
        ended: Ended,
        device: &SimGemm8,
        queue: &mut GemmQueue,
    ) -> Result<Option<[DevBuf; 4]>> {
        match ended {
            Ok(Some(done)) => return Ok(Some(done.buffers)),
            Ok(None) | Err(_) => self.failed += 1,
        }
        self.stop(device, queue)?;
        Ok(None)
    }

    /// Ends what is under way, by a reset from outside where the device will not stop.
    fn stop(&mut self, device: &SimGemm8, queue: &mut GemmQueue) -> Result<()> {
        if let Err(Error::WillNotStop { .. }) = queue.clear() {
            self.stuck += 1;
            device.reset()?;
            queue.clear()?;
        }
        if queue.is_empty() { Ok(()) } else { Err(Error::Busy) }
    }
}

/// A thousand jobs, with what a program does around them. `true`: what the device wrote is compared
/// too.
fn thousand_jobs(device: &SimGemm8, port: Port, region: &Region, compare: bool) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut queue = Queue::new(Gemm8::open_simulated(device.window()?)?, 1)?;
    let pool = region.pool(16, SLOT)?;
    let free_bytes = region.free_bytes();
    for job in 0..JOBS {
        let (mut a, mut b) = (pool.take()?, pool.take()?);
        a.view_at_mut::<i8>(..16)?.fill(1);
        b.copy_from_slice(&[2; SLOT])?;
        let (mut bias, spare) = pool.take()?.split_at(128)?;
        drop(spare);
        bias.view_at_mut::<i32>(..64)?.fill(3);
        if job % 8 == 0 {
            // Into a block of the region, and stopped under way.
            let (tensor, row) =
                (region.alloc(300, Align::DLPACK)?, region.clone().pool(2, SLOT)?.take()?);
            let (bias, tensor) = (bias.to_device(..64), tensor.from_device(..16));
            let operands = [a.to_device(..16), b.to_device(..), bias, tensor];
            queue.submit(operands, &GEMM.words())?;
            drop(row);
            tally.stop(device, &mut queue)?;
            continue;
        }
        let c = pool.take()?;
        region.host_ptr_of(&port, region.dev_addr_of(&port, c.view::<u8>()?.as_ptr(), SLOT)?)?;
        let operands =
            [a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..16)];
        let operands = match queue.submit(operands, &Gemm { n: 17, ..GEMM }.words()) {
            Err(JobError { buffers: Some(operands), .. }) => operands,
            _ => return Err(Error::Busy),
        };
        tally.refused += 1;
        queue.submit(operands, &GEMM.words())?;
        let None = queue.try_next::<4>()? else { return Err(Error::Busy) };
        let ended = queue.wait_device(LIMIT);
        let Some([a, b, bias, c]) = tally.settle(ended, device, &mut queue)? else { continue };
        // Its output is the next one's input.
        let operands = [c.to_device(..), b.to_device(..), bias.to_device(..), a.from_device(..)];
        tally.chained += 1;
        let (a, c) = match queue.run(operands, &GEMM.words(), LIMIT) {
            Ok(Done { buffers: [c, _, _, a], .. }) => (a, c),
            Err(_) => {
                tally.failed += 1;
                tally.stop(device, &mut queue)?;
                continue;
            }
        };
        if compare && (a.view_at::<i8>(..16)? != [127; 16] || c.view_at::<i8>(..16)? != [35; 16]) {
            return Err(Error::Busy);
        }
        tally.good += 1;
    }
    // What a stuck device had came back too.
    if (pool.taken(), region.free_bytes()) == (0, free_bytes) {
        Ok(tally)
    } else {
        Err(Error::Busy)
    }
}

/// The work of every job here, counted as it happened: to listen allocates nothing either.
static LEDGER: Ledger<64> = Ledger::new();

/// Opens a backend and runs the jobs, all of it counted.
fn none_on<B: Backend + 'static>(
    name: &str,
    board: &SimBoard,
    port: Port,
    compare: bool,
    open: impl FnOnce() -> Result<B>,
) {
    // The first test sets it, for all of them.
    let _ = trace::set_listener(&LEDGER);
    let submitted = LEDGER.total(Kind::Submit).calls;
    let device = SimGemm8::new(board, port);
    let (tally, allocations) = count(|| {
        let region = Region::new(open()?)?;
        thousand_jobs(&device, port, &region, compare)
    });
    let tally = tally.unwrap();
    assert!(
        tally.good > 300
            && tally.chained > 400
            && tally.failed > 100
            && tally.stuck > 0
            && tally.refused > 800,
        "{tally:?}"
    );
    assert_eq!(allocations, 0, "{name}: {tally:?}");
    assert!(LEDGER.total(Kind::Submit).calls >= submitted + 500, "{LEDGER:?}");
}

fn board() -> SimBoard {
    SimBoard::with(11, FAULTS)
}

/// A port for real memory: it reaches all of it. On arm64 the runtime maintains the caches;
/// elsewhere the port must snoop.
fn wide(board: &SimBoard) -> Port {
    Port {
        addr_bits: 64,
        window: (0, u64::MAX),
        coherent: !cfg!(target_arch = "aarch64"),
        ..board.port()
    }
}

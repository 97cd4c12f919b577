#![allow(unsafe_code, reason = "windows for drivers are promises, and these touch no memory")]
//! What the tests of all drivers have alike: a board with memory, jobs and their ends, cases in a
//! table, and devices that are not what they should be.

pub(crate) use contigo::mem::DevSlice;
pub(crate) use contigo::sim::stream::{SourceConfig, StreamConfig, packet};
pub(crate) use contigo::sim::{Faults, Model, SimBoard, SimBus, SimDevice, SimSpec, SimWindow};
pub(crate) use contigo::types::{BaseAddr, Refused};
pub(crate) use contigo::{
    Align, Completion, CpuBuf, DevAddr, Device, Done, Driver, Error, Mmio, Operand, PhysAddr, Pool,
    Port, Queue, Region, Result, Wait,
};
pub(crate) use contigo_testkit::lent::{Lent, Watch, Watched};
pub(crate) use contigo_testkit::rounds;
pub(crate) use std::cell::Cell;
pub(crate) use std::ops::RangeBounds;
pub(crate) use std::time::Duration;

/// Every job of these tests ends within this time of the board.
pub(crate) const LIMIT: Duration = Duration::from_millis(20);
pub(crate) const HANG: Faults = Faults { hang: 1000, ..Faults::NONE };
pub(crate) const STUCK: Faults = Faults { stuck: 1000, ..Faults::NONE };

/// Each value matches its pattern; one that does not is named, with what it was.
macro_rules! cases {
    ($($value:expr => $pattern:pat $(if $guard:expr)?),+ $(,)?) => {
        $(match $value {
            $pattern $(if $guard)? => {}
            other => panic!("{}: {other:?}", stringify!($value)),
        })+
    };
}
pub(crate) use cases;

/// A board, memory, and so many buffers of it. 128 KiB are left for descriptors.
pub(crate) fn bench(seed: u64, buffers: usize, bytes: usize) -> (SimBoard, Region, Pool) {
    faulty(seed, Faults::NONE, buffers, bytes)
}

pub(crate) fn faulty(
    seed: u64,
    faults: Faults,
    buffers: usize,
    bytes: usize,
) -> (SimBoard, Region, Pool) {
    let board = SimBoard::with(seed, faults);
    let len_bytes = buffers * bytes.next_multiple_of(64) + (128 << 10);
    let region = region(&board, len_bytes.next_multiple_of(4096));
    let pool = region.pool(buffers, bytes).unwrap();
    (board, region, pool)
}

pub(crate) fn region(board: &SimBoard, len_bytes: usize) -> Region {
    Region::new(board.memory(len_bytes).unwrap()).unwrap()
}

/// Memory for descriptors.
pub(crate) fn ring(region: &Region) -> CpuBuf {
    region.alloc(4096, Align::PAGE).unwrap()
}

/// A device touched no byte that was not its own, and no sync was missing.
#[track_caller]
pub(crate) fn clean(board: &SimBoard) {
    let counts = board.counts();
    assert_eq!(
        [counts.unowned_accesses, counts.stray_accesses, counts.evictions, counts.lost_writes],
        [0; 4]
    );
}

/// A buffer that holds this byte throughout.
pub(crate) fn filled(pool: &Pool, byte: u8) -> CpuBuf {
    let mut buf = pool.take().unwrap();
    buf.view_mut::<u8>().unwrap().fill(byte);
    buf
}

/// A job that sends a part of a buffer.
pub(crate) fn sends(pool: &Pool, range: impl RangeBounds<usize>) -> [Operand; 1] {
    [pool.take().unwrap().to_device(range)]
}

/// A job that receives.
pub(crate) fn receives(pool: &Pool, range: impl RangeBounds<usize>) -> [Operand; 1] {
    [pool.take().unwrap().from_device(range)]
}

/// A job that copies, or computes one buffer from another.
pub(crate) fn copies(
    pool: &Pool,
    from: impl RangeBounds<usize>,
    to: impl RangeBounds<usize>,
) -> [Operand; 2] {
    [pool.take().unwrap().to_device(from), pool.take().unwrap().from_device(to)]
}

/// Jobs of a queue, where anything but the usual has the test failed.
pub(crate) trait Jobs {
    /// Gives it a job, which it takes.
    fn give<const N: usize>(&mut self, operands: [Operand; N]);
    /// Why it does not take a job.
    fn refuses<const N: usize>(&mut self, operands: [Operand; N], words: &[u32]) -> Error;
    /// The next end.
    fn end<const N: usize>(&mut self) -> Done<[CpuBuf; N]>;
    /// The error that is the next end.
    fn fails<const N: usize>(&mut self) -> Error;
    /// After a stop: the ends before it are told, and how many other jobs are taken back.
    fn drain<const N: usize>(&mut self) -> usize;
    /// Stops, and takes back one job.
    fn stop_one<const N: usize>(&mut self);
}

impl<D: Driver> Jobs for Queue<D> {
    #[track_caller]
    fn give<const N: usize>(&mut self, operands: [Operand; N]) {
        self.submit(operands, &[]).unwrap();
    }
    #[track_caller]
    fn refuses<const N: usize>(&mut self, operands: [Operand; N], words: &[u32]) -> Error {
        self.submit(operands, words).unwrap_err().error
    }
    #[track_caller]
    fn end<const N: usize>(&mut self) -> Done<[CpuBuf; N]> {
        self.wait(LIMIT).unwrap().unwrap_or_else(|| panic!("nothing ends"))
    }
    #[track_caller]
    fn fails<const N: usize>(&mut self) -> Error {
        self.wait::<N>(LIMIT).unwrap_err().error
    }
    #[track_caller]
    fn drain<const N: usize>(&mut self) -> usize {
        while self.wait::<N>(Duration::ZERO).unwrap().is_some() {}
        std::iter::from_fn(|| self.take_back::<N>().unwrap()).count()
    }
    #[track_caller]
    fn stop_one<const N: usize>(&mut self) {
        self.stop().unwrap();
        assert!(self.take_back::<N>().unwrap().is_some(), "no job was under way");
    }
}

/// Registers that answer numbers, whatever is written, on a clock that stands.
pub(crate) struct Numbers {
    pub(crate) port: Port,
    pub(crate) len_bytes: usize,
    pub(crate) answer: fn(usize) -> u32,
}

// SAFETY: there is no device.
unsafe impl Mmio for Numbers {
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }
    fn read32(&self, offset: usize) -> u32 {
        (self.answer)(offset)
    }
    unsafe fn write32(&self, _: usize, _: u32) {}
}
impl Wait for Numbers {
    fn now_us(&self) -> u64 {
        0
    }
    fn wait_at_most(&self, _: u32) -> Result<()> {
        Ok(())
    }
}
// SAFETY: as above.
unsafe impl Device for Numbers {
    fn port(&self) -> &Port {
        &self.port
    }
}

/// A device between which and its driver a test stands: it may change what a register says, and
/// what is written, which `None` keeps away.
pub(crate) struct Bent<D, R, W = fn(usize, u32) -> Option<u32>> {
    pub(crate) inner: D,
    pub(crate) len_bytes: usize,
    pub(crate) read: R,
    pub(crate) write: W,
}

impl<D: Device, R: Fn(usize, u32) -> u32> Bent<D, R> {
    pub(crate) fn new(inner: D, read: R) -> Self {
        Self { len_bytes: inner.len_bytes(), inner, read, write: |_, value| Some(value) }
    }
}

impl<D, R> Bent<D, R> {
    /// The same, with what happens to writes.
    pub(crate) fn writing<W: Fn(usize, u32) -> Option<u32>>(self, write: W) -> Bent<D, R, W> {
        Bent { inner: self.inner, len_bytes: self.len_bytes, read: self.read, write }
    }
}

// SAFETY: the registers belong to `inner`. A test that bends what they say of an end gives no
// memory back, and one that changes what is written starts nothing by it.
unsafe impl<D: Device, R: Fn(usize, u32) -> u32, W: Fn(usize, u32) -> Option<u32>> Mmio
    for Bent<D, R, W>
{
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }
    fn read32(&self, offset: usize) -> u32 {
        (self.read)(offset, self.inner.read32(offset))
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        if let Some(value) = (self.write)(offset, value) {
            // SAFETY: the caller's promise.
            unsafe { self.inner.write32(offset, value) }
        }
    }
}
impl<D: Device, R, W> Wait for Bent<D, R, W> {
    contigo::forward!(|this| this.inner => now_us, wait_at_most, arm_irq, looks_before_clock);
}
// SAFETY: `inner`'s.
unsafe impl<D: Device, R: Fn(usize, u32) -> u32, W: Fn(usize, u32) -> Option<u32>> Device
    for Bent<D, R, W>
{
    contigo::forward!(|this| this.inner => port, siblings, simulated);
}

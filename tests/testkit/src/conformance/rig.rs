//! Buffers and a queue on one harness, whatever its memory is like.

use super::xor::Xor;
use super::{Failure, Harness, Verdict};
use crate::ensure;
use contigo::mem::{Requirements, SyncScope};
use contigo::{Align, CpuBuf, DevBuf, Driver, Limits, Operand, Queue, Region};
use std::time::Duration;

/// The longest wait for a job of the suite.
pub const WAIT: Duration = Duration::from_millis(20);

/// Some regions and the buffers in them: neighbours in one block, or one block each where a sync
/// covers all of it.
#[derive(Debug)]
pub struct Rig<'h, H: Harness> {
    harness: &'h H,
    regions: Vec<Region>,
    buffer_bytes: usize,
}

impl<'h, H: Harness> Rig<'h, H> {
    /// Room for `count` buffers of `buffer_bytes`, a multiple of 128: the longest line.
    pub fn new(harness: &'h H, count: usize, buffer_bytes: usize) -> Verdict<Self> {
        let needs =
            |len_bytes| Requirements { len_bytes, align: Align::MIN, ..Requirements::default() };
        let first = Region::with(
            harness.open(count * buffer_bytes)?,
            needs(count * buffer_bytes),
            Limits::default(),
        )?;
        let alone = first.scope() == SyncScope::Whole && !harness.port().coherent;
        let mut regions = vec![first];
        for _ in 1..if alone { count } else { 1 } {
            let backend = harness.open(buffer_bytes)?;
            regions.push(Region::with(backend, needs(buffer_bytes), Limits::default())?);
        }
        Ok(Self { harness, regions, buffer_bytes })
    }

    /// As many buffers as there is room for, in the order of their addresses where they are
    /// neighbours.
    pub fn buffers<const N: usize>(&self) -> Verdict<[CpuBuf; N]> {
        let mut buffers = Vec::new();
        for region in self.regions.iter().cycle().take(N) {
            buffers.push(region.alloc(self.buffer_bytes, Align::MIN)?);
        }
        if self.regions.len() == 1 {
            buffers.sort_by_key(CpuBuf::offset_bytes);
            let places: Vec<_> = buffers.iter().map(CpuBuf::offset_bytes).collect();
            ensure!(
                places.is_sorted_by(|place, next| place + self.buffer_bytes == *next),
                "no neighbours: {places:?}"
            );
        }
        buffers.try_into().map_err(|_| Failure::Wrong("fewer buffers than asked for".into()))
    }

    /// A queue of one job, of `N` operands.
    pub fn queue<const N: usize>(&self) -> Verdict<Queue<Xor<'h, H, N>>> {
        Ok(Queue::new(Xor::new(self.harness), 1)?)
    }

    /// One whose jobs fail when they are started, with all of the work done.
    pub fn queue_that_fails<const N: usize>(&self) -> Verdict<Queue<Xor<'h, H, N>>> {
        Ok(Queue::new(Xor::with_a_start_that_fails(self.harness), 1)?)
    }

    /// How many syncs all regions made.
    pub fn syncs(&self) -> u64 {
        self.regions.iter().map(|region| region.stats().syncs).sum()
    }

    /// How many bytes all regions copied.
    pub fn bytes_copied(&self) -> u64 {
        self.regions.iter().map(|region| region.stats().bytes_copied).sum()
    }

    /// The regions.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }
}

/// The next job's buffers, on the CPU's side.
pub fn ended<const N: usize>(queue: &mut Queue<impl Driver>) -> Verdict<[CpuBuf; N]> {
    Ok(queue.wait(WAIT)?.ok_or(Failure::Wrong("a job did not end".into()))?.buffers)
}

/// One job with this key, whose buffers stay on the device's side.
pub fn on_the_device<const N: usize>(
    queue: &mut Queue<impl Driver>,
    operands: [Operand; N],
    key: u8,
) -> Verdict<[DevBuf; N]> {
    queue.submit(operands, &[key.into()])?;
    Ok(queue.wait_device(WAIT)?.ok_or(Failure::Wrong("a job did not end".into()))?.buffers)
}

/// The buffers of a job that was refused, or that failed with its device stopped.
pub fn kept<T>(buffers: Option<T>) -> Verdict<T> {
    buffers.ok_or(Failure::Wrong("a job without an end kept its buffers".into()))
}

/// Random bytes.
pub fn random_bytes(rng: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

/// Fills a buffer with random bytes, as a user does: in its view. Returns what it wrote.
pub fn scribble(rng: &mut fastrand::Rng, buffer: &mut CpuBuf) -> Verdict<Vec<u8>> {
    let bytes = random_bytes(rng, buffer.len_bytes());
    buffer.view_mut::<u8>()?.copy_from_slice(&bytes);
    Ok(bytes)
}

/// Does the buffer show these bytes?
pub fn expect(what: &str, buffer: &CpuBuf, expected: &[u8]) -> Verdict {
    expect_bytes(what, buffer.view::<u8>()?, expected)
}

/// Are these the bytes?
pub fn expect_bytes(what: &str, found: &[u8], expected: &[u8]) -> Verdict {
    let (have, need) = (found.len(), expected.len());
    ensure!(have == need, "{what}: {have} bytes instead of {need}");
    let mut differ =
        found.iter().zip(expected).enumerate().filter(|(_, (found, right))| found != right);
    let Some((at, (byte, right))) = differ.next() else { return Ok(()) };
    let more = differ.count();
    Err(Failure::Wrong(format!(
        "{what}: byte {at} is {byte:#04x} instead of {right:#04x} (and {more} of {have} more)"
    )))
}

/// The exclusive or of two rows of bytes and a key.
pub fn xor(left: &[u8], right: &[u8], key: u8) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right ^ key).collect()
}

/// Each byte with the key.
pub fn keyed(bytes: &[u8], key: u8) -> Vec<u8> {
    bytes.iter().map(|byte| byte ^ key).collect()
}

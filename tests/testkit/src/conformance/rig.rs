//! Buffers and a queue on one harness, whatever its memory is like.

use super::{Failure, Harness, Verdict, xor::Xor};
use crate::ensure;
use contigo::{
    Align, CpuBuf, DevBuf, Driver, Limits, Operand, Queue, Region,
    mem::{Requirements, SyncScope},
};
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
    ///
    /// # Errors
    /// An error of the harness or of the region.
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
            regions.push(Region::with(
                harness.open(buffer_bytes)?,
                needs(buffer_bytes),
                Limits::default(),
            )?);
        }
        Ok(Self { harness, regions, buffer_bytes })
    }

    /// As many buffers as there is room for, in the order of their addresses where they are
    /// neighbours.
    ///
    /// # Errors
    /// What `alloc` says.
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
    ///
    /// # Errors
    /// What `Queue::new` says.
    pub fn queue<const N: usize>(&self) -> Verdict<Queue<Xor<'h, H, N>>> {
        Ok(Queue::new(Xor::new(self.harness), 1)?)
    }

    /// One whose jobs fail when they are started, with all of the work done.
    ///
    /// # Errors
    /// What `Queue::new` says.
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
///
/// # Errors
/// What `wait` says; [`Failure::Wrong`] where none ends.
pub fn ended<const N: usize>(queue: &mut Queue<impl Driver>) -> Verdict<[CpuBuf; N]> {
    Ok(queue.wait(WAIT)?.ok_or(Failure::Wrong("a job did not end".into()))?.buffers)
}

/// One job with this key, whose buffers stay on the device's side.
///
/// # Errors
/// What `submit` and `wait_device` say; [`Failure::Wrong`] where it does not end.
pub fn on_the_device<const N: usize>(
    queue: &mut Queue<impl Driver>,
    operands: [Operand; N],
    key: u8,
) -> Verdict<[DevBuf; N]> {
    queue.submit(operands, &[key.into()])?;
    Ok(queue.wait_device(WAIT)?.ok_or(Failure::Wrong("a job did not end".into()))?.buffers)
}

/// Random bytes.
pub fn random_bytes(rng: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

/// Fills a buffer with random bytes, as a user does: in its view. Returns what it wrote.
///
/// # Errors
/// What `view_mut` says.
pub fn scribble(rng: &mut fastrand::Rng, buffer: &mut CpuBuf) -> Verdict<Vec<u8>> {
    let bytes = random_bytes(rng, buffer.len_bytes());
    buffer.view_mut::<u8>()?.copy_from_slice(&bytes);
    Ok(bytes)
}

/// Does the buffer show these bytes?
///
/// # Errors
/// [`Failure::Wrong`], with the first byte that differs.
pub fn expect(what: &str, buffer: &CpuBuf, expected: &[u8]) -> Verdict {
    expect_bytes(what, buffer.view::<u8>()?, expected)
}

/// Are these the bytes?
///
/// # Errors
/// [`Failure::Wrong`], with the first byte that differs.
pub fn expect_bytes(what: &str, found: &[u8], expected: &[u8]) -> Verdict {
    ensure!(
        found.len() == expected.len(),
        "{what}: {} bytes instead of {}",
        found.len(),
        expected.len()
    );
    if found == expected {
        return Ok(());
    }
    let mut pairs = found.iter().zip(expected).enumerate();
    let wrong = pairs.clone().filter(|(_, (found, expected))| found != expected).count();
    let (at, values) =
        pairs.find(|(_, (found, expected))| found != expected).unwrap_or((0, (&0, &0)));
    Err(Failure::Wrong(format!(
        "{what}: byte {at} is {:#04x} instead of {:#04x} ({wrong} of {} differ)",
        values.0,
        values.1,
        found.len()
    )))
}

/// The exclusive or of two rows of bytes and a key.
#[must_use]
pub fn xor(left: &[u8], right: &[u8], key: u8) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right ^ key).collect()
}

/// Each byte with the key.
#[must_use]
pub fn keyed(bytes: &[u8], key: u8) -> Vec<u8> {
    bytes.iter().map(|byte| byte ^ key).collect()
}

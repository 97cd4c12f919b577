//! Backends with one thing wrong. The suite is run on them to check itself: each must be caught.
#![allow(
    unsafe_code,
    reason = "implements the unsafe trait Backend, and breaks its third rule on purpose"
)]

use super::{Failure, Harness};
use contigo::mem::{Mapping, SyncScope};
use contigo::sim::BusError;
use contigo::{Backend, DevAddr, Direction, Error, Port, Result, forward};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Nothing.
    None,
    /// No sync for the device is done.
    NoSyncForDevice,
    /// The `n`-th sync for the device is not done; the first is number 0, and is the region's first
    /// touch.
    NoSyncForDeviceOnce(u64),
    /// No sync for the CPU is done.
    NoSyncForCpu,
    /// The `n`-th sync for the CPU is not done; number 0 is the region's first touch.
    NoSyncForCpuOnce(u64),
    /// A range is rounded in to whole lines: its ends are left out.
    RoundedInwards,
    /// A range loses its last line.
    ShortByALine,
    /// A range that the device writes has a line too many on either side.
    RoundedOutwards,
    /// To the device and from the device change places.
    SwappedDirections,
    /// A range begins and ends a line late.
    Shifted,
    /// The `n`-th sync, in either direction, is refused as a kernel may refuse it, and not done;
    /// number 0 is the region's first touch.
    RefusedOnce(u64),
    /// So are the `n`-th and all after it.
    RefusedFrom(u64),
}

/// What [`Mutation::RefusedOnce`] says.
pub const REFUSAL: Error = Error::Contended { tries: 1 };

impl Mutation {
    /// Every mutation that is wrong from the first call to the last.
    pub const ALWAYS: [Self; 7] = [
        Self::NoSyncForDevice,
        Self::NoSyncForCpu,
        Self::RoundedInwards,
        Self::ShortByALine,
        Self::RoundedOutwards,
        Self::SwappedDirections,
        Self::Shifted,
    ];
}

/// A backend that is `inner`, except for one mutation.
#[derive(Debug)]
pub struct Mutant<B> {
    inner: B,
    mutation: Mutation,
    for_device: AtomicU64,
    for_cpu: AtomicU64,
}

impl<B: Backend> Mutant<B> {
    /// Breaks `inner`.
    pub const fn new(inner: B, mutation: Mutation) -> Self {
        Self { inner, mutation, for_device: AtomicU64::new(0), for_cpu: AtomicU64::new(0) }
    }

    fn is_refused(&self) -> bool {
        let call = self.for_device.load(Ordering::Relaxed) + self.for_cpu.load(Ordering::Relaxed);
        match self.mutation {
            Mutation::RefusedOnce(n) => n == call,
            Mutation::RefusedFrom(n) => n <= call,
            _ => false,
        }
    }

    fn range(&self, range: Range<usize>, direction: Direction) -> Range<usize> {
        let Mapping { len_bytes, scope, .. } = self.inner.mapping();
        let line = match scope {
            SyncScope::Range { granule_bytes } => granule_bytes,
            _ => 64,
        };
        let Range { start, end } = range;
        match self.mutation {
            Mutation::RoundedInwards => {
                let end = end / line * line;
                start.next_multiple_of(line).min(end)..end
            }
            Mutation::ShortByALine => start..(end.saturating_sub(1) / line * line).max(start),
            Mutation::RoundedOutwards if direction.device_writes() => {
                start.saturating_sub(line)..(end + line).min(len_bytes)
            }
            Mutation::Shifted => (start + line).min(len_bytes)..(end + line).min(len_bytes),
            _ => start..end,
        }
    }

    fn direction(&self, direction: Direction) -> Direction {
        match (self.mutation, direction) {
            (Mutation::SwappedDirections, Direction::ToDevice) => Direction::FromDevice,
            (Mutation::SwappedDirections, Direction::FromDevice) => Direction::ToDevice,
            _ => direction,
        }
    }
}

// SAFETY: `inner` keeps 1, 2 and 4. 3 is broken, but never outside the block, and its users hold no
// view during a sync. So the wrong bytes are those of a test's buffers, as the test wants.
unsafe impl<B: Backend> Backend for Mutant<B> {
    forward!(|this| this.inner => name, mapping, segment, held_by);

    unsafe fn sync_for_device(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        let refused = self.is_refused();
        let call = self.for_device.fetch_add(1, Ordering::Relaxed);
        match self.mutation {
            _ if refused => Err(REFUSAL),
            Mutation::NoSyncForDevice => Ok(()),
            Mutation::NoSyncForDeviceOnce(n) if n == call => Ok(()),
            // SAFETY: the users of a mutant hold no view during a sync.
            _ => unsafe {
                self.inner.sync_for_device(self.range(range, direction), self.direction(direction))
            },
        }
    }

    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        let refused = self.is_refused();
        let call = self.for_cpu.fetch_add(1, Ordering::Relaxed);
        match self.mutation {
            _ if refused => Err(REFUSAL),
            Mutation::NoSyncForCpu => Ok(()),
            Mutation::NoSyncForCpuOnce(n) if n == call => Ok(()),
            // SAFETY: the users of a mutant hold no view during a sync.
            _ => unsafe {
                self.inner.sync_for_cpu(self.range(range, direction), self.direction(direction))
            },
        }
    }
}

/// A harness whose blocks have one mutation.
#[derive(Debug)]
pub struct Mutated<H> {
    /// The harness.
    pub inner: H,
    /// The fault of its blocks.
    pub mutation: Mutation,
}

impl<H: Harness> Harness for Mutated<H> {
    type Backend = Mutant<H::Backend>;

    fn open(&self, len_bytes: usize) -> Result<Self::Backend, Failure> {
        Ok(Mutant::new(self.inner.open(len_bytes)?, self.mutation))
    }
    fn port(&self) -> Port {
        self.inner.port()
    }
    fn device_read(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        self.inner.device_read(addr, bytes)
    }
    fn device_write(&self, addr: DevAddr, bytes: &[u8]) -> Result<(), BusError> {
        self.inner.device_write(addr, bytes)
    }
    fn probe(&self, addr: DevAddr, bytes: &mut [u8]) -> Result<(), BusError> {
        self.inner.probe(addr, bytes)
    }
    fn unowned_accesses(&self) -> Option<u64> {
        self.inner.unowned_accesses()
    }
    fn sees_freed_memory(&self) -> bool {
        self.inner.sees_freed_memory()
    }
}

//! The counts of a region's life: the numbers that show what the runtime costs.

#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64 as Count;
#[cfg(not(target_has_atomic = "64"))]
use core::sync::atomic::AtomicUsize as Count;
use core::sync::atomic::Ordering::Relaxed;

/// Totals since the region was made, its first touch of the whole block included. Wraps at 2³² on
/// processors without 64-bit atomics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stats {
    /// Cache maintenance calls: each is one system call on u-dma-buf, none on arm64's huge pages or
    /// in the simulator.
    pub syncs: u64,
    /// Bytes made visible to devices, rounded out to whole lines where devices write.
    pub bytes_synced_for_device: u64,
    /// Bytes taken back for the CPU.
    pub bytes_synced_for_cpu: u64,
    /// Bytes that [`CpuBuf::copy_from_slice`](crate::CpuBuf::copy_from_slice) copied: the only copy
    /// in the runtime.
    pub bytes_copied: u64,
    /// Blocks allocated.
    pub carves: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) syncs: Counter,
    pub(crate) bytes_synced_for_device: Counter,
    pub(crate) bytes_synced_for_cpu: Counter,
    pub(crate) bytes_copied: Counter,
    pub(crate) carves: Counter,
}

impl Counters {
    pub(crate) fn snapshot(&self) -> Stats {
        Stats {
            syncs: self.syncs.get(),
            bytes_synced_for_device: self.bytes_synced_for_device.get(),
            bytes_synced_for_cpu: self.bytes_synced_for_cpu.get(),
            bytes_copied: self.bytes_copied.get(),
            carves: self.carves.get(),
        }
    }
}

/// A count that threads add to without an order.
#[derive(Debug, Default)]
pub struct Counter(Count);

impl Counter {
    #[cfg(feature = "audit")]
    pub(crate) const fn new() -> Self {
        Self(Count::new(0))
    }

    /// Adds `n`.
    pub fn add(&self, n: usize) {
        #[allow(
            clippy::useless_conversion,
            reason = "the counter is 32 bits wide on processors without 64-bit atomics"
        )]
        self.0.fetch_add(n as _, Relaxed);
    }

    /// As [`add`](Self::add), under a lock that keeps all others from adding.
    pub(crate) fn add_alone(&self, n: usize) {
        #[allow(clippy::useless_conversion, reason = "as above")]
        self.0.store(self.0.load(Relaxed).wrapping_add(n as _), Relaxed);
    }

    /// The count so far.
    #[allow(
        clippy::unnecessary_cast,
        reason = "the counter is 32 bits wide on processors without 64-bit atomics"
    )]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed) as u64
    }
}

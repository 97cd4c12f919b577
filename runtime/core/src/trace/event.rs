//! The events of a run, one by one.

use crate::types::BaseAddr;
use core::fmt;

/// One thing that the runtime did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Event {
    /// A block of DMA memory was mapped, checked and touched: a [`Region`](crate::Region) was made.
    /// The only allocation of memory.
    Map {
        /// The backend's name.
        memory: &'static str,
        /// Where the block is.
        base: BaseAddr,
        /// Its size.
        len_bytes: usize,
    },
    /// A region was dropped, and its block given back.
    Unmap {
        /// The block's size.
        len_bytes: usize,
    },
    /// A block was mapped for one device behind an IOMMU.
    MapForDevice {
        /// The I/O virtual address.
        iova: u64,
        /// The block's size.
        len_bytes: usize,
    },
    /// Such a block was unmapped for its device.
    UnmapForDevice {
        /// The I/O virtual address.
        iova: u64,
        /// The block's size.
        len_bytes: usize,
    },
    /// A device's registers were mapped.
    MapRegisters {
        /// Their size.
        len_bytes: usize,
    },
    /// A range of a region was planned.
    CarveBytes {
        /// Where it begins, from the beginning of the region.
        offset_bytes: usize,
        /// Its size.
        len_bytes: usize,
    },
    /// A pool or an arena gave a buffer out.
    Take {
        /// The slot's or the block's number.
        slot: usize,
        /// Its size.
        len_bytes: usize,
    },
    /// A buffer came back to its pool or arena.
    Release {
        /// The slot's or the block's number.
        slot: usize,
    },
    /// Bytes were copied.
    CopyBytes {
        /// How many.
        len_bytes: usize,
    },
    /// Bytes that the CPU wrote were made visible to devices: cleaned, or cleaned and invalidated.
    SyncForDevice {
        /// Where, from the beginning of the block.
        offset_bytes: usize,
        /// How many bytes.
        len_bytes: usize,
    },
    /// Bytes that devices wrote were made visible to the CPU: invalidated.
    SyncForCpu {
        /// Where, from the beginning of the block.
        offset_bytes: usize,
        /// How many bytes.
        len_bytes: usize,
    },
    /// A job was given to a device.
    Submit {
        /// The device's port.
        port: &'static str,
        /// The queue's count of jobs, from 1: one more than what `submit` returned.
        job: u64,
    },
    /// A job's result came back.
    Complete {
        /// The device's port.
        port: &'static str,
        /// The queue's count of jobs, from 1: one more than what `submit` returned.
        job: u64,
    },
    /// A job ended without a result: it did not start, timed out or failed. The device was stopped,
    /// or a `Leak` follows. Jobs that a program cancels by stopping or dropping a queue are not
    /// reported.
    Stop {
        /// The device's port.
        port: &'static str,
        /// The oldest job that the device had, counted as in `Submit`.
        job: u64,
    },
    /// A buffer went to a framework as a tensor.
    Lend,
    /// The framework called a tensor's deleter.
    Return,
    /// Memory is kept for ever, because a device or a framework may still use it.
    Leak {
        /// How much; 0 if only its owner knew.
        len_bytes: usize,
    },
}

/// The kind of an [`Event`], without its numbers: a `Ledger` counts by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[allow(missing_docs, reason = "as in `Event`")]
pub enum Kind {
    Map,
    Unmap,
    MapForDevice,
    UnmapForDevice,
    MapRegisters,
    CarveBytes,
    Take,
    Release,
    CopyBytes,
    SyncForDevice,
    SyncForCpu,
    Submit,
    Complete,
    Stop,
    Lend,
    Return,
    Leak,
}

impl Event {
    /// The event's kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Map { .. } => Kind::Map,
            Self::Unmap { .. } => Kind::Unmap,
            Self::MapForDevice { .. } => Kind::MapForDevice,
            Self::UnmapForDevice { .. } => Kind::UnmapForDevice,
            Self::MapRegisters { .. } => Kind::MapRegisters,
            Self::CarveBytes { .. } => Kind::CarveBytes,
            Self::Take { .. } => Kind::Take,
            Self::Release { .. } => Kind::Release,
            Self::CopyBytes { .. } => Kind::CopyBytes,
            Self::SyncForDevice { .. } => Kind::SyncForDevice,
            Self::SyncForCpu { .. } => Kind::SyncForCpu,
            Self::Submit { .. } => Kind::Submit,
            Self::Complete { .. } => Kind::Complete,
            Self::Stop { .. } => Kind::Stop,
            Self::Lend => Kind::Lend,
            Self::Return => Kind::Return,
            Self::Leak { .. } => Kind::Leak,
        }
    }

    /// The event's count of bytes; 0 if it has none.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        match *self {
            Self::Map { len_bytes, .. }
            | Self::Unmap { len_bytes }
            | Self::MapForDevice { len_bytes, .. }
            | Self::UnmapForDevice { len_bytes, .. }
            | Self::MapRegisters { len_bytes }
            | Self::CarveBytes { len_bytes, .. }
            | Self::Take { len_bytes, .. }
            | Self::CopyBytes { len_bytes }
            | Self::SyncForDevice { len_bytes, .. }
            | Self::SyncForCpu { len_bytes, .. }
            | Self::Leak { len_bytes } => len_bytes,
            Self::Release { .. }
            | Self::Submit { .. }
            | Self::Complete { .. }
            | Self::Stop { .. }
            | Self::Lend
            | Self::Return => 0,
        }
    }
}

impl Kind {
    /// All kinds, in the order of a run.
    pub const ALL: [Self; 17] = [
        Self::Map,
        Self::Unmap,
        Self::MapForDevice,
        Self::UnmapForDevice,
        Self::MapRegisters,
        Self::CarveBytes,
        Self::Take,
        Self::Release,
        Self::CopyBytes,
        Self::SyncForDevice,
        Self::SyncForCpu,
        Self::Submit,
        Self::Complete,
        Self::Stop,
        Self::Lend,
        Self::Return,
        Self::Leak,
    ];

    /// Its name in tables and timelines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Unmap => "unmap",
            Self::MapForDevice => "map for device",
            Self::UnmapForDevice => "unmap for device",
            Self::MapRegisters => "map registers",
            Self::CarveBytes => "carve",
            Self::Take => "take",
            Self::Release => "release",
            Self::CopyBytes => "copy",
            Self::SyncForDevice => "sync for device",
            Self::SyncForCpu => "sync for cpu",
            Self::Submit => "submit",
            Self::Complete => "complete",
            Self::Stop => "stop",
            Self::Lend => "lend",
            Self::Return => "return",
            Self::Leak => "leak",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind().name();
        match *self {
            Self::Map { memory, base, len_bytes } => {
                write!(f, "{name} {len_bytes} bytes of {memory} at {:#x}", base.raw())
            }
            Self::MapForDevice { iova, len_bytes } | Self::UnmapForDevice { iova, len_bytes } => {
                write!(f, "{name} {len_bytes} bytes at {iova:#x}")
            }
            Self::CarveBytes { offset_bytes, len_bytes } => {
                write!(f, "{name} {len_bytes} bytes at {offset_bytes}")
            }
            Self::Take { slot, len_bytes } => write!(f, "{name} slot {slot}, {len_bytes} bytes"),
            Self::Release { slot } => write!(f, "{name} slot {slot}"),
            Self::SyncForDevice { offset_bytes, len_bytes }
            | Self::SyncForCpu { offset_bytes, len_bytes } => {
                write!(f, "{name} {offset_bytes}..{}", offset_bytes.saturating_add(len_bytes))
            }
            Self::Submit { port, job }
            | Self::Complete { port, job }
            | Self::Stop { port, job } => write!(f, "{name} job {job} on {port}"),
            Self::Lend | Self::Return => f.write_str(name),
            Self::Unmap { len_bytes }
            | Self::MapRegisters { len_bytes }
            | Self::CopyBytes { len_bytes }
            | Self::Leak { len_bytes } => {
                write!(f, "{name} {len_bytes} bytes")
            }
        }
    }
}

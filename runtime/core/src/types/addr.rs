//! Addresses, each space a type of its own, and the direction of a job.
//!
//! A CPU pointer, a physical address and a bus address are three different numbers that often look
//! alike. On a Cyclone V the same byte is `0x0010_0000` to the FPGA-to-SDRAM port and `0x8010_0000`
//! to the ACP port; behind an IOMMU nothing looks alike at all. So none of them converts into
//! another without a [`Port`](crate::Port) that says how.

use core::fmt;

/// Where the CPU's memory controller finds a byte. Only a [`Port`](crate::Port) turns it into a
/// [`DevAddr`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PhysAddr(pub u64);

/// A bus address: what one bus master must put on its address lines. Never a pointer, never a
/// `usize`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DevAddr(pub u64);

/// Where a block begins, as its backend knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BaseAddr {
    /// A physical address: each port adds its own offset.
    Phys(PhysAddr),
    /// A bus address that the kernel has already translated for the device (`dma-ranges`, an IOMMU,
    /// CUDA): no port adds anything.
    Dev(DevAddr),
}

impl BaseAddr {
    /// The bare number, for messages and for checks that hold in either space (alignment,
    /// contiguity, width).
    #[must_use]
    pub const fn raw(self) -> u64 {
        match self {
            Self::Phys(PhysAddr(raw)) | Self::Dev(DevAddr(raw)) => raw,
        }
    }

    /// The address of the byte at `offset_bytes` from here. A block that passed `Region`'s checks
    /// does not wrap.
    pub(crate) const fn plus(self, offset_bytes: usize) -> Self {
        match self {
            Self::Phys(PhysAddr(raw)) => {
                Self::Phys(PhysAddr(raw.wrapping_add(offset_bytes as u64)))
            }
            Self::Dev(DevAddr(raw)) => Self::Dev(DevAddr(raw.wrapping_add(offset_bytes as u64))),
        }
    }
}

/// Which bus an address is valid on. An FPGA must never be given a GPU's address: CUDA-pinned
/// memory is page-locked, not contiguous for another master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Bus {
    /// The SoC's interconnect (AXI, or PCI Express on a PC).
    Soc,
    /// The address space of a GPU, by the GPU's ordinal: memory that was mapped for one is refused
    /// at another.
    Gpu(u32),
    /// A simulated board's: each board is a bus of its own, by number.
    Sim(u32),
    /// An I/O address space behind an IOMMU: each is a bus of its own, by number, because the same
    /// address means other memory in each.
    Iommu(u32),
    /// The memory objects of a GPU's context (Vulkan, OpenCL): each context is a bus of its own, by
    /// number. An address there is an object and an offset in it, and means nothing to a master.
    Objects(u32),
}

/// The direction of one job: does the device read a buffer's bytes, write them, or both? The names
/// are the kernel's (`enum dma_data_direction`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Direction {
    /// The device only reads.
    ToDevice,
    /// The device only writes. Bytes that the CPU wrote there before may be lost.
    FromDevice,
    /// The device reads and writes.
    Bidirectional,
}

impl Direction {
    /// Does the device read these bytes?
    #[must_use]
    pub const fn device_reads(self) -> bool {
        matches!(self, Self::ToDevice | Self::Bidirectional)
    }

    /// Does the device write these bytes?
    #[must_use]
    pub const fn device_writes(self) -> bool {
        matches!(self, Self::FromDevice | Self::Bidirectional)
    }

    /// The device's part in words, for a text that C and Python show too.
    pub(crate) const fn device_does(self) -> &'static str {
        match self {
            Self::ToDevice => "reads",
            Self::FromDevice => "writes",
            Self::Bidirectional => "reads and writes",
        }
    }
}

impl fmt::Debug for PhysAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PhysAddr({self})")
    }
}

impl fmt::Display for PhysAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for DevAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DevAddr({self})")
    }
}

impl fmt::Display for DevAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

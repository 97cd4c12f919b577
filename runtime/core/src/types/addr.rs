//! Addresses, with a separate type for each address space, and the direction of a job.
//!
//! A CPU pointer, a physical address and a bus address are three different numbers that often look
//! alike. On a Cyclone V the same byte is `0x0010_0000` to the FPGA-to-SDRAM port and `0x8010_0000`
//! to the ACP port; behind an IOMMU the numbers do not even look alike. So no address converts into
//! another without a [`Port`](crate::Port), which knows the offset.

use core::fmt;

/// Where the CPU's memory controller finds a byte. Only a [`Port`](crate::Port) turns it into a
/// [`DevAddr`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PhysAddr(pub u64);

/// A bus address: the number that one bus master puts on its address lines. Never a pointer, never
/// a `usize`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DevAddr(pub u64);

/// Where a block begins, as its backend reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BaseAddr {
    /// A physical address: each port adds its own offset.
    Phys(PhysAddr),
    /// A bus address that the kernel has already translated for the device (`dma-ranges`, an IOMMU,
    /// CUDA): no port adds an offset.
    Dev(DevAddr),
}

impl BaseAddr {
    /// The bare number, for messages and for checks that are valid in both spaces (alignment,
    /// contiguity, width).
    #[must_use]
    pub const fn raw(self) -> u64 {
        match self {
            Self::Phys(PhysAddr(raw)) | Self::Dev(DevAddr(raw)) => raw,
        }
    }

    /// The address of the byte `offset_bytes` further. In a block that passed `Region`'s checks it
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
    /// The address space of a GPU, by the GPU's ordinal. Memory that was mapped for one GPU is
    /// refused at another.
    Gpu(u32),
    /// A simulated board, by number: each board is a bus of its own.
    Sim(u32),
    /// An I/O address space behind an IOMMU, by number. Each is a bus of its own, because the same
    /// address means different memory in each.
    Iommu(u32),
    /// The memory objects of a GPU's context (Vulkan, OpenCL), by number: each is a bus of its own.
    /// An address there is an object and an offset in it, and means nothing to a bus master.
    Objects(u32),
}

/// The direction of one job: whether the device reads a buffer's bytes, writes them, or both. The
/// names are the kernel's (`enum dma_data_direction`).
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
    /// Returns whether the device reads these bytes.
    #[must_use]
    pub const fn device_reads(self) -> bool {
        matches!(self, Self::ToDevice | Self::Bidirectional)
    }

    /// Returns whether the device writes these bytes.
    #[must_use]
    pub const fn device_writes(self) -> bool {
        matches!(self, Self::FromDevice | Self::Bidirectional)
    }

    /// What the device does, in words, for a text that C and Python show too.
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

#![allow(
    clippy::indexing_slicing,
    reason = "a table that is too short for what it holds is a mistake in this fake"
)]
//! The settings of the fake's machine, and the events of the log.

use super::abi::Type1Info;
use super::iommufd::{IoasIovaRanges, IovaRange};
use super::{DEVICE, GROUP};

pub use super::pci::Kind as PciKind;

/// The number of the only I/O address space of iommufd.
pub(super) const IOAS: u32 = 5;
/// From one region to the next in a device's file.
pub(super) const REGION_STEP: u64 = 1 << 20;
/// A device's file.
pub(super) const FILE_BYTES: i64 = 8 << 20;

/// By which files a device is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Its group and a container.
    Group,
    /// Its own file and iommufd.
    Iommufd,
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `/dev/vfio/vfio`.
    Container,
    /// `/dev/vfio/<group>`.
    Group,
    /// The device, from its group.
    DeviceOfGroup,
    /// `/dev/vfio/devices/vfio<number>`.
    Device,
    /// `/dev/iommu`.
    Iommufd,
    /// An eventfd.
    Event,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A file was closed.
    Closed(Kind),
    /// A block was unmapped.
    Unmapped {
        /// Where.
        iova: u64,
        /// How many bytes.
        size: u64,
    },
    /// The command register was written: may the function master the bus?
    BusMaster(bool),
    /// The function was reset.
    Reset,
    /// An interrupt was turned on or off.
    Irq(u32, bool),
    /// The line was unmasked.
    Unmasked,
}

/// The settings of the machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The function's IOMMU group.
    pub group: Option<u32>,
    /// It is one of VFIO's without an IOMMU.
    pub no_iommu: bool,
    /// The function's number as a VFIO device.
    pub device: Option<u32>,
    /// Errno of opening `/dev/vfio/devices/vfio<number>`; 0: it opens.
    pub device_file: i32,
    /// The same of `/dev/iommu`.
    pub iommu_file: i32,
    /// The same of `/dev/vfio/<group>`.
    pub group_file: i32,
    /// The same of `/dev/vfio/vfio`.
    pub container_file: i32,
    /// No device of the group has a driver of the kernel's.
    pub viable: bool,
    /// The function is bound to vfio-pci.
    pub bound: bool,
    /// The module vfio_iommu_type1 is there.
    pub type1: bool,
    /// The IOMMU makes every access snoop.
    pub enforces_snooping: bool,
    /// The kernel's version.
    pub release: (u32, u32),
    /// RLIMIT_MEMLOCK.
    pub pin_limit_bytes: Option<u64>,
    /// The addresses that are allowed, each range by its first and its last.
    pub ranges: Vec<(u64, u64)>,
    /// The kernel tells them.
    pub tells_ranges: bool,
    /// A capability's place is a multiple of this: 8 since Linux 6.5, 4 before.
    pub capability_align: usize,
    /// The chain of capabilities leads nowhere.
    pub broken_chain: bool,
    /// It is a PCI device.
    pub is_pci: bool,
    /// The kernel can reset the function.
    pub resets: bool,
    /// Bytes of BAR 0.
    pub bar_bytes: u64,
    /// BAR 0 can be mapped.
    pub maps: bool,
    /// The capability that BAR 0 has: 1, parts of it are left out; 3, it has the MSI-X table.
    pub bar_capability: Option<u16>,
    /// How many interrupts there are: INTx, MSI, MSI-X.
    pub irqs: [u32; 3],
    /// An unmapping leaves so many bytes mapped, and reports so many fewer.
    pub unmaps_less: u64,
    /// The kind of the function.
    pub pci: PciKind,
    /// Bits of the command register that can be set.
    pub command_mask: u16,
}

impl Default for Machine {
    /// `virt` with an SMMU, Linux 6.12 with both ways, and a function that is well made.
    fn default() -> Self {
        Self {
            group: Some(GROUP),
            no_iommu: false,
            device: Some(DEVICE),
            device_file: 0,
            iommu_file: 0,
            group_file: 0,
            container_file: 0,
            viable: true,
            bound: true,
            type1: true,
            enforces_snooping: false,
            release: (6, 12),
            pin_limit_bytes: None,
            ranges: vec![(0, 0x7FF_FFFF), (0x810_0000, 0xFFFF_FFFF_FFFF)],
            tells_ranges: true,
            capability_align: 8,
            broken_chain: false,
            is_pci: true,
            resets: true,
            bar_bytes: 4096,
            maps: true,
            bar_capability: None,
            irqs: [1, 1, 0],
            unmaps_less: 0,
            pci: PciKind::Express,
            command_mask: 0b111,
        }
    }
}

impl Machine {
    /// The same machine with one way only.
    pub fn with(way: Way) -> Self {
        match way {
            Way::Group => Self { device_file: libc::ENOENT, ..Self::default() },
            Way::Iommufd => Self { group_file: libc::ENOENT, ..Self::default() },
        }
    }

    /// VFIO_IOMMU_GET_INFO: two other capabilities first, as Linux 6.12 has them. Each begins with
    /// a word of its number and version, and one that says where the next one is, from the
    /// beginning of the struct, which has 24 bytes before them.
    #[allow(clippy::cast_possible_truncation, reason = "a struct of 1 KiB")]
    pub(super) fn type1_info(&self, info: &mut Type1Info) -> Result<i32, i32> {
        let mut chain: Vec<(u32, Vec<u32>)> = vec![(2, vec![0; 6]), (3, vec![65_535])];
        if self.tells_ranges {
            let pairs = self.ranges.iter().flat_map(|&(start, last)| [start, last]);
            let words = pairs.flat_map(|value| [value as u32, (value >> 32) as u32]);
            chain.push((1, [self.ranges.len() as u32, 0].into_iter().chain(words).collect()));
        }
        let mut words: Vec<u32> = Vec::new();
        let count = chain.len();
        for (index, (id, body)) in chain.into_iter().enumerate() {
            let end = (words.len() + 2 + body.len()).next_multiple_of(self.capability_align / 4);
            let next = match index + 1 < count {
                _ if self.broken_chain => 24,
                true => 24 + end as u32 * 4,
                false => 0,
            };
            words.extend([id | 1 << 16, next]);
            words.extend(body);
            words.resize(end, 0);
        }
        info.flags = 0b11;
        if words.len() > info.caps.len() {
            (info.argsz, info.cap_offset) = (24 + words.len() as u32 * 4, 0);
        } else {
            info.caps[..words.len()].copy_from_slice(&words);
            info.cap_offset = 24;
        }
        Ok(0)
    }

    /// IOMMU_IOAS_IOVA_RANGES.
    pub(super) fn iova_ranges(
        &self,
        ask: &mut IoasIovaRanges,
        room: &mut [IovaRange],
    ) -> Result<i32, i32> {
        for (to, &(start, last)) in room.iter_mut().zip(&self.ranges) {
            *to = IovaRange { start, last };
        }
        ask.num_iovas = u32::try_from(self.ranges.len()).unwrap_or(u32::MAX);
        if self.ranges.len() > room.len() { Err(libc::EMSGSIZE) } else { Ok(0) }
    }
}

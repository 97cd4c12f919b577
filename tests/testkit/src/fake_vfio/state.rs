#![allow(clippy::indexing_slicing, reason = "an index was just found")]
//! The fake kernel's memory of past calls, and its rules.

use super::abi::{IrqInfo, IrqSet, RegionInfo};
use super::iommu::Iommu;
use super::machine::{Event, IOAS, Kind, Machine, REGION_STEP, Way};
use super::pci::Pci;
use super::request::Request;
use super::uapi;
use nix::errno::Errno;
use std::os::fd::OwnedFd;

/// The kernel's memory of past calls.
#[derive(Debug)]
pub(super) struct State {
    pub(super) machine: Machine,
    /// Which call fails, after how many that do not, and how.
    pub(super) faults: Vec<(&'static str, usize, Errno)>,
    /// Which access of the configuration space does one byte less.
    pub(super) shortened: Option<&'static str>,
    pub(super) log: Vec<Event>,
    /// The open files, by their descriptors.
    pub(super) open: Vec<(i32, Kind)>,
    pub(super) iommu: Iommu,
    pub(super) pci: Pci,
    /// Which kind signals which eventfd, and whether it is masked.
    pub(super) irq: Option<(u32, i32, bool)>,
    /// The device's file of a group, not taken over by the program yet.
    pub(super) made: Option<OwnedFd>,
    has_container: bool,
    iommu_set: bool,
    /// The descriptors of the device's file that is bound, and of the iommufd that it is bound to.
    bound: Option<(i32, i32)>,
    attached: bool,
}

impl State {
    pub(super) fn new(machine: Machine) -> Self {
        let pci = Pci::new(machine.pci, machine.command_mask);
        Self {
            machine,
            faults: Vec::new(),
            shortened: None,
            log: Vec::new(),
            open: Vec::new(),
            iommu: Iommu::default(),
            pci,
            irq: None,
            made: None,
            has_container: false,
            iommu_set: false,
            bound: None,
            attached: false,
        }
    }

    /// Fails where a test said so.
    pub(super) fn strike(&mut self, call: &str) -> Result<(), i32> {
        let Some(index) = self.faults.iter().position(|(other, ..)| *other == call) else {
            return Ok(());
        };
        match &mut self.faults[index].1 {
            0 => Err(self.faults.remove(index).2 as i32),
            left => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// How many of so many bytes an access of the configuration space does.
    pub(super) fn count(&mut self, call: &str, len: usize) -> usize {
        len - usize::from(self.shortened.take_if(|other| *other == call).is_some())
    }

    pub(super) fn may_open(&mut self, path: &str) -> Result<Kind, i32> {
        let (kind, call, errno) = match path {
            "/dev/vfio/vfio" => {
                (Kind::Container, "open(/dev/vfio/vfio)", self.machine.container_file)
            }
            "/dev/iommu" => (Kind::Iommufd, "open(/dev/iommu)", self.machine.iommu_file),
            "/dev/vfio/7" => (Kind::Group, "open(/dev/vfio/<group>)", self.machine.group_file),
            "/dev/vfio/devices/vfio3" => {
                (Kind::Device, "open(/dev/vfio/devices/vfio<number>)", self.machine.device_file)
            }
            _ => return Err(libc::ENOENT),
        };
        self.strike(call)?;
        match kind {
            _ if errno != 0 => Err(errno),
            Kind::Group if self.group_open() || self.bound.is_some() => Err(libc::EBUSY),
            _ => Ok(kind),
        }
    }

    fn group_open(&self) -> bool {
        self.open.iter().any(|(_, kind)| *kind == Kind::Group)
    }

    /// Is the descriptor that of an open file of this kind?
    fn is(&self, fd: i32, kind: Kind) -> bool {
        self.open.contains(&(fd, kind))
    }

    /// The last close: `vfio_pci_core_disable` stops the function; a container without a group, or
    /// an address space without its file, unmaps everything. A file that was never bound changes
    /// nothing.
    pub(super) fn close(&mut self, kind: Kind, fd: i32) {
        self.open.retain(|(other, _)| *other != fd);
        if kind != Kind::Event {
            self.log.push(Event::Closed(kind));
        }
        let bound = self.bound.is_some_and(|(device, iommufd)| device == fd || iommufd == fd);
        match kind {
            Kind::DeviceOfGroup => {
                self.pci.stop();
                self.irq = None;
            }
            Kind::Device if bound => {
                self.pci.stop();
                self.irq = None;
                self.bound = self.bound.map(|(_, iommufd)| (-1, iommufd));
                self.attached = false;
            }
            Kind::Group => {
                (self.has_container, self.iommu_set) = (false, false);
                self.iommu.clear();
            }
            Kind::Iommufd if bound => {
                self.bound = None;
                self.iommu.clear();
            }
            Kind::Device | Kind::Iommufd | Kind::Container | Kind::Event => {}
        }
    }

    /// Is the device in an address space, so that its file may be used?
    pub(super) const fn is_usable(&self) -> Result<(), i32> {
        if (self.has_container && self.iommu_set) || self.attached {
            Ok(())
        } else {
            Err(libc::EINVAL)
        }
    }

    pub(super) fn set_container(&mut self, container: i32) -> Result<i32, i32> {
        if self.has_container || !self.is(container, Kind::Container) {
            return Err(libc::EINVAL);
        }
        if !self.machine.viable {
            return Err(libc::EBUSY);
        }
        self.has_container = true;
        Ok(0)
    }

    pub(super) fn extension(&self, extension: u32) -> i32 {
        match extension {
            uapi::TYPE1V2_IOMMU => i32::from(self.machine.type1),
            // Linux before 5.19 answers whether it maps memory as cacheable; since then whether the
            // IOMMU enforces it.
            uapi::DMA_CC_IOMMU => i32::from(self.iommu_set && self.machine.enforces_snooping),
            _ => 0,
        }
    }

    pub(super) fn set_iommu(&mut self, iommu: u32) -> Result<i32, i32> {
        if !self.has_container || iommu != uapi::TYPE1V2_IOMMU || !self.machine.type1 {
            return Err(libc::EINVAL);
        }
        self.iommu_set = true;
        Ok(0)
    }

    pub(super) fn bind(&mut self, device: i32, iommufd: i32) -> Result<i32, i32> {
        if self.group_open() || !self.machine.viable {
            return Err(libc::EBUSY);
        }
        if self.bound.is_some() || !self.is(iommufd, Kind::Iommufd) {
            return Err(libc::EINVAL);
        }
        self.bound = Some((device, iommufd));
        Ok(0)
    }

    pub(super) fn attach(&mut self, ioas: u32) -> Result<i32, i32> {
        if self.bound.is_none() || ioas != IOAS {
            return Err(libc::EINVAL);
        }
        self.attached = true;
        Ok(0)
    }

    pub(super) fn map(&mut self, way: Way, vaddr: u64, iova: u64, size: u64) -> Result<i32, i32> {
        let last = iova + size - 1;
        if !self.machine.ranges.iter().any(|range| range.0 <= iova && last <= range.1) {
            return Err(libc::EINVAL);
        }
        if self.machine.pin_limit_bytes.is_some_and(|limit| self.iommu.bytes() + size > limit) {
            return Err(libc::ENOMEM);
        }
        if way == Way::Iommufd && !self.attached {
            return Err(libc::ENOENT);
        }
        self.iommu.map(vaddr, iova, size).map(|()| 0)
    }

    pub(super) fn unmap(&mut self, way: Way, iova: u64, size: &mut u64) -> Result<i32, i32> {
        if self.machine.unmaps_less > 0 {
            *size -= self.machine.unmaps_less;
            return Ok(0);
        }
        *size = self.iommu.unmap(iova, *size)?;
        if *size == 0 && way == Way::Iommufd {
            return Err(libc::ENOENT);
        }
        self.log.push(Event::Unmapped { iova, size: *size });
        Ok(0)
    }

    /// Where a device's file has the configuration space.
    pub(super) fn config_at(&self, kind: Kind, offset: u64) -> Result<usize, i32> {
        self.is_usable()?;
        let at =
            offset.checked_sub(u64::from(uapi::CONFIG_REGION) * REGION_STEP).ok_or(libc::EINVAL)?;
        match kind {
            Kind::Device | Kind::DeviceOfGroup => usize::try_from(at).map_err(|_| libc::EINVAL),
            _ => Err(libc::EINVAL),
        }
    }

    pub(super) fn device_ioctl(&mut self, request: Request<'_>) -> Result<i32, i32> {
        self.is_usable()?;
        match request {
            Request::DeviceInfo(info) => {
                info.flags = if self.machine.is_pci { uapi::IS_PCI } else { 1 << 2 };
                info.flags |= if self.machine.resets { uapi::CAN_RESET } else { 0 };
            }
            Request::RegionInfo(info) => self.region(info),
            Request::IrqInfo(info) => self.irq_info(info)?,
            Request::SetIrqs(set) => self.set_irqs(set)?,
            Request::Reset => {
                if !self.machine.resets {
                    return Err(libc::EINVAL);
                }
                self.log.push(Event::Reset);
            }
            _ => return Err(libc::ENOTTY),
        }
        Ok(0)
    }

    fn region(&self, info: &mut RegionInfo) {
        info.offset = u64::from(info.index) * REGION_STEP;
        info.size = if info.index == 0 { self.machine.bar_bytes } else { 0 };
        info.flags = if info.index == 0 { 0b11 } else { 0 };
        if info.index == uapi::CONFIG_REGION {
            (info.size, info.flags) = (256, 0b11);
        }
        if info.index != 0 || info.size == 0 || !self.machine.maps {
            return;
        }
        info.flags |= uapi::MMAP;
        if let Some(capability) = self.machine.bar_capability {
            info.flags |= uapi::CAPS;
            (info.caps[0], info.caps[1]) = (u32::from(capability) | 1 << 16, 0);
            // More than there is room for.
            if capability == u16::MAX { info.argsz += 4096 } else { info.cap_offset = 32 }
        }
    }

    fn irq_info(&self, info: &mut IrqInfo) -> Result<(), i32> {
        info.count = *self.machine.irqs.get(info.index as usize).ok_or(libc::EINVAL)?;
        info.flags = uapi::EVENTFD;
        Ok(())
    }

    fn set_irqs(&mut self, set: &IrqSet) -> Result<(), i32> {
        if self.machine.irqs.get(set.index as usize).is_none_or(|count| *count == 0) {
            return Err(libc::EINVAL);
        }
        let (turns_on, has_none) = (uapi::DATA_EVENTFD | uapi::TRIGGER, self.irq.is_none());
        let (turns_off, unmasks) =
            (uapi::DATA_NONE | uapi::TRIGGER, uapi::DATA_NONE | uapi::UNMASK);
        match (set.flags, set.count, set.argsz) {
            (flags, 1, 24) if flags == turns_on && has_none && self.is(set.data, Kind::Event) => {
                self.irq = Some((set.index, set.data, false));
                self.log.push(Event::Irq(set.index, true));
            }
            (flags, 0, 20) if flags == turns_off => {
                self.irq = None;
                self.log.push(Event::Irq(set.index, false));
            }
            (flags, 1, 20) if flags == unmasks && set.index == uapi::INTX => {
                let (index, eventfd, _) = self.irq.ok_or(libc::EINVAL)?;
                self.irq = Some((index, eventfd, false));
                self.log.push(Event::Unmasked);
            }
            _ => return Err(libc::EINVAL),
        }
        Ok(())
    }
}

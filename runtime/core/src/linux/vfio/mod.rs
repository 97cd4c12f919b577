//! A PCI device behind an IOMMU: its memory, its registers and its interrupt, through VFIO, with no
//! privilege but access to its file.
//!
//! ```text
//!   Vfio ────────┬──► VfioMemory ──► Region ──► …      pages of this process, pinned; one run of I/O addresses
//!   the device,  │
//!   in an I/O    └──► VfioDevice ──► a driver ──► Queue     registers, interrupt, port
//!   address space
//!   of its own
//! ```
//!
//! | | where an IOMMU stands before the device | elsewhere |
//! |---|---|---|
//! | memory | ordinary pages, scattered: the IOMMU makes them one run | contiguous: `HugeTlb`, `UDmaBuf`, `DmaHeap` |
//! | address | chosen here, low, whatever the physical one is | the physical one, which takes a capability to see |
//! | reach of a wrong address | none: the IOMMU refuses it | all of memory |
//! | the port | reported by the kernel: [`VfioDevice::open`] is safe | claimed by the program: `Wired::new` is unsafe |
//! | needed | the files of the group or of the device | root, mostly |
//!
//! # By the device's file or by its group's
//!
//! Where the kernel has them and the user may open them, this uses `/dev/vfio/devices/vfio<number>`
//! with `/dev/iommu` (iommufd, Linux 6.6 and newer); else `/dev/vfio/<group>` with `/dev/vfio/vfio`
//! (a type1 container). Both confine the device alike, and give the same types here.
//!
//! # Preparing a device, once, as root
//!
//! ```sh
//! echo vfio-pci     > /sys/bus/pci/devices/0000:00:01.0/driver_override
//! echo 0000:00:01.0 > /sys/bus/pci/drivers_probe
//! chown user /dev/vfio/devices/vfio0 /dev/iommu     # or: chown user /dev/vfio/<group>; a udev rule for good
//! ```
//!
//! The user may then pin as much memory as RLIMIT_MEMLOCK allows (`ulimit -l`; `LimitMEMLOCK=` of a
//! systemd unit).
//!
//! # What is confined, exactly
//!
//! 1. **The group.** An IOMMU group is the smallest set of devices that the IOMMU tells apart from
//!    all others. Functions that could bypass it to reach each other share a group (no ACS on the
//!    bridge above them). The kernel gives a group to one user, and only when none of its devices
//!    has a kernel driver that does DMA ("viable"). All devices of a group share its address space;
//!    this module opens one of them, and the file of a group or a device opens only once.
//! 2. **The memory.** The address space begins empty. Only [`VfioMemory`] maps pages into it, and
//!    only its own.
//! 3. **The time.** Unmapping flushes the IOMMU before it returns. Closing the device's file turns
//!    bus mastering off, resets the device where the kernel can, and only then releases the pages
//!    (`vfio_pci_core_disable`, `vfio_group_fops_release`).
//! 4. **Not confined:** a group of several devices with no ACS between them. An access to an I/O
//!    address that is also the address of a neighbour's register goes to the neighbour. Give such a
//!    group no second driver.
//!
//! No-IOMMU groups (`/dev/vfio/noiommu-0`) are refused: no IOMMU confines those devices. Use UIO
//! there, and claim the port.
//!
//! # References
//! Linux `Documentation/driver-api/vfio.rst`, `Documentation/userspace-api/iommufd.rst`,
//! `include/uapi/linux/vfio.h`, `include/uapi/linux/iommufd.h`, `drivers/vfio/`,
//! `drivers/iommu/iommufd/`; 6.12 and 6.1 read.
//!
//! ```no_run
//! use contigo::{linux::{vfio::{Interrupt, Vfio, VfioDevice}}, Region};
//! let vfio = Vfio::open("0000:01:00.0")?;
//! let region = Region::new(vfio.memory(1 << 20)?)?;           // ordinary pages, one run for the device
//! let device = VfioDevice::open(&vfio, 0, Interrupt::Any)?;   // BAR 0; no port to claim
//! println!("{} bytes at {:#x}", region.len_bytes(), region.base().raw());
//! # drop(device);
//! # Ok::<(), contigo::Error>(())
//! ```

mod abi;
mod calls;
mod config;
mod device;
mod interrupt;
mod iommufd;
mod iova;
mod memory;
mod space;
mod sysfs;

pub use self::device::VfioDevice;
pub use self::interrupt::Interrupt;
pub use self::memory::VfioMemory;

use self::abi::{DeviceInfo, size_of_u32};
use self::config::Config;
use self::iova::{State, Table};
use self::space::{Space, os};
use crate::linux::os::fd::Fd;
use crate::linux::os::text::event;
use crate::linux::os::{Kernel, RUNNING, ask, cache};
use crate::mem::Port;
use crate::trace::{self, Event, Site};
use crate::types::shared::Shared;
use crate::types::{BaseAddr, Bus, Error, lock};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use spin::Mutex;

/// One PCI device, opened, in an I/O address space of its own. [`memory`](Self::memory) puts memory
/// into that space, and [`VfioDevice`] has the registers and the interrupt. It is a handle: clones
/// share the same open device, and memory and registers hold a handle each.
///
/// Dropping the last handle closes the device, which stops it, and then the address space. Memory
/// or a `VfioDevice` that was forgotten keeps the device open, and its memory pinned, until the
/// process ends.
///
/// Each opened device is a bus of its own ([`Bus::Iommu`]): memory of one is refused by the device
/// of another, whatever the addresses.
///
/// A child of fork(2) shares the open files, and gets neither the memory nor the registers
/// (MADV_DONTFORK): the device stays open until both have closed it.
#[derive(Clone)]
pub struct Vfio(Shared<Opened>);

struct Opened {
    // First: the device is closed, and so stopped, before its address space goes.
    device: Fd,
    space: Space,
    kernel: Kernel,
    config: Config,
    table: Mutex<Table>,
    bus: u32,
    window: (u64, u64),
    coherent: bool,
    resets: bool,
    /// A `VfioDevice` has the registers, or was forgotten.
    taken: AtomicBool,
}

impl Vfio {
    /// Opens the PCI function at `address`, `0000:01:00.0` (`lspci -D` lists them), and puts it
    /// into an empty I/O address space. Bus mastering is off.
    ///
    /// # Errors
    /// - [`Error::AttributeMissing`]: there is no such function. [`Error::BadName`]: `address` is
    ///   not a file name.
    /// - [`Error::Unsupported`], [`Error::Setting`]: no IOMMU stands before it, or only a no-IOMMU
    ///   group does. It is not bound to vfio-pci. Another device of its group has a kernel driver.
    ///   Its interrupts cannot be isolated.
    /// - [`Error::InUse`]: it is open already, here or in another process.
    /// - [`Error::Os`]: EACCES, this user may not open the files (above: what to do). Other calls
    ///   that failed.
    pub fn open(address: &str) -> Result<Self, Error> {
        Self::asking(RUNNING, address)
    }

    /// As [`open`](Vfio::open), with a kernel that the test provides.
    ///
    /// # Errors
    /// As [`open`](Vfio::open). Files that were opened are closed again.
    #[cfg(feature = "testkit")]
    pub fn open_from(kernel: crate::linux::os::seam::Test, address: &str) -> Result<Self, Error> {
        Self::asking(Kernel::Test(kernel), address)
    }

    fn asking(kernel: Kernel, address: &str) -> Result<Self, Error> {
        let function = sysfs::function(&kernel, address)?;
        let Some(group) = function.group else {
            let fix = "turn the IOMMU on in firmware and kernel and bind the device to vfio-pci, \
             or drive it by UIO";
            return Err(Error::Unsupported { what: "no IOMMU stands before the PCI device", fix });
        };
        if function.no_iommu {
            let fix = "a no-IOMMU group confines nothing: turn the IOMMU on, or drive the device \
             by UIO and claim its port";
            return Err(Error::Setting {
                name: "the device's group of vfio-noiommu",
                value: group.into(),
                fix,
            });
        }
        let by_iommufd = match function.device {
            Some(number) => Space::by_iommufd(&kernel, number)?,
            None => None,
        };
        let (device, space) = match by_iommufd {
            Some(opened) => opened,
            None => Space::by_group(&kernel, address, group)?,
        };
        let mut info = DeviceInfo { argsz: size_of_u32::<DeviceInfo>(), ..DeviceInfo::default() };
        ask(&kernel, &device, &mut info)
            .map_err(|errno| os("ioctl(VFIO_DEVICE_GET_INFO)", errno))?;
        if info.flags & DeviceInfo::PCI == 0 {
            let fix = "only PCI devices are driven here";
            return Err(Error::Unsupported { what: "this VFIO device is no PCI device", fix });
        }
        let config = Config::find(&kernel, &device)?;
        config.enable(&kernel, &device, false)?;
        // On a PC every master snoops, whatever the kernel's age.
        let coherent = cache::COHERENT == Some(true) || space.snoops(&kernel);
        if coherent && !space.enforces_snooping(&kernel) {
            config.forbid_no_snoop(&kernel, &device)?;
        }
        let table = Table::new(&space.ranges(&kernel)?)?;
        let window = table.window();
        let bus = next_bus()?;
        event!("vfio: opened as bus {}", bus);
        let (table, taken, resets) =
            (Mutex::new(table), AtomicBool::new(false), info.flags & DeviceInfo::RESET != 0);
        Shared::new(Opened {
            device,
            space,
            kernel,
            config,
            table,
            bus,
            window,
            coherent,
            resets,
            taken,
        })
        .map(Self)
    }

    /// Maps `len_bytes` of zeroed memory, rounded up to whole pages, for this process and for the
    /// device.
    ///
    /// # Errors
    /// - [`Error::Argument`]: `len_bytes` is 0, or more than 1 GiB.
    /// - [`Error::PinLimit`]: more than this user may pin, or, where a limit is set, more than
    ///   there is: the kernel reports ENOMEM for both.
    /// - [`Error::Exhausted`]: no room among the I/O addresses that the kernel allows.
    ///   [`Error::TooMany`]: 64 blocks are mapped.
    /// - [`Error::Unsupported`]: the kernel's own limit of mappings.
    /// - [`Error::Os`] with `mmap(MAP_ANONYMOUS)`, `madvise(MADV_DONTFORK)` or the name of an
    ///   ioctl; ENOMEM: there is no memory.
    /// - [`Error::Contended`]: other threads map and unmap without end.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn memory(&self, len_bytes: usize) -> Result<VfioMemory, Error> {
        VfioMemory::new(self, len_bytes)
    }

    /// The device's port, as the kernel reports it: this address space's bus, the addresses that
    /// the kernel allows in it, and whether the device snoops.
    #[must_use]
    pub fn port(&self) -> Port {
        let addr_bits = u64::BITS - self.0.window.1.leading_zeros();
        Port {
            name: "vfio",
            bus: Bus::Iommu(self.0.bus),
            offset: 0,
            addr_bits,
            window: self.0.window,
            coherent: self.0.coherent,
        }
    }

    /// Returns true for a device opened by its own file and iommufd, false by group and container.
    #[must_use]
    pub fn by_iommufd(&self) -> bool {
        matches!(self.0.space, Space::Iommufd { .. })
    }

    /// Returns whether the kernel can reset this device alone. If not, use
    /// [`VfioDevice::open_unreset`].
    #[must_use]
    pub fn can_reset(&self) -> bool {
        self.0.resets
    }

    /// Cuts the device off from the block that begins at `base`
    /// ([`Region::base`](crate::Region::base)): the emergency stop for a device that will not stop.
    /// When this returns `Ok`, no access of the device reaches the block, not even one under way.
    ///
    /// The block still belongs to this process: views are as valid as before, and it holds whatever
    /// the device wrote until now. Jobs that use it end however the device reacts to a refused
    /// access: with an error, or never, or as if nothing had happened (a device that ignores bus
    /// errors). The block is not mapped again; drop its region and make another.
    ///
    /// # Errors
    /// [`Error::NotOurs`] where no block begins there, or it was cut off before;
    /// [`Error::Contended`]; the kernel's error.
    ///
    /// ```no_run
    /// # use contigo::{Region, linux::vfio::Vfio};
    /// let vfio = Vfio::open("0000:01:00.0")?;
    /// let region = Region::new(vfio.memory(1 << 20)?)?;
    /// vfio.revoke(region.base())?;
    /// # Ok::<(), contigo::Error>(())
    /// ```
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn revoke(&self, base: BaseAddr) -> Result<(), Error> {
        let mut table = lock::acquire(&self.0.table)?;
        let not_ours = Error::NotOurs { addr: base.raw(), len_bytes: 1 };
        let BaseAddr::Dev(iova) = base else { return Err(not_ours) };
        let block =
            table.get(iova.0).filter(|block| block.state == State::Mapped).ok_or(not_ours)?;
        self.0.space.unmap(&self.0.kernel, block.iova, block.len_bytes)?;
        block.state = State::Revoked;
        #[allow(clippy::cast_possible_truncation, reason = "a block of this process")]
        let event = Event::UnmapForDevice { iova: block.iova, len_bytes: block.len_bytes as usize };
        drop(table);
        trace::happened(event, Site::here());
        Ok(())
    }

    /// Cuts the device off from all memory, block after block.
    ///
    /// # Errors
    /// The first error of [`revoke`](Self::revoke); the other blocks were tried all the same.
    pub fn revoke_all(&self) -> Result<(), Error> {
        let mut table = lock::acquire(&self.0.table)?;
        let mut result = Ok(());
        for block in table.blocks().filter(|block| block.state == State::Mapped) {
            match self.0.space.unmap(&self.0.kernel, block.iova, block.len_bytes) {
                Ok(()) => block.state = State::Revoked,
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    /// How many bytes of this address space could not be unmapped when they were dropped: this
    /// process keeps them, never freed, because the device may still reach them. 0 on every kernel
    /// that works as documented.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub fn leaked_bytes(&self) -> Result<u64, Error> {
        lock::acquire(&self.0.table).map(|table| table.leaked_bytes())
    }

    pub(super) fn port_bus(&self) -> Bus {
        Bus::Iommu(self.0.bus)
    }
}

/// A number that no other I/O address space of this process has.
fn next_bus() -> Result<u32, Error> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
    next.map_err(|_| Error::TooMany {
        what: "VFIO devices in the life of a program",
        most: u32::MAX.into(),
    })
}

impl fmt::Debug for Vfio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vfio")
            .field("port", &self.port())
            .field("by_iommufd", &self.by_iommufd())
            .finish_non_exhaustive()
    }
}

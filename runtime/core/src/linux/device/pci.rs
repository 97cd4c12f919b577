#![allow(
    unsafe_code,
    reason = "how a device is wired is a fact about the board, which a program can only claim"
)]
//! One PCI function, by its files under `/sys/bus/pci/devices`.

use super::config::{BUS_MASTER, Config, MEMORY_SPACE};
use super::pci_bus::{self, Address};
use super::registers::Extent;
use super::uio::open_file;
use super::uio_irq::NO_INTERRUPT;
use super::{BusMaster, Registers, UioIrq};
use crate::hw::device::Wired;
use crate::linux::Spin;
use crate::linux::os::dir::each_name;
use crate::linux::os::fd::Fd;
use crate::linux::os::path::Path;
use crate::linux::os::{RUNNING, pagemap, sysfs};
use crate::mem::Port;
use crate::types::{Bus, Error};
use core::cell::Cell;
use core::ffi::CStr;
use core::fmt::Write as _;
use nix::libc::{
    EACCES, EBUSY, EIO, ENODEV, ENOENT, EPERM, EWOULDBLOCK, O_DIRECTORY, O_PATH, O_RDONLY, O_RDWR,
    O_SYNC,
};

/// A function has six base address registers (PCI Local Bus Specification 3.0, 6.2.5.1).
const BARS: u32 = 6;
/// `resource`: one line a BAR, three numbers of `0x` and 16 digits, and up to 17 lines.
const RESOURCE_MAX_BYTES: usize = 17 * 57;
/// Bits of a resource's flags (Linux `include/linux/ioport.h`): memory, and not I/O ports; no
/// address was assigned.
const IORESOURCE_MEM: u64 = 0x200;
const IORESOURCE_UNSET: u64 = 0x2000_0000;
/// The longest link that is read: a path below `/sys`.
const LINK_MAX_BYTES: usize = 512;

/// One PCI function, with no IOMMU before it: its registers by `resourceN`, its interrupt by
/// `uio_pci_generic`. It owns an exclusive advisory lock (`flock`) on the function's configuration
/// space, which everything made of it shares.
///
/// It needs root: a function that masters the bus reaches all memory. Behind an IOMMU, VFIO
/// confines it, and an ordinary user may have it. To use the interrupt, bind the driver first:
///
/// ```sh
/// echo uio_pci_generic > /sys/bus/pci/devices/0000:00:01.0/driver_override
/// echo 0000:00:01.0    > /sys/bus/pci/drivers_probe
/// ```
///
/// ```no_run
/// use contigo::{Error, Mmio, linux::device::PciFunction};
/// let function = PciFunction::open("0000:00:01.0")?;
/// assert_eq!(function.id()?, (0x1234, 0x11E8));
/// function.enable()?;
/// println!("identification: {:#x}", function.bar(0)?.read32(0));
/// # Ok::<(), Error>(())
/// ```
///
/// Source: Linux `Documentation/PCI/sysfs-pci.rst`, `drivers/pci/pci-sysfs.c`,
/// `drivers/uio/uio_pci_generic.c`.
#[derive(Debug)]
pub struct PciFunction {
    address: Address,
    folder: Fd,
    dev: Fd,
    config: Config,
    /// Bit N: BAR N was handed out. Two windows on the same registers would be two drivers.
    taken: Cell<u32>,
}

impl PciFunction {
    /// Finds the one function of this `vendor` and `device`.
    ///
    /// ```no_run
    /// let edu = contigo::linux::device::PciFunction::find(0x1234, 0x11E8)?;
    /// println!("{}", edu.address());
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`], with the number of other functions; [`Error::Ambiguous`] where there
    /// are several: use [`open`](Self::open). As [`open`](Self::open).
    pub fn find(vendor: u16, device: u16) -> Result<Self, Error> {
        // SAFETY: these are the kernel's own files.
        unsafe { Self::find_under("", vendor, device) }
    }

    /// Opens the function at `address`: domain, bus, device and function in hexadecimal, as
    /// `0000:00:01.0`.
    ///
    /// # Errors
    /// - [`Error::BadName`]: `address` is not one. [`Error::NotFound`]: nothing is there.
    /// - [`Error::Denied`]: not root, or a kernel driver has the function.
    /// - [`Error::InUse`]: another driver of this runtime has it.
    /// - [`Error::Os`] with `open(/dev)`, `open(config)` or `flock(config)`.
    pub fn open(address: &str) -> Result<Self, Error> {
        // SAFETY: these are the kernel's own files.
        unsafe { Self::open_under("", address) }
    }

    /// As [`find`](Self::find), with `root` before `/sys` and `/dev`: for tests.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    ///
    /// # Safety
    /// As [`Uio::find_under`](crate::linux::device::Uio::find_under).
    pub unsafe fn find_under(root: &str, vendor: u16, device: u16) -> Result<Self, Error> {
        let address = pci_bus::find(root, vendor, device)?;
        // SAFETY: the caller's promise.
        unsafe { Self::open_under(root, &address) }
    }

    /// As [`open`](Self::open), with `root` before `/sys` and `/dev`: for tests.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// As [`Uio::find_under`](crate::linux::device::Uio::find_under).
    pub unsafe fn open_under(root: &str, address: &str) -> Result<Self, Error> {
        const ROOT: &str = "be root; or put it behind an IOMMU, and use VFIO";
        let address = pci_bus::address(address)?;
        let path = Path::join(&[root, "sys/bus/pci/devices", &address])?;
        let folder = match Fd::open(path.as_c_str(), O_RDONLY | O_DIRECTORY) {
            Ok(folder) => folder,
            Err(ENOENT) => {
                return Err(Error::NotFound {
                    what: "PCI function",
                    among: pci_bus::count(root)?.into(),
                });
            }
            Err(errno) => {
                return Err(Error::AttributeUnreadable { name: "/sys/bus/pci/devices", errno });
            }
        };
        refuse_taken(&folder)?;
        let config = folder.open_at(c"config", O_RDWR).map_err(|errno| match errno {
            EACCES | EPERM => Error::Denied { what: "a PCI function", errno, fix: ROOT },
            errno => Error::Os { call: "open(config)", errno },
        })?;
        config.try_lock().map_err(|errno| {
            if errno == EWOULDBLOCK {
                Error::InUse { errno }
            } else {
                Error::Os { call: "flock(config)", errno }
            }
        })?;
        let dev = Path::join(&[root, "dev"])?;
        let dev = Fd::open(dev.as_c_str(), O_PATH | O_DIRECTORY)
            .map_err(|errno| Error::Os { call: "open(/dev)", errno })?;
        Ok(Self { address, folder, dev, config: Config::new(config), taken: Cell::new(0) })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its vendor and its device.
    ///
    /// # Errors
    /// [`Error::AttributeMissing`], [`Error::Unexpected`], [`Error::AttributeEmpty`],
    /// [`Error::AttributeUnreadable`].
    pub fn id(&self) -> Result<(u16, u16), Error> {
        pci_bus::id(&self.folder)
    }

    /// The registers behind base address register `index`, all of them. Each is given once. They
    /// answer after [`enable`](Self::enable); before, they may read as all ones.
    ///
    /// # Errors
    /// [`Error::Argument`] past the sixth; [`Error::InUse`] where it was given already.
    /// [`Error::Setting`] where it is not there, holds I/O ports, or got no address.
    /// [`Error::Denied`] where the kernel is locked down. [`Error::Os`] with `open(resource)` or
    /// `mmap(resource)`. [`Error::Unexpected`] and its like for a strange `resource`.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn bar(&self, index: u32) -> Result<Registers, Error> {
        const LOCKED: &str = "the kernel is locked down (Secure Boot): use VFIO";
        if index >= BARS {
            return Err(Error::Argument {
                name: "bar",
                value: index.into(),
                min: 0,
                max: u64::from(BARS) - 1,
                multiple_of: 1,
            });
        }
        if self.taken.get() & 1 << index != 0 {
            return Err(Error::InUse { errno: EBUSY });
        }
        let extent = self.extent(index)?;
        let mut name = heapless::String::<16>::new();
        // 8 letters, a digit and the NUL: it always fits.
        let _ = write!(name, "resource{index}\0");
        let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or(c"");
        let denied = |error| match error {
            Error::Os { errno: errno @ (EACCES | EPERM), .. } => {
                Error::Denied { what: "a PCI function's BAR", errno, fix: LOCKED }
            }
            error => error,
        };
        let file = self
            .folder
            .open_at(name, O_RDWR | O_SYNC)
            .map_err(|errno| denied(Error::Os { call: "open(resource)", errno }))?;
        let lock = Some(self.config.lock()?);
        let registers =
            Registers::map(&RUNNING, &file, "mmap(resource)", extent, lock).map_err(denied)?;
        self.taken.set(self.taken.get() | 1 << index);
        Ok(registers)
    }

    /// Lets it answer at its addresses, and turns off bus mastering that an earlier program left
    /// on. [`BusMaster::enable`] turns it on, once the function's driver has stopped it.
    ///
    /// # Errors
    /// [`Error::Os`] with `pread(config)` or `pwrite(config)`; [`Error::Unexpected`] where the
    /// function does not answer; [`Error::Setting`] where it keeps a bit clear;
    /// [`Error::Contended`].
    pub fn enable(&self) -> Result<(), Error> {
        self.config.change(MEMORY_SPACE, BUS_MASTER)
    }

    /// A handle on its bus mastering, for the driver that gets the registers.
    ///
    /// # Errors
    /// [`Error::Os`] with `fcntl(config)`: this process has too many files.
    pub fn bus_master(&self) -> Result<BusMaster, Error> {
        self.config.try_clone().map(BusMaster::new)
    }

    /// Its interrupt (INTx), through the UIO device that `uio_pci_generic` made of it. Dropping it
    /// turns bus mastering off (the module's `release`).
    ///
    /// # Errors
    /// [`Error::NotFound`] where `uio_pci_generic` is not bound to it; [`Error::Setting`] where
    /// the function has no line; [`Error::InUse`], [`Error::Denied`] and [`Error::Os`] for
    /// `/dev/uioN`.
    pub fn uio_irq(&self) -> Result<UioIrq, Error> {
        const NOT_BOUND: Error = Error::NotFound {
            what: "UIO device of this PCI function (bind uio_pci_generic to it)",
            among: crate::types::Among::of(0),
        };
        let folder = match self.folder.open_at(c"uio", O_RDONLY | O_DIRECTORY) {
            Ok(folder) => folder,
            Err(ENOENT) => return Err(NOT_BOUND),
            Err(errno) => return Err(Error::AttributeUnreadable { name: "uio", errno }),
        };
        let mut index = None;
        each_name(&folder, "uio", |name| {
            index = index.or(name.strip_prefix("uio").and_then(|digits| digits.parse().ok()));
            Ok(())
        })?;
        let file = open_file(&self.dev, index.ok_or(NOT_BOUND)?)?;
        match file.wait_readable(0) {
            Ok(_) => Ok(UioIrq::new(file, Some(self.config.try_clone()?))),
            Err(EIO) => Err(NO_INTERRUPT),
            Err(errno) => Err(Error::Os { call: "ppoll(/dev/uio)", errno }),
        }
    }

    /// The registers of `bar` and its interrupt, wired to `port`; `uio_pci_generic` is bound to it.
    /// [`enable`](Self::enable) it before.
    ///
    /// # Errors
    /// [`Error::Setting`] where an IOMMU translates its addresses and `port` is not of its own
    /// bus; as [`bar`](Self::bar) and [`uio_irq`](Self::uio_irq).
    ///
    /// # Safety
    /// As [`Wired::new`].
    pub unsafe fn wired(self, bar: u32, port: Port) -> Result<Wired<Registers, UioIrq>, Error> {
        self.refuse_translated(&port)?;
        let registers = self.bar(bar)?;
        let irq = self.uio_irq()?;
        // SAFETY: the caller's promise.
        Ok(unsafe { Wired::new(registers, irq, port) })
    }

    /// The registers of `bar`, wired to `port`, and no interrupt. [`enable`](Self::enable) it
    /// before.
    ///
    /// # Errors
    /// [`Error::Setting`] where an IOMMU translates its addresses and `port` is not of its own
    /// bus; as [`bar`](Self::bar).
    ///
    /// # Safety
    /// As [`Wired::new`].
    pub unsafe fn polled(self, bar: u32, port: Port) -> Result<Wired<Registers, Spin>, Error> {
        self.refuse_translated(&port)?;
        let registers = self.bar(bar)?;
        // SAFETY: the caller's promise.
        Ok(unsafe { Wired::new(registers, Spin, port) })
    }

    /// An IOMMU that passes this function's addresses through has the type `identity` (Linux
    /// `Documentation/ABI/testing/sysfs-kernel-iommu_groups`). Any other would translate physical
    /// addresses as its own: at best a fault. A port on a bus of its own gets no physical
    /// addresses.
    pub fn refuse_translated(&self, port: &Port) -> Result<(), Error> {
        let mut buffer = [0; 32];
        if port.bus != Bus::Soc
            || self.folder.open_at(c"iommu_group", O_PATH).is_err()
            || sysfs::read(&self.folder, c"iommu_group/type", &mut buffer)?
                .is_some_and(|text| text.trim_ascii_end() == b"identity")
        {
            return Ok(());
        }
        Err(Error::Setting {
            name: "iommu_group",
            value: 1,
            fix: "an IOMMU translates this function's addresses: use VFIO, or boot with \
             iommu.passthrough=1",
        })
    }

    /// Which bytes of `resource<index>` are the BAR.
    fn extent(&self, index: u32) -> Result<Extent, Error> {
        let mut buffer = [0; RESOURCE_MAX_BYTES];
        let text = sysfs::read(&self.folder, c"resource", &mut buffer)?
            .ok_or(Error::AttributeMissing { name: "resource" })?;
        let line = text.split(|&byte| byte == b'\n').nth(index as usize).unwrap_or(&[]);
        let mut numbers =
            line.split(|&byte| byte == b' ').map(|number| sysfs::parse("resource", number));
        let mut next = || numbers.next().unwrap_or(Err(Error::AttributeEmpty { name: "resource" }));
        let (first, last, flags) = (next()?, next()?, next()?);
        if flags & IORESOURCE_MEM == 0 {
            return Err(Error::Setting {
                name: "resource",
                value: flags,
                fix: "this BAR holds no memory: use another",
            });
        }
        if first == 0 || flags & IORESOURCE_UNSET != 0 {
            return Err(Error::Setting {
                name: "resource",
                value: flags,
                fix: "this BAR got no address: see the kernel's log for why",
            });
        }
        let len_bytes = last.checked_sub(first).and_then(|len| len.checked_add(1));
        let len_bytes = len_bytes.ok_or(Error::Unexpected { name: "resource", value: last })?;
        // The file begins with the page that the BAR is in (`pci_mmap_resource_range`): a small BAR
        // may begin inside it. A page is a power of two, so this uses a mask: a remainder by what
        // may be 0 would compile in a panic.
        let in_page_bytes = first & (pagemap::page_bytes()? as u64).wrapping_sub(1);
        Ok(Extent { offset_bytes: 0, in_page_bytes, len_bytes })
    }
}

/// Refuses a function that a kernel driver has: kernel drivers do not know of `flock`.
fn refuse_taken(folder: &Fd) -> Result<(), Error> {
    const FIX: &str = "a driver of the kernel has it: bind uio_pci_generic to it instead \
     (driver_override, unbind, drivers_probe)";
    let mut buffer = [0; LINK_MAX_BYTES];
    match folder.read_link(c"driver", &mut buffer) {
        Ok(link) => match link.rsplit(|&byte| byte == b'/').next() {
            Some(b"uio_pci_generic") => Ok(()),
            _ => Err(Error::Denied { what: "a PCI function", errno: EBUSY, fix: FIX }),
        },
        // No driver, or the function is going.
        Err(ENOENT | ENODEV) => Ok(()),
        Err(errno) => Err(Error::AttributeUnreadable { name: "driver", errno }),
    }
}

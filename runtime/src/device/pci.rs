#![allow(unsafe_code, reason = "how a device is wired is a fact about the board, which a program can only claim")]
//! One PCI function, by its files under `/sys/bus/pci/devices`.

use super::{Registers, Uio, UioIrq, Wired, uio_irq::PCI_COMMAND};
use crate::{
    Error, Port, Spin,
    backend::{
        path::{Fd, Path, check_name},
        sysfs,
    },
};
use core::{ffi::CStr, fmt::Write as _};
use nix::libc::{ENOENT, EWOULDBLOCK, O_DIRECTORY, O_RDONLY, O_RDWR, O_SYNC};

/// Bits of the command register (PCI Local Bus Specification 3.0, table 6-1).
const MEMORY_SPACE: u16 = 1 << 1;
const BUS_MASTER: u16 = 1 << 2;
/// A function has six base address registers (6.2.5.1).
const BARS: u32 = 6;
/// `resource`: one line a BAR, three numbers of `0x` and 16 digits, and up to 17 lines.
const RESOURCE_MAX_BYTES: usize = 17 * 57;
/// Bit of a resource's flags (`include/linux/ioport.h`): memory, and not I/O ports.
const IORESOURCE_MEM: u64 = 0x200;
/// UIO devices that are looked at, to find the function's.
const MAX_UIO_DEVICES: u32 = 256;

/// One PCI function, with no IOMMU before it: its registers by `resourceN`, its interrupt by `uio_pci_generic`. It needs root.
///
/// Source: Linux `Documentation/PCI/sysfs-pci.rst`, `drivers/uio/uio_pci_generic.c`.
///
/// ```no_run
/// use contigo::{Error, Mmio, PciFunction};
/// let function = PciFunction::open("0000:00:01.0")?;
/// assert_eq!(function.id()?, (0x1234, 0x11E8));
/// function.enable()?;
/// println!("identification: {:#x}", function.bar(0)?.read32(0));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct PciFunction {
    folder: Fd,
    config: Fd,
}

impl PciFunction {
    /// The function at `address`, as `0000:00:01.0`. It takes an exclusive advisory lock (`flock`) on its configuration space.
    ///
    /// # Errors
    /// [`Error::BadName`]; [`Error::NotFound`]; [`Error::InUse`] where another driver has it; [`Error::Os`] with
    /// `open(config)`: EACCES, not root.
    pub fn open(address: &str) -> Result<Self, Error> {
        // SAFETY: these are the kernel's own files.
        unsafe { Self::open_under("", address) }
    }

    /// As [`open`](Self::open), with `root` before `/sys`: for tests.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// As [`Uio::find_under`].
    pub unsafe fn open_under(root: &str, address: &str) -> Result<Self, Error> {
        check_name(address)?;
        let path = Path::join(&[root, "sys/bus/pci/devices", address])?;
        let folder = Fd::open(path.as_c_str(), O_RDONLY | O_DIRECTORY).map_err(|errno| match errno {
            ENOENT => Error::NotFound { what: "PCI function", among: 0 },
            errno => Error::AttributeUnreadable { name: "/sys/bus/pci/devices", errno },
        })?;
        let config = folder.open_at(c"config", O_RDWR).map_err(|errno| Error::Os { call: "open(config)", errno })?;
        config
            .try_lock()
            .map_err(|errno| if errno == EWOULDBLOCK { Error::InUse { errno } } else { Error::Os { call: "flock(config)", errno } })?;
        Ok(Self { folder, config })
    }

    /// Its vendor and its device.
    ///
    /// # Errors
    /// [`Error::AttributeMissing`], [`Error::AttributeNonsense`], [`Error::AttributeUnreadable`].
    pub fn id(&self) -> Result<(u16, u16), Error> {
        let id = |name: &'static CStr| {
            let value = sysfs::required(&self.folder, name)?;
            u16::try_from(value).map_err(|_| Error::AttributeNonsense { name: sysfs::text(name), value })
        };
        Ok((id(c"vendor")?, id(c"device")?))
    }

    /// The registers behind base address register `index`, all of them.
    ///
    /// # Errors
    /// [`Error::Argument`] past the sixth; [`Error::Unsuitable`] where it is not there or holds I/O ports;
    /// [`Error::Os`] with `open(resource)` or `mmap(resource)`.
    pub fn bar(&self, index: u32) -> Result<Registers, Error> {
        if index >= BARS {
            return Err(Error::Argument { name: "bar", value: index.into(), min: 0, max: u64::from(BARS) - 1, multiple_of: 1 });
        }
        let mut buffer = [0; RESOURCE_MAX_BYTES];
        let text = sysfs::read(&self.folder, c"resource", &mut buffer)?.ok_or(Error::AttributeMissing { name: "resource" })?;
        let line = text.split(|&byte| byte == b'\n').nth(index as usize).unwrap_or(&[]);
        let mut numbers = line.split(|&byte| byte == b' ').map(|number| sysfs::parse("resource", number));
        let mut next = || numbers.next().unwrap_or(Err(Error::AttributeEmpty { name: "resource" }));
        let (first, last, flags) = (next()?, next()?, next()?);
        if flags & IORESOURCE_MEM == 0 || first == 0 {
            return Err(Error::Unsuitable { name: "resource", value: flags, fix: "this BAR holds no memory: use another" });
        }
        let len_bytes = last.checked_sub(first).and_then(|len| len.checked_add(1));
        let len_bytes = len_bytes.ok_or(Error::AttributeNonsense { name: "resource", value: last })?;
        let mut name = heapless::String::<16>::new();
        // 8 letters, a digit and the NUL: it always fits.
        let _ = write!(name, "resource{index}\0");
        let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or(c"");
        let file = self.folder.open_at(name, O_RDWR | O_SYNC).map_err(|errno| Error::Os { call: "open(resource)", errno })?;
        Registers::map(&file, "mmap(resource)", 0, 0, len_bytes)
    }

    /// Lets it answer at its addresses and master the bus.
    ///
    /// # Errors
    /// [`Error::Os`] with `pwrite(config)`; [`Error::Unsuitable`] where the function keeps a bit clear.
    pub fn enable(&self) -> Result<(), Error> {
        self.command(MEMORY_SPACE | BUS_MASTER, 0)
    }

    /// Takes bus mastering away: whatever the function was doing, it reaches no memory after this. A driver's last word where
    /// its device does not stop by itself.
    ///
    /// # Errors
    /// As [`enable`](Self::enable).
    pub fn disable_bus_master(&self) -> Result<(), Error> {
        self.command(0, BUS_MASTER)
    }

    /// Its registers and its interrupt, wired to `port`; `uio_pci_generic` is bound to it.
    ///
    /// # Errors
    /// [`Error::NotFound`] where `uio_pci_generic` is not bound to it; as [`bar`](Self::bar) and [`Uio::open`].
    ///
    /// # Safety
    /// As [`Wired::new`]: no IOMMU is before it.
    pub unsafe fn wired(self, bar: u32, port: Port) -> Result<Wired<Registers, UioIrq>, Error> {
        let registers = self.bar(bar)?;
        let irq = UioIrq::new(self.uio()?.into_file(), Some(self.config));
        // SAFETY: the caller's promise.
        Ok(unsafe { Wired::new(registers, irq, port) })
    }

    /// Its registers, wired to `port`, and no interrupt.
    ///
    /// # Errors
    /// As [`bar`](Self::bar).
    ///
    /// # Safety
    /// As [`Wired::new`]: no IOMMU is before it.
    pub unsafe fn polled(self, bar: u32, port: Port) -> Result<Wired<Registers, Spin>, Error> {
        let registers = self.bar(bar)?.holding(self.config);
        // SAFETY: the caller's promise.
        Ok(unsafe { Wired::new(registers, Spin, port) })
    }

    /// The UIO device that `uio_pci_generic` made of it.
    fn uio(&self) -> Result<Uio, Error> {
        for index in 0..MAX_UIO_DEVICES {
            let mut name = heapless::String::<24>::new();
            // 7 letters, at most 3 digits and the NUL: it always fits.
            let _ = write!(name, "uio/uio{index}\0");
            let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or(c"");
            if self.folder.open_at(name, O_RDONLY | O_DIRECTORY).is_ok() {
                return Uio::open(index);
            }
        }
        Err(Error::NotFound { what: "UIO device of this PCI function (bind uio_pci_generic to it)", among: 0 })
    }

    /// Sets and clears bits of the command register, and looks whether they stayed.
    fn command(&self, set: u16, clear: u16) -> Result<(), Error> {
        let os = |errno| Error::Os { call: "pwrite(config)", errno };
        let command = self.config.read_u16_at(PCI_COMMAND).map_err(os)?;
        let wanted = (command | set) & !clear;
        self.config.write_u16_at(PCI_COMMAND, wanted).map_err(os)?;
        let found = self.config.read_u16_at(PCI_COMMAND).map_err(os)?;
        if found & (set | clear) == wanted & (set | clear) {
            Ok(())
        } else {
            Err(Error::Unsuitable {
                name: "config",
                value: found.into(),
                fix: "the function keeps a bit of its command register as it was",
            })
        }
    }
}

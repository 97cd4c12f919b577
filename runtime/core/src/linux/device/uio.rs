#![allow(
    unsafe_code,
    reason = "how a device is wired is a fact about the board, which a program can only claim"
)]
//! A device that the kernel gives to user space: registers and interrupt through `/dev/uioN`.

use super::registers::Extent;
use super::{Registers, UioIrq};
use crate::hw::device::Wired;
use crate::linux::Spin;
use crate::linux::os::fd::Fd;
use crate::linux::os::path::{Path, check_name};
use crate::linux::os::{RUNNING, pagemap, sysfs};
use crate::mem::Port;
use crate::types::{Error, PhysAddr};
use core::ffi::CStr;
use core::fmt::Write as _;
use nix::libc::{
    EACCES, EBUSY, EINVAL, ENODEV, ENOENT, ENOTDIR, EPERM, EWOULDBLOCK, O_DIRECTORY, O_NONBLOCK,
    O_RDONLY, O_RDWR,
};

/// How many device numbers are tried. The kernel gives the lowest that is free (`idr_alloc` in
/// `uio_get_minor`), and no board here has a tenth as many; each costs one system call, once.
const MAX_DEVICES: u32 = 256;
/// The longest name: a device-tree node has at most 31 characters before its unit address
/// (Devicetree Specification, 2.2.1), and a link to it a path before that.
const LINK_MAX_BYTES: usize = 512;
/// How many maps a device has at most (`MAX_UIO_MAPS`, Linux `include/linux/uio_driver.h`), with
/// the names of their files.
const MAPS: [Map; 5] = [
    Map { addr: c"maps/map0/addr", size: c"maps/map0/size", offset: c"maps/map0/offset" },
    Map { addr: c"maps/map1/addr", size: c"maps/map1/size", offset: c"maps/map1/offset" },
    Map { addr: c"maps/map2/addr", size: c"maps/map2/size", offset: c"maps/map2/offset" },
    Map { addr: c"maps/map3/addr", size: c"maps/map3/size", offset: c"maps/map3/offset" },
    Map { addr: c"maps/map4/addr", size: c"maps/map4/size", offset: c"maps/map4/offset" },
];

#[derive(Clone, Copy, Debug)]
struct Map {
    addr: &'static CStr,
    size: &'static CStr,
    offset: &'static CStr,
}

/// A device that the kernel gives to user space. It owns an exclusive advisory lock (`flock`) on
/// `/dev/uioN`, so that two programs of this runtime cannot drive one device.
///
/// A node of the device tree becomes one with `compatible = "generic-uio"` and
/// `uio_pdrv_genirq.of_id=generic-uio` on the kernel's command line; `uio_pdrv_genirq` takes the
/// node's first interrupt, and no other. For a core with two, join them to one line in the block
/// design (an OR gate), or make a node for each half of its registers. The file belongs to root
/// until a udev rule says otherwise, such as `SUBSYSTEM=="uio", GROUP="dma", MODE="0660"`.
///
/// A PCI function behind `uio_pci_generic` is not opened here, but by
/// [`PciFunction`](crate::linux::device::PciFunction).
///
/// ```no_run
/// use contigo::{Bus, Port, Queue, drivers::zdma::Zdma, linux::device::Uio};
/// /// UG1085, "I/O Coherency".
/// const GDMA: Port = Port { name: "gdma", bus: Bus::Soc, offset: 0, addr_bits: 40, window: (0, (1 << 40) - 1), coherent: false };
/// // SAFETY: GDMA's master reaches memory so, and no IOMMU is on.
/// let device = unsafe { Uio::find("dma@fd500000")?.wired(GDMA) };
/// // SAFETY: GDMA's channel 0 is at 0xFD50_0000 (UG1087), and nothing else drives it.
/// let queue = Queue::new(unsafe { Zdma::simple(device)? }, 1)?;
/// # Ok::<(), contigo::Error>(())
/// ```
///
/// Source: Linux `Documentation/driver-api/uio-howto.rst`, `drivers/uio/uio.c`,
/// `drivers/uio/uio_pdrv_genirq.c`.
#[derive(Debug)]
pub struct Uio {
    registers: Registers,
    file: Fd,
    folder: Fd,
    index: u32,
    addr: PhysAddr,
    /// Where the registers begin in that page.
    in_page_bytes: u64,
    /// Bit N: map N was handed out. Two windows on the same registers would be two drivers.
    taken: u8,
}

impl Uio {
    /// Opens the one device called `name`: its node in the device tree, with its unit address
    /// (`dma-controller@f8003000`) or without, or its driver's name for it
    /// (`/sys/class/uio/uioN/name`).
    ///
    /// # Errors
    /// - [`Error::NotFound`]: no device is called that. [`Error::Ambiguous`]: several are; use the
    ///   unit address.
    /// - [`Error::BadName`]: `name` is empty, too long, or holds a `/` or a NUL.
    /// - As [`open`](Self::open).
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn find(name: &str) -> Result<Self, Error> {
        // SAFETY: these are the kernel's own files.
        unsafe { Self::find_under("", name) }
    }

    /// Opens `/dev/uio<index>`.
    ///
    /// # Errors
    /// - [`Error::NotFound`]: there is no such device.
    /// - [`Error::Denied`]: the file belongs to another user (a udev rule, or root), or it is a PCI
    ///   function.
    /// - [`Error::InUse`]: another driver has it.
    /// - [`Error::AttributeMissing`], [`Error::Unexpected`], [`Error::AttributeEmpty`],
    ///   [`Error::AttributeUnreadable`]: the device has no registers (its node has no `reg`), or
    ///   its files under `/sys` hold impossible values.
    /// - [`Error::Os`] with `open(/dev/uio)`, `flock(/dev/uio)` or `mmap(/dev/uio)`: ENOENT, udev
    ///   has made no file for it yet.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn open(index: u32) -> Result<Self, Error> {
        // SAFETY: these are the kernel's own files.
        unsafe { Self::open_under("", index) }
    }

    /// As [`find`](Self::find), with `root` before `/sys` and `/dev`: for tests, and for a
    /// container that has them elsewhere.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    ///
    /// # Safety
    /// The files below `root` are the kernel's, or no driver made from them frees memory because of
    /// its registers' values.
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn find_under(root: &str, name: &str) -> Result<Self, Error> {
        check_name(name)?;
        let (mut devices, mut matches, mut found) = (0, 0, 0);
        for index in 0..MAX_DEVICES {
            let Some(folder) = folder(root, index)? else { continue };
            devices += 1;
            if is_called(&folder, name)? {
                (matches, found) = (matches + 1, index);
            }
        }
        match matches {
            0 => Err(Error::NotFound { what: "UIO device", among: devices.into() }),
            // SAFETY: the caller's promise.
            1 => unsafe { Self::open_under(root, found) },
            _ => Err(Error::Ambiguous { what: "UIO device", matches }),
        }
    }

    /// As [`open`](Self::open), with `root` before `/sys` and `/dev`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// As [`find_under`](Self::find_under).
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn open_under(root: &str, index: u32) -> Result<Self, Error> {
        let Some(folder) = folder(root, index)? else {
            let mut devices = 0;
            for index in 0..MAX_DEVICES {
                devices += u32::from(self::folder(root, index)?.is_some());
            }
            return Err(Error::NotFound { what: "UIO device", among: devices.into() });
        };
        let mut buffer = [0; LINK_MAX_BYTES];
        // Checked before its file is opened: closing it again would turn bus mastering off for a
        // program that drives the function (`release` in `uio_pci_generic.c`).
        if sysfs::read(&folder, c"name", &mut buffer)?
            .is_some_and(|name| name.trim_ascii_end() == b"uio_pci_generic")
        {
            return Err(Error::Denied {
                what: "/dev/uioN",
                errno: EBUSY,
                fix: "it is a PCI function: open it with PciFunction",
            });
        }
        let (addr, extent) = extent(&folder, 0)?;
        let dev = Path::join(&[root, "dev"])?;
        let dev = Fd::open(dev.as_c_str(), O_RDONLY | O_DIRECTORY)
            .map_err(|errno| Error::Os { call: "open(/dev)", errno })?;
        let file = open_file(&dev, index)?;
        let registers = map(&file, extent)?;
        Ok(Self {
            registers,
            file,
            folder,
            index,
            addr,
            in_page_bytes: extent.in_page_bytes,
            taken: 1,
        })
    }

    /// N of `/dev/uioN`.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Where the page of its registers is, as the kernel says: to tell devices apart, and to
    /// compare with the manual.
    #[must_use]
    pub const fn addr(&self) -> PhysAddr {
        self.addr
    }

    /// Where its first register is.
    pub const fn first_register(&self) -> PhysAddr {
        // It is inside the map, whose end `extent` has found to be an address.
        PhysAddr(self.addr.0.saturating_add(self.in_page_bytes))
    }

    /// The registers of its map number `index`, from 1: what comes after the first range of its
    /// node's `reg`. Each map is handed out once.
    ///
    /// ```no_run
    /// let mut device = contigo::linux::device::Uio::find("capture@40000000")?;
    /// let buffers = device.map(1)?;
    /// # let _ = buffers;
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] past the fifth, and for 0, which is in [`into_parts`](Self::into_parts);
    /// [`Error::AttributeMissing`] if the device has fewer; [`Error::InUse`] if it was handed out
    /// before; as [`open`](Self::open) for impossible values.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn map(&mut self, index: u32) -> Result<Registers, Error> {
        if index == 0 || index as usize >= MAPS.len() {
            return Err(Error::Argument {
                name: "map",
                value: index.into(),
                min: 1,
                max: MAPS.len() as u64 - 1,
                multiple_of: 1,
            });
        }
        if self.taken & 1 << index != 0 {
            return Err(Error::InUse { errno: EBUSY });
        }
        let (_, extent) = extent(&self.folder, index as usize)?;
        let registers = map(&self.file, extent)?;
        self.taken |= 1 << index;
        Ok(registers)
    }

    /// Its registers and its interrupt, wired to `port`.
    ///
    /// # Safety
    /// As [`Wired::new`].
    #[must_use]
    pub unsafe fn wired(self, port: Port) -> Wired<Registers, UioIrq> {
        // SAFETY: the caller's promise.
        unsafe { Wired::new(self.registers, UioIrq::new(self.file, None), port) }
    }

    /// Its registers, wired to `port`, and no interrupt: a wait polls, with no system call.
    ///
    /// # Safety
    /// As [`Wired::new`].
    #[must_use]
    pub unsafe fn polled(self, port: Port) -> Wired<Registers, Spin> {
        // SAFETY: the caller's promise.
        unsafe { Wired::new(self.registers, Spin, port) }
    }

    /// Its registers and its interrupt, for a driver that moves no memory, and for
    /// [`UioIrq::try_clone`]. Each of them keeps the lock.
    #[must_use]
    pub fn into_parts(self) -> (Registers, UioIrq) {
        (self.registers, UioIrq::new(self.file, None))
    }
}

/// Opens `uio<index>` in `dev`, and locks it.
pub(super) fn open_file(dev: &Fd, index: u32) -> Result<Fd, Error> {
    const FIX: &str = "add a udev rule that gives the file to this user's group, or be root";
    let mut name = uio(index);
    // `uio` leaves room for it.
    let _ = name.push('\0');
    let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or(c"");
    // Non-blocking: an interrupt's count is read only after `ppoll` reported one, or to find out.
    // Without O_SYNC: the kernel maps registers uncached anyway (`uio_mmap_physical`).
    let file = dev.open_at(name, O_RDWR | O_NONBLOCK).map_err(|errno| match errno {
        EACCES | EPERM => Error::Denied { what: "/dev/uioN", errno, fix: FIX },
        errno => Error::Os { call: "open(/dev/uio)", errno },
    })?;
    file.try_lock().map_err(|errno| {
        if errno == EWOULDBLOCK {
            Error::InUse { errno }
        } else {
            Error::Os { call: "flock(/dev/uio)", errno }
        }
    })?;
    Ok(file)
}

/// The registers at `extent`. A mapping keeps its file open, and so the lock on it: no descriptor
/// is needed for that.
#[cfg_attr(feature = "audit", track_caller)]
fn map(file: &Fd, extent: Extent) -> Result<Registers, Error> {
    const WHOLE: &str = "the kernel maps whole pages only: make the node's reg that large";
    Registers::map(&RUNNING, file, "mmap(/dev/uio)", extent, None).map_err(|error| match error {
        // `uio_mmap_physical` maps no page of which a part is outside the device.
        Error::Os { errno: EINVAL, .. }
            if extent.len_bytes
                < pagemap::page_bytes().unwrap_or(0) as u64 - extent.in_page_bytes =>
        {
            Error::Setting { name: "maps/mapN/size", value: extent.len_bytes, fix: WHOLE }
        }
        error => error,
    })
}

/// Where map `index` is, and which bytes of the file are its registers.
///
/// `addr` is the address of a page. `size` counts from there, `offset` is how far into it the
/// registers begin. The kernel's drivers round all of it to pages (`uio_pdrv_genirq_probe`), so no
/// file says where the registers end: the window ends with the page.
fn extent(folder: &Fd, index: usize) -> Result<(PhysAddr, Extent), Error> {
    let map = MAPS.get(index).ok_or(Error::AttributeMissing { name: "maps" })?;
    let page_bytes = pagemap::page_bytes()? as u64;
    let addr = sysfs::required(folder, map.addr)?;
    let size = sysfs::required(folder, map.size)?;
    // Not in every old kernel: there the registers begin at a page.
    let offset = sysfs::number(folder, map.offset)?.unwrap_or(0);
    let nonsense = |name, value| Error::Unexpected { name: sysfs::text(name), value };
    if addr.checked_add(size).is_none() {
        return Err(nonsense(map.addr, addr));
    }
    if !addr.is_multiple_of(page_bytes) {
        return Err(Error::Setting {
            name: sysfs::text(map.addr),
            value: addr,
            fix: "this kernel's driver maps whole pages only: a newer one rounds",
        });
    }
    if offset >= page_bytes || !offset.is_multiple_of(4) {
        return Err(nonsense(map.offset, offset));
    }
    let len_bytes = size
        .checked_sub(offset)
        .filter(|&len_bytes| len_bytes != 0)
        .ok_or(nonsense(map.size, size))?;
    // Map N is mapped at offset N pages, whatever its address (uio-howto.rst, "mmap() device
    // memory").
    let offset_bytes = page_bytes * index as u64;
    Ok((PhysAddr(addr), Extent { offset_bytes, in_page_bytes: offset, len_bytes }))
}

/// `/sys/class/uio/uio<index>`, or `None` where there is none.
fn folder(root: &str, index: u32) -> Result<Option<Fd>, Error> {
    match Fd::open(
        Path::join(&[root, "sys/class/uio", uio(index).as_str()])?.as_c_str(),
        O_RDONLY | O_DIRECTORY,
    ) {
        Ok(folder) => Ok(Some(folder)),
        Err(ENOENT | ENOTDIR) => Ok(None),
        Err(errno) => Err(Error::AttributeUnreadable { name: "/sys/class/uio/uioN", errno }),
    }
}

/// `uio<index>`.
fn uio(index: u32) -> heapless::String<16> {
    let mut name = heapless::String::new();
    // 3 letters and at most 10 digits: it always fits.
    let _ = write!(name, "uio{index}");
    name
}

/// Returns whether `name` is its node, with or without unit address, or its driver's name for it.
fn is_called(folder: &Fd, name: &str) -> Result<bool, Error> {
    let mut buffer = [0; LINK_MAX_BYTES];
    // Devices that are in no device tree have no such link.
    if let Ok(link) = folder.read_link(c"device/of_node", &mut buffer) {
        let node = link.rsplit(|&byte| byte == b'/').next().unwrap_or(link);
        let bare = node.split(|&byte| byte == b'@').next().unwrap_or(node);
        if node == name.as_bytes() || bare == name.as_bytes() {
            return Ok(true);
        }
    }
    match sysfs::read(folder, c"name", &mut buffer) {
        Ok(text) => Ok(text.is_some_and(|text| text.trim_ascii_end() == name.as_bytes())),
        // A device may vanish between two reads: then it is not the one.
        Err(Error::AttributeUnreadable { errno: ENODEV, .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

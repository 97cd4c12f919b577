#![allow(unsafe_code, reason = "how a device is wired is a fact about the board, which a program can only claim")]
//! A device that the kernel gives to user space: registers and interrupt through `/dev/uioN`.

use super::{Registers, UioIrq, Wired};
use crate::{
    Error, Port, Spin,
    backend::{
        pagemap,
        path::{Fd, Path, check_name},
        sysfs,
    },
};
use core::fmt::Write as _;
use nix::libc::{ENOENT, ENOTDIR, EWOULDBLOCK, O_DIRECTORY, O_NONBLOCK, O_RDONLY, O_RDWR};

/// Device numbers that are looked at. The kernel gives the lowest that is free (`idr_alloc` in `uio_get_minor`), and no board
/// here has a tenth as many; each costs one system call, once.
const MAX_DEVICES: u32 = 256;
/// The longest name: a device-tree node has at most 31 characters before its unit address (Devicetree Specification, 2.2.1),
/// and a link to it a path before that.
const LINK_MAX_BYTES: usize = 512;

/// A device that the kernel gives to user space. It owns an exclusive advisory lock (`flock`) on `/dev/uioN`, so that two
/// programs of this runtime cannot drive one device.
///
/// A node of the device tree becomes one with `compatible = "generic-uio"` and `uio_pdrv_genirq.of_id=generic-uio` on the
/// kernel's command line; `uio_pdrv_genirq` takes the node's first interrupt. The file belongs to root until a udev rule says
/// otherwise.
///
/// ```no_run
/// use contigo::{Bus, Engine, Port, Uio, accel::gemm8::Gemm8};
/// /// UG585, "AXI_HP Interfaces".
/// const HP0: Port = Port { name: "hp0", bus: Bus::Soc, offset: 0, addr_bits: 32, window: (0, u32::MAX as u64), coherent: false };
/// // SAFETY: in this bitstream gemm8's m_axi_gmem is connected to S_AXI_HP0, and nothing else drives it.
/// let device = unsafe { Uio::find("gemm8@40000000")?.wired(HP0) };
/// let engine = Engine::new(Gemm8::open(device)?)?;
/// # Ok::<(), contigo::Error>(())
/// ```
///
/// Source: Linux `Documentation/driver-api/uio-howto.rst`, `drivers/uio/uio.c`, `drivers/uio/uio_pdrv_genirq.c`.
#[derive(Debug)]
pub struct Uio {
    registers: Registers,
    file: Fd,
    index: u32,
}

impl Uio {
    /// The one device that is called `name`: its node in the device tree, with its unit address (`dma-controller@f8003000`) or
    /// without, or what its driver calls it (`/sys/class/uio/uioN/name`).
    ///
    /// # Errors
    /// - [`Error::NotFound`]: no device is called that. [`Error::Ambiguous`]: several are; use the unit address.
    /// - [`Error::BadName`]: `name` is empty, too long, or holds a `/` or a NUL.
    /// - As [`open`](Self::open).
    pub fn find(name: &str) -> Result<Self, Error> {
        // SAFETY: these are the kernel's own files.
        unsafe { Self::find_under("", name) }
    }

    /// `/dev/uio<index>`.
    ///
    /// # Errors
    /// - [`Error::NotFound`]: there is no such device.
    /// - [`Error::Os`] with `open(/dev/uio)`: EACCES, no permission (a udev rule, or root).
    /// - [`Error::InUse`]: another driver has it.
    /// - [`Error::AttributeMissing`], [`Error::AttributeNonsense`], [`Error::AttributeUnreadable`]: the device has no register
    ///   window, or its files under `/sys` say what cannot be.
    /// - [`Error::Os`] with `mmap(/dev/uio)`: the window cannot be mapped.
    pub fn open(index: u32) -> Result<Self, Error> {
        // SAFETY: these are the kernel's own files.
        unsafe { Self::open_under("", index) }
    }

    /// As [`find`](Self::find), with `root` before `/sys` and `/dev`: for tests, and for a container that has them elsewhere.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    ///
    /// # Safety
    /// What is below `root` is the kernel's, or no device's driver is made of it that gives memory back because of what its
    /// registers say.
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
            0 => Err(Error::NotFound { what: "UIO device", among: devices }),
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
    pub unsafe fn open_under(root: &str, index: u32) -> Result<Self, Error> {
        let folder = folder(root, index)?.ok_or(Error::NotFound { what: "UIO device", among: 0 })?;
        let size = sysfs::required(&folder, c"maps/map0/size")?;
        // Not in kernels before 2.6.31; 0 where the window begins at a page.
        let offset = sysfs::number(&folder, c"maps/map0/offset")?.unwrap_or(0);
        let page_bytes = pagemap::page_bytes()? as u64;
        if offset >= page_bytes {
            return Err(Error::AttributeNonsense { name: "maps/map0/offset", value: offset });
        }
        if size == 0 {
            return Err(Error::AttributeNonsense { name: "maps/map0/size", value: size });
        }
        let path = Path::join(&[root, "dev", uio(index).as_str()])?;
        // Not blocking: an interrupt's count is read only after `ppoll` said that there is one, or to find out.
        let file = Fd::open(path.as_c_str(), O_RDWR | O_NONBLOCK).map_err(|errno| Error::Os { call: "open(/dev/uio)", errno })?;
        file.try_lock()
            .map_err(|errno| if errno == EWOULDBLOCK { Error::InUse { errno } } else { Error::Os { call: "flock(/dev/uio)", errno } })?;
        // Map N is mapped at offset N pages, whatever its address (uio-howto.rst, "mmap() device memory").
        let registers = Registers::map(&file, "mmap(/dev/uio)", 0, offset, size)?;
        Ok(Self { registers, file, index })
    }

    /// N of `/dev/uioN`.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
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

    /// Its registers, wired to `port`, and no interrupt: a wait looks again and again, with no system call.
    ///
    /// # Safety
    /// As [`Wired::new`].
    #[must_use]
    pub unsafe fn polled(self, port: Port) -> Wired<Registers, Spin> {
        // SAFETY: the caller's promise.
        unsafe { Wired::new(self.registers.holding(self.file), Spin, port) }
    }

    /// Its registers and its interrupt, for a driver that moves no memory.
    #[must_use]
    pub fn into_parts(self) -> (Registers, UioIrq) {
        (self.registers, UioIrq::new(self.file, None))
    }

    pub(super) fn into_file(self) -> Fd {
        self.file
    }
}

/// `/sys/class/uio/uio<index>`, or `None` where there is none.
fn folder(root: &str, index: u32) -> Result<Option<Fd>, Error> {
    match Fd::open(Path::join(&[root, "sys/class/uio", uio(index).as_str()])?.as_c_str(), O_RDONLY | O_DIRECTORY) {
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

/// Is this device's node, with or without its unit address, or its driver's name for it, `name`?
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
    // A device may vanish between two looks: then it is not the one.
    Ok(sysfs::read(folder, c"name", &mut buffer)?.is_some_and(|text| text.trim_ascii_end() == name.as_bytes()))
}

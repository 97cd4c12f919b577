//! One I/O address space of the kernel's: a type1 container with one group, or an address space of
//! iommufd.

use super::abi::{
    self, AttachIommufdPt, BindIommufd, GroupStatus, MapDma, Type1Info, UnmapDma, size_of_u32,
};
use super::calls;
use super::iommufd::{IoasAlloc, IoasIovaRanges, IoasMap, IoasUnmap, IovaRange};
use super::iova::{MAX_RANGES, TOO_MANY_RANGES};
use crate::linux::os::fd::Fd;
use crate::linux::os::path::{Path, check_name};
use crate::linux::os::{Kernel, SystemCalls, ask};
use crate::types::Error;
use core::ffi::c_int;
use core::fmt::Write as _;
use heapless::{String, Vec};
use nix::libc::{EACCES, EBUSY, EINVAL, EMSGSIZE, ENODEV, ENOENT, ENOMEM, ENOSPC, EPERM, O_RDWR};

const BIND: &str = "echo vfio-pci > /sys/bus/pci/devices/<address>/driver_override; echo \
 <address> > /sys/bus/pci/drivers_probe";

/// The allowed ranges, as many as are remembered.
pub(super) type Ranges = Vec<IovaRange, MAX_RANGES>;

/// The I/O address space that a device was put into. The files that it holds keep it open.
#[derive(Debug)]
pub(super) enum Space {
    /// `/dev/vfio/vfio`, with the group in it. The group is closed first: that takes the device out
    /// of the container.
    Container {
        #[allow(dead_code, reason = "held open: closing it takes the group out of the container")]
        group: Fd,
        container: Fd,
    },
    /// `/dev/iommu`, and the number of the address space there.
    Iommufd { iommufd: Fd, ioas: u32 },
}

impl Space {
    /// Opens the device by its own file and iommufd; `Ok(None)` if the kernel lacks one of the two
    /// files, or this user may not open it.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::Unsupported`], [`Error::Os`].
    pub(super) fn by_iommufd(kernel: &Kernel, number: u32) -> Result<Option<(Fd, Self)>, Error> {
        let absent = |errno: i32| matches!(errno, ENOENT | ENODEV | EACCES | EPERM);
        let device =
            match kernel.open(numbered("/dev/vfio/devices", "vfio", number)?.as_c_str(), O_RDWR) {
                Ok(device) => device,
                Err(errno) if absent(errno) => return Ok(None),
                Err(errno) => return Err(os("open(/dev/vfio/devices/vfio<number>)", errno)),
            };
        let iommufd = match kernel.open(c"/dev/iommu", O_RDWR) {
            Ok(iommufd) => iommufd,
            Err(errno) if absent(errno) => return Ok(None),
            Err(errno) => return Err(os("open(/dev/iommu)", errno)),
        };
        let mut bind = BindIommufd {
            argsz: size_of_u32::<BindIommufd>(),
            iommufd: iommufd.raw(),
            ..BindIommufd::default()
        };
        let bound = ask(kernel, &device, &mut bind);
        bound.map_err(|errno| match errno {
            // EINVAL: the file was opened and bound before (`vfio_df_open`); nothing else of this
            // call can be invalid, because VFIO registers no device whose IOMMU cannot keep caches
            // coherent. EBUSY: its group is open (`vfio_device_block_group`), or a device of its
            // group has a kernel driver (`iommufd_device_bind`).
            EINVAL | EBUSY => Error::InUse { errno },
            errno => attach_error("ioctl(VFIO_DEVICE_BIND_IOMMUFD)", errno),
        })?;
        let mut alloc = IoasAlloc::ask();
        ask(kernel, &iommufd, &mut alloc).map_err(|errno| os("ioctl(IOMMU_IOAS_ALLOC)", errno))?;
        let ioas = alloc.out_ioas_id;
        let mut attach =
            AttachIommufdPt { argsz: size_of_u32::<AttachIommufdPt>(), flags: 0, pt_id: ioas };
        let attached = ask(kernel, &device, &mut attach);
        attached.map_err(|errno| attach_error("ioctl(VFIO_DEVICE_ATTACH_IOMMUFD_PT)", errno))?;
        Ok(Some((device, Self::Iommufd { iommufd, ioas })))
    }

    /// Opens the device by its group and a type1 container.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::Unsupported`], [`Error::Os`].
    pub(super) fn by_group(
        kernel: &Kernel,
        address: &str,
        number: u32,
    ) -> Result<(Fd, Self), Error> {
        check_name(address)?;
        let group = kernel.open(numbered("/dev/vfio", "", number)?.as_c_str(), O_RDWR).map_err(
            |errno| match errno {
                EBUSY => Error::InUse { errno },
                ENOENT | ENODEV => Error::Unsupported {
                    what: "the PCI device is not bound to vfio-pci",
                    fix: BIND,
                },
                errno => os("open(/dev/vfio/<group>)", errno),
            },
        )?;
        let container = kernel
            .open(c"/dev/vfio/vfio", O_RDWR)
            .map_err(|errno| os("open(/dev/vfio/vfio)", errno))?;
        let mut status = GroupStatus { argsz: size_of_u32::<GroupStatus>(), flags: 0 };
        ask(kernel, &group, &mut status)
            .map_err(|errno| os("ioctl(VFIO_GROUP_GET_STATUS)", errno))?;
        if status.flags & GroupStatus::VIABLE == 0 {
            return Err(not_viable(number));
        }
        let set = calls::set_container(kernel, &group, &container);
        set.map_err(|errno| {
            if errno == EBUSY {
                not_viable(number)
            } else {
                os("ioctl(VFIO_GROUP_SET_CONTAINER)", errno)
            }
        })?;
        let type1 = calls::check_extension(kernel, &container, abi::TYPE1V2_IOMMU);
        if type1.map_err(|errno| os("ioctl(VFIO_CHECK_EXTENSION)", errno))? <= 0 {
            let fix = "load the module vfio_iommu_type1";
            return Err(Error::Unsupported { what: "the kernel has no VFIO_TYPE1v2_IOMMU", fix });
        }
        let set = calls::set_iommu(kernel, &container, abi::TYPE1V2_IOMMU);
        set.map_err(|errno| attach_error("ioctl(VFIO_SET_IOMMU)", errno))?;
        let name = Path::join(&[address])?;
        let device =
            calls::device(kernel, &group, name.as_c_str()).map_err(|errno| match errno {
                ENODEV => Error::Unsupported {
                    what: "the PCI device is not bound to vfio-pci",
                    fix: BIND,
                },
                errno => os("ioctl(VFIO_GROUP_GET_DEVICE_FD)", errno),
            })?;
        Ok((device, Self::Container { group, container }))
    }

    /// The ranges that the kernel allows, once the device is in: without the reserved regions of
    /// its group, where interrupts have doorbells.
    ///
    /// # Errors
    /// [`Error::Os`]; [`Error::TooMany`] for more ranges than are remembered;
    /// [`Error::Unexpected`].
    pub(super) fn ranges(&self, kernel: &Kernel) -> Result<Ranges, Error> {
        match self {
            Self::Container { container, .. } => {
                const CALL: &str = "ioctl(VFIO_IOMMU_GET_INFO)";
                let mut info = Type1Info::ask();
                ask(kernel, container, &mut info).map_err(|errno| os(CALL, errno))?;
                if info.argsz > size_of_u32::<Type1Info>() {
                    return Err(TOO_MANY_RANGES);
                }
                type1_ranges(&info)
                    .unwrap_or(Err(Error::Unexpected { name: CALL, value: info.cap_offset.into() }))
            }
            Self::Iommufd { iommufd, ioas } => {
                let mut ask = IoasIovaRanges::ask(*ioas);
                let mut found = [IovaRange::default(); MAX_RANGES];
                let told = calls::iova_ranges(kernel, iommufd, &mut ask, &mut found);
                told.map_err(|errno| match errno {
                    EMSGSIZE => TOO_MANY_RANGES,
                    errno => os("ioctl(IOMMU_IOAS_IOVA_RANGES)", errno),
                })?;
                let count = usize::try_from(ask.num_iovas).unwrap_or(usize::MAX);
                let found = found.get(..count).and_then(|found| Ranges::from_slice(found).ok());
                found.ok_or(Error::Unexpected {
                    name: "ioctl(IOMMU_IOAS_IOVA_RANGES)",
                    value: ask.num_iovas.into(),
                })
            }
        }
    }

    /// Returns whether the hardware makes every access of the device snoop, whatever it asks for.
    pub(super) fn enforces_snooping(&self, kernel: &Kernel) -> bool {
        match self {
            Self::Container { container, .. } => {
                calls::check_extension(kernel, container, abi::DMA_CC_IOMMU).unwrap_or(0) > 0
            }
            // The kernel turns it on where the hardware has it (`iommufd_hwpt_paging_enforce_cc`),
            // and no request reports it.
            Self::Iommufd { .. } => false,
        }
    }

    /// Returns whether the device snoops unless it asks not to. VFIO maps all memory as cacheable
    /// (`IOMMU_CACHE`), and since Linux 5.19 it refuses a device whose IOMMU cannot do that
    /// (`__vfio_register_dev`, `iommufd_device_bind`). Before 6.1 the drivers of Arm's SMMUs
    /// claimed that on every platform (df198b37e72c, "Report IOMMU_CAP_CACHE_COHERENCY better"),
    /// and `VFIO_DMA_CC_IOMMU` repeated it: there, nothing is known.
    pub(super) fn snoops(&self, kernel: &Kernel) -> bool {
        matches!(self, Self::Iommufd { .. }) || kernel.release() >= (6, 1)
    }

    /// Pins `len_bytes` bytes at `cpu`, and lets the device read and write them at `iova`.
    ///
    /// # Errors
    /// [`Error::PinLimit`], [`Error::Unsupported`] where the kernel's own table is full,
    /// [`Error::Os`].
    pub(super) fn map(
        &self,
        kernel: &Kernel,
        cpu: u64,
        iova: u64,
        len_bytes: usize,
    ) -> Result<(), Error> {
        /// `VFIO_DMA_MAP_FLAG_READ` and `VFIO_DMA_MAP_FLAG_WRITE`.
        const READ_WRITE: u32 = 0b11;
        let size = len_bytes as u64;
        let (call, mapped) = match self {
            Self::Container { container, .. } => {
                let mut map = MapDma {
                    argsz: size_of_u32::<MapDma>(),
                    flags: READ_WRITE,
                    vaddr: cpu,
                    iova,
                    size,
                };
                ("ioctl(VFIO_IOMMU_MAP_DMA)", ask(kernel, container, &mut map))
            }
            Self::Iommufd { iommufd, ioas } => (
                "ioctl(IOMMU_IOAS_MAP)",
                ask(kernel, iommufd, &mut IoasMap::at(*ioas, cpu, iova, size)),
            ),
        };
        mapped.map(drop).map_err(|errno| match (errno, kernel.pin_limit_bytes()) {
            (ENOMEM, Some(limit_bytes)) => Error::PinLimit { need_bytes: len_bytes, limit_bytes },
            (ENOSPC, _) => {
                let fix = "map fewer and larger blocks, or raise \
                 /sys/module/vfio_iommu_type1/parameters/dma_entry_limit";
                Error::Unsupported { what: "VFIO maps no more blocks for this program", fix }
            }
            _ => os(call, errno),
        })
    }

    /// Unmaps the block at `iova`. When this returns `Ok`, the IOMMU refuses the device every byte
    /// of it.
    ///
    /// # Errors
    /// [`Error::Os`]; [`Error::Unexpected`] if the kernel unmapped another number of bytes.
    pub(super) fn unmap(&self, kernel: &Kernel, iova: u64, len_bytes: u64) -> Result<(), Error> {
        let (call, unmapped, done_bytes) = match self {
            Self::Container { container, .. } => {
                let mut unmap =
                    UnmapDma { argsz: size_of_u32::<UnmapDma>(), flags: 0, iova, size: len_bytes };
                let unmapped = ask(kernel, container, &mut unmap);
                ("ioctl(VFIO_IOMMU_UNMAP_DMA)", unmapped, unmap.size)
            }
            Self::Iommufd { iommufd, ioas } => {
                let mut unmap = IoasUnmap::at(*ioas, iova, len_bytes);
                let unmapped = ask(kernel, iommufd, &mut unmap);
                ("ioctl(IOMMU_IOAS_UNMAP)", unmapped, unmap.length)
            }
        };
        unmapped.map_err(|errno| os(call, errno))?;
        if done_bytes == len_bytes {
            Ok(())
        } else {
            Err(Error::Unexpected { name: call, value: done_bytes })
        }
    }
}

/// Follows the capabilities of VFIO_IOMMU_GET_INFO to the ranges; `None` where they lead nowhere. A
/// kernel that knows no ranges (before 5.4) allows everything.
fn type1_ranges(info: &Type1Info) -> Option<Result<Ranges, Error>> {
    let caps = Capabilities { words: &info.caps, at_bytes: core::mem::offset_of!(Type1Info, caps) };
    let Some(at) = caps.find(info.cap_offset, Type1Info::IOVA_RANGES)? else {
        return Some(
            Ranges::from_slice(&[IovaRange { start: 0, last: u64::MAX }])
                .map_err(|_| TOO_MANY_RANGES),
        );
    };
    // Behind the header: a count, nothing, then pairs of 64 bits.
    let mut ranges = Ranges::new();
    for index in 0..usize::try_from(caps.word(at.checked_add(8)?)?).ok()? {
        let at = at.checked_add(16)?.checked_add(index.checked_mul(16)?)?;
        let range =
            IovaRange { start: caps.double_word(at)?, last: caps.double_word(at.checked_add(8)?)? };
        if ranges.push(range).is_err() {
            return Some(Err(TOO_MANY_RANGES));
        }
    }
    Some(Ok(ranges))
}

/// The capabilities behind an info struct. Kernels before 6.5 put them at multiples of 4 bytes
/// (`vfio_info_cap_add`).
pub(super) struct Capabilities<'a> {
    pub(super) words: &'a [u32],
    /// Where the first word is, from the struct's beginning.
    pub(super) at_bytes: usize,
}

impl Capabilities<'_> {
    /// Where the capability `id` is: `Some(None)` where the chain has none, `None` where the chain
    /// is broken. A chain has no more links than there are words.
    pub(super) fn find(&self, first: u32, id: u16) -> Option<Option<usize>> {
        let mut at = usize::try_from(first).ok()?;
        for _ in 0..self.words.len() {
            if at == 0 {
                return Some(None);
            }
            // `struct vfio_info_cap_header`: an id and a version of 16 bits each, and where the
            // next one is.
            let [low, high, ..] = self.word(at)?.to_ne_bytes();
            if u16::from_ne_bytes([low, high]) == id {
                return Some(Some(at));
            }
            at = usize::try_from(self.word(at.checked_add(4)?)?).ok()?;
        }
        None
    }

    fn word(&self, offset_bytes: usize) -> Option<u32> {
        let at = offset_bytes.checked_sub(self.at_bytes).filter(|at| at.is_multiple_of(4))?;
        self.words.get(at / 4).copied()
    }

    fn double_word(&self, offset_bytes: usize) -> Option<u64> {
        let ([a, b, c, d], [e, f, g, h]) = (
            self.word(offset_bytes)?.to_ne_bytes(),
            self.word(offset_bytes.checked_add(4)?)?.to_ne_bytes(),
        );
        Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
    }
}

/// `<folder>/<prefix><number>`.
fn numbered(folder: &str, prefix: &str, number: u32) -> Result<Path, Error> {
    /// `vfio` and ten digits.
    const NAME_BYTES: usize = 16;
    let mut name = String::<NAME_BYTES>::new();
    write!(name, "{prefix}{number}")
        .map_err(|_| Error::BadName { len_bytes: NAME_BYTES + 1, max_bytes: NAME_BYTES })?;
    Path::join(&[folder, &name])
}

fn not_viable(group: u32) -> Error {
    let fix = "bind every device of this IOMMU group (/sys/kernel/iommu_groups/<number>/devices) \
     to vfio-pci, or to no driver";
    Error::Setting { name: "the IOMMU group, which is not viable,", value: group.into(), fix }
}

/// EPERM: a device here could raise interrupts that are not its own
/// (`iommu_group_has_isolated_msi`).
fn attach_error(call: &'static str, errno: i32) -> Error {
    match errno {
        EPERM => {
            let fix = "turn on interrupt remapping; or allow_unsafe_interrupts of \
             vfio_iommu_type1 and iommufd, where the device is trusted";
            Error::Unsupported { what: "the device's interrupts are not isolated", fix }
        }
        ENODEV | EINVAL => Error::Denied {
            what: "an address space of the device's own in the IOMMU",
            errno,
            fix: "look for the IOMMU's lines in dmesg, which tell why it gives none",
        },
        errno => os(call, errno),
    }
}

pub(super) const fn os(call: &'static str, errno: c_int) -> Error {
    Error::Os { call, errno }
}

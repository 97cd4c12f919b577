//! A kernel with VFIO, for machines that have none: one PCI function behind one IOMMU, by its group
//! and by its own file. It keeps the rules of Linux 6.12 (`drivers/vfio/`,
//! `drivers/iommu/iommufd/`), fails where the test asks for it, and keeps a log. It is also the
//! device's bus master: it does not reach memory that is not mapped for it.
#![allow(unsafe_code, reason = "implements the unsafe trait SystemCalls")]

#[allow(dead_code, unreachable_pub, reason = "the runtime uses what the fake does not")]
#[path = "../../../../runtime/core/src/linux/vfio/abi.rs"]
mod abi;
mod iommu;
#[allow(dead_code, unreachable_pub, reason = "the runtime uses what the fake does not")]
#[path = "../../../../runtime/core/src/linux/vfio/iommufd.rs"]
mod iommufd;
mod machine;
mod pci;
mod request;
mod state;
mod sysfs;
pub mod uapi;

pub use self::iommu::Refused;
pub use self::machine::{Event, Kind, Machine, PciKind, Way};

use self::request::Request;
use self::state::State;
use crate::fake_dma_heap::check_flags;
use contigo::linux::os::seam::{Fd, Running, SystemCalls};
use nix::errno::Errno;
use nix::sys::ioctl::ioctl_num_type;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::ftruncate;
use std::ffi::{CStr, c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The function that there is.
pub const ADDRESS: &str = "0000:00:01.0";
/// Its group.
pub const GROUP: u32 = 7;
/// Its number as a VFIO device.
pub const DEVICE: u32 = 3;

/// The kernel. Clones are the same kernel, so that a test keeps one to look at.
#[derive(Clone, Debug)]
pub struct FakeVfio(Arc<Mutex<State>>);

impl FakeVfio {
    /// A kernel on such a machine.
    pub fn new(machine: Machine) -> Self {
        Self(Arc::new(Mutex::new(State::new(machine))))
    }

    /// From now on the `nth` next call of this name, as the runtime's errors have it (0: the next),
    /// fails with `errno`.
    pub fn fail(&self, call: &'static str, nth: usize, errno: Errno) {
        self.lock().faults.push((call, nth, errno));
    }

    /// From now on the next call of this name, a read or a write of the configuration space, does
    /// one byte less than it is asked to.
    pub fn shorten(&self, call: &'static str) {
        self.lock().shortened = Some(call);
    }

    /// The events so far.
    pub fn log(&self) -> Vec<Event> {
        self.lock().log.clone()
    }

    /// How many files are open.
    pub fn open_files(&self) -> usize {
        self.lock().open.len()
    }

    /// How many blocks are mapped for the device.
    pub fn mapped(&self) -> usize {
        self.lock().iommu.len()
    }

    /// May the function master the bus?
    pub fn masters(&self) -> bool {
        self.lock().pci.masters()
    }

    /// A register of the function's configuration space.
    pub fn config(&self, at: usize) -> u16 {
        self.lock().pci.read(at)
    }

    /// The function reads memory, as its IOMMU lets it.
    pub fn device_read(&self, iova: u64, bytes: &mut [u8]) -> Result<(), Refused> {
        self.lock().iommu.read(iova, bytes)
    }

    /// The function writes memory, as its IOMMU lets it.
    pub fn device_write(&self, iova: u64, bytes: &[u8]) -> Result<(), Refused> {
        self.lock().iommu.write(iova, bytes)
    }

    /// The function raises its interrupt. Whether the program is notified.
    pub fn raise(&self) -> bool {
        let mut state = self.lock();
        let Some((index, eventfd, masked)) = state.irq.filter(|(_, _, masked)| !*masked) else {
            return false;
        };
        // A level stays masked until the program unmasks it.
        state.irq = Some((index, eventfd, masked || index == uapi::INTX));
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the program's eventfd, which it keeps open while it is set here; 8 bytes are
        // read.
        unsafe { libc::write(eventfd, one.as_ptr().cast(), one.len()) == 8 }
    }

    /// Were pages unmapped from the process that were still mapped for the device?
    pub fn freed_too_early(&self) -> bool {
        self.lock().iommu.freed_too_early()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, kind: Kind, fd: OwnedFd) -> Fd {
        self.lock().open.push((fd.as_raw_fd(), kind));
        // SAFETY: the file has its descriptor until it is dropped.
        unsafe { Fd::owned_by(fd.as_raw_fd(), FakeFile { fd, kind, kernel: self.clone() }) }
    }
}

/// An open file.
#[derive(Debug)]
struct FakeFile {
    fd: OwnedFd,
    kind: Kind,
    kernel: FakeVfio,
}

impl Drop for FakeFile {
    fn drop(&mut self) {
        self.kernel.lock().close(self.kind, self.fd.as_raw_fd());
    }
}

// SAFETY: 1. A BAR is a part of a memfd that no other code has. 2. `iommu.rs` reaches only mapped
// memory, where it is mapped. 3. As the machine says; no real caches are at stake, for its device
// is this program.
unsafe impl SystemCalls for FakeVfio {
    fn open(&self, path: &CStr, flags: c_int) -> Result<Fd, i32> {
        let path = path.to_str().unwrap_or_default();
        if path.strip_prefix("/sys/bus/pci/devices/") == Some(ADDRESS) {
            check_flags(flags, libc::O_RDONLY | libc::O_DIRECTORY)?;
            return sysfs::folder(&self.lock().machine);
        }
        let kind = self.lock().may_open(path)?;
        // A BAR is mapped writable, and the configuration space is written.
        check_flags(flags, libc::O_RDWR)?;
        Ok(self.file(kind, memfd()?))
    }

    fn eventfd(&self) -> Result<Fd, i32> {
        self.lock().strike("eventfd")?;
        let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
        // SAFETY: no pointer is taken, and the descriptor is new.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, flags)) };
        Ok(self.file(Kind::Event, fd))
    }

    fn wait_readable(&self, file: &Fd, timeout_us: u32) -> Result<bool, i32> {
        self.lock().strike("ppoll(eventfd)")?;
        Running.wait_readable(file, timeout_us)
    }

    unsafe fn ioctl(
        &self,
        file: &Fd,
        request: ioctl_num_type,
        argument: *mut c_void,
    ) -> Result<c_int, i32> {
        // SAFETY: the caller's promise.
        let request = unsafe { Request::of(request, argument) }.ok_or(libc::ENOTTY)?;
        let mut state = self.lock();
        state.strike(request.name())?;
        match (kind(file).ok_or(libc::EBADF)?, request) {
            (Kind::Group, Request::GroupStatus(status)) => {
                status.flags = if state.machine.viable { uapi::VIABLE } else { 0 };
                Ok(0)
            }
            (Kind::Group, Request::GetDeviceFd(name)) => {
                state.is_usable()?;
                if name.to_str() != Ok(ADDRESS) || !state.machine.bound {
                    return Err(libc::ENODEV);
                }
                let device = memfd()?;
                let raw = device.as_raw_fd();
                state.made = Some(device);
                Ok(raw)
            }
            (Kind::Group, Request::SetContainer(container)) => state.set_container(container),
            (Kind::Container, Request::CheckExtension(extension)) => Ok(state.extension(extension)),
            (Kind::Container, Request::SetIommu(iommu)) => state.set_iommu(iommu),
            (Kind::Container, Request::Type1Info(info)) => state.machine.type1_info(info),
            (Kind::Container, Request::MapDma(map)) => {
                state.map(Way::Group, map.vaddr, map.iova, map.size)
            }
            (Kind::Container, Request::UnmapDma(unmap)) => {
                state.unmap(Way::Group, unmap.iova, &mut unmap.size)
            }
            (Kind::Device, Request::BindIommufd(bind)) => state.bind(file.raw(), bind.iommufd),
            (Kind::Device, Request::AttachIommufdPt(attach)) => state.attach(attach.pt_id),
            (Kind::Iommufd, Request::IoasAlloc(alloc)) => {
                alloc.out_ioas_id = machine::IOAS;
                Ok(0)
            }
            (Kind::Iommufd, Request::IoasIovaRanges(ask, room)) => {
                state.machine.iova_ranges(ask, room)
            }
            (Kind::Iommufd, Request::IoasMap(map)) => {
                state.map(Way::Iommufd, map.user_va, map.iova, map.length)
            }
            (Kind::Iommufd, Request::IoasUnmap(unmap)) => {
                state.unmap(Way::Iommufd, unmap.iova, &mut unmap.length)
            }
            (Kind::Device | Kind::DeviceOfGroup, request) => state.device_ioctl(request),
            _ => Err(libc::ENOTTY),
        }
    }

    unsafe fn made(&self, raw: c_int) -> Fd {
        let device = self.lock().made.take();
        match device.filter(|device| device.as_raw_fd() == raw) {
            Some(device) => self.file(Kind::DeviceOfGroup, device),
            // SAFETY: the caller's promise.
            None => unsafe { Running.made(raw) },
        }
    }

    fn read_at(&self, file: &Fd, offset: u64, bytes: &mut [u8]) -> Result<usize, i32> {
        let mut state = self.lock();
        state.strike("pread(PCI configuration)")?;
        let at = state.config_at(kind(file).ok_or(libc::EBADF)?, offset)?;
        let count = state.count("pread(PCI configuration)", bytes.len());
        state.pci.read_bytes(at, bytes.split_at_mut(count).0).map(|()| count)
    }

    fn write_at(&self, file: &Fd, offset: u64, bytes: &[u8]) -> Result<usize, i32> {
        let mut state = self.lock();
        state.strike("pwrite(PCI configuration)")?;
        let at = state.config_at(kind(file).ok_or(libc::EBADF)?, offset)?;
        let count = state.count("pwrite(PCI configuration)", bytes.len());
        state.pci.write_bytes(at, bytes.split_at(count).0)?;
        if at == pci::COMMAND {
            let masters = state.pci.masters();
            state.log.push(Event::BusMaster(masters));
        }
        Ok(count)
    }

    fn release(&self) -> (u32, u32) {
        self.lock().machine.release
    }

    fn pin_limit_bytes(&self) -> Option<u64> {
        self.lock().machine.pin_limit_bytes
    }
}

/// The kind of a file of this kernel.
fn kind(file: &Fd) -> Option<Kind> {
    file.owner::<FakeFile>().map(|file| file.kind)
}

/// A file as large as all regions, so that a BAR can be mapped from it.
fn memfd() -> Result<OwnedFd, i32> {
    let fd = memfd_create("contigo-vfio", MFdFlags::MFD_CLOEXEC).map_err(|errno| errno as i32)?;
    ftruncate(&fd, machine::FILE_BYTES as _).map_err(|errno| errno as i32)?;
    Ok(fd)
}

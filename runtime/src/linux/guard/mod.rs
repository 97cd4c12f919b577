#![allow(unsafe_code, reason = "a program that the kernel runs later writes registers")]
//! A bus master as the kernel knows it, through the module `contigo` (`kernel-helpers/`). The
//! module gives a dma-buf an address and maintains its caches by ranges. It stops the device when
//! the program that drives it ends, whatever ended it.
//!
//! ```text
//!   Guard ──► DmaBuf ──► Region ──► …          a dma-heap's block, or a camera's dma-buf
//!     ▲
//!     └── Engine::arm: what stops the device   run by the kernel when the file goes, before the memory does
//! ```

mod abi;
mod arm;
mod dma_buf;
mod kernel;
mod program;

pub use self::dma_buf::DmaBuf;

/// The seam where a test puts a kernel of its own.
#[cfg(feature = "testkit")]
#[doc(hidden)]
pub mod seam {
    pub use super::{
        abi::*,
        kernel::{GuardKernel, Request},
    };
    pub use crate::linux::os::fd::Fd;
}

use self::{
    abi::{ABI, INFO_COHERENT, INFO_TRANSLATED, Info},
    kernel::{GuardKernel, Kernel, RUNNING, Request},
};
use crate::{
    job::StopProgram,
    linux::os::fd::Fd,
    mem::Port,
    types::{Bus, Error},
};
use core::{
    fmt,
    mem::ManuallyDrop,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

/// One bus master that is bound to the kernel module `contigo`: `/dev/contigo/<name>`, where `name`
/// is the kernel's for the device (`f8003000.dma-port`, `0000:00:02.0`). One program at a time has
/// it.
///
/// It owns the file. When the last descriptor of it goes, by whatever end of the process, the
/// kernel runs the program that [`Engine::arm`](crate::Engine::arm) has left there. Then it turns
/// bus mastering off (PCI), and only then gives up the memory that was imported. Where the device
/// does not stop, the memory is kept for ever. Without such a program the kernel cannot know
/// whether the device has stopped. Then a `Guard` that is dropped while memory of it is leaked
/// leaks its file too, and only the end of the process closes it.
///
/// An import is held for this device. An engine behind another port needs an import of its own
/// there, or nobody waits for it after a crash: [`Region::export`](crate::Region::export) and
/// [`DmaBuf::import`].
///
/// # References
/// `kernel-helpers/uapi/contigo.h`, the contract; `kernel-helpers/README.md`, how to install the
/// module and bind a device.
///
/// ```no_run
/// use contigo::{Bus, DmaHeap, Engine, Guard, Port, Region, Uio, drivers::zdma::Zdma};
/// /// UG1085, "I/O Coherency".
/// const GDMA: Port = Port { name: "gdma", bus: Bus::Soc, offset: 0, addr_bits: 40, window: (0, (1 << 40) - 1), coherent: false };
/// let guard = Guard::open("fd500000.dma-port")?;
/// let region = Region::new(DmaHeap::allocate_for(&guard, "linux,cma", 4 << 20)?)?;
/// // SAFETY: GDMA's master reaches memory so; the module says whether an IOMMU is on.
/// let device = unsafe { Uio::find("dma@fd500000")?.wired(guard.seen_through(GDMA)) };
/// // SAFETY: GDMA's channel 0 is at 0xFD50_0000 (UG1087), and nothing else drives it.
/// let engine = Engine::new(unsafe { Zdma::simple(device)? })?;
/// // SAFETY: fd500000.dma-port is this channel, and its reg the same registers.
/// unsafe { engine.arm(&guard, 0)? };   // from here on a crash stops the device before its memory goes
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Guard {
    kernel: Kernel,
    /// Dropped by `Drop`, where that harms nobody.
    file: ManuallyDrop<Fd>,
    info: Info,
    bus: Bus,
    /// Imports that were not released. At most as many as the kernel takes.
    imports: AtomicU32,
    /// Does the kernel have a program that stops the device?
    armed: AtomicBool,
}

impl Guard {
    /// Opens `/dev/contigo/<name>`.
    ///
    /// # Errors
    /// - [`Error::BadName`]: `name` is empty, longer than 63 bytes, or holds a `/` or a NUL.
    /// - [`Error::NotFound`]: no device of that name is bound to the module; how many others are.
    /// - [`Error::Denied`]: this user may not open the file. [`Error::InUse`]: another program has
    ///   it.
    /// - [`Error::Setting`]: the module is of another version. [`Error::Os`]: ENODEV, the device
    ///   was unbound meanwhile.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::asking(RUNNING, name)
    }

    /// As [`open`](Guard::open), from a kernel of one's own: for tests.
    ///
    /// # Errors
    /// As [`open`](Guard::open).
    #[cfg(feature = "testkit")]
    pub fn open_from(kernel: crate::linux::os::seam::Test<dyn GuardKernel>, name: &str) -> Result<Self, Error> {
        Self::asking(Kernel::Test(kernel), name)
    }

    fn asking(kernel: Kernel, name: &str) -> Result<Self, Error> {
        let file = kernel.open(name)?;
        let mut info = Info::default();
        kernel.ioctl(&file, Request::GetInfo(&mut info)).map_err(|errno| os("ioctl(CONTIGO_GET_INFO)", errno))?;
        if info.abi != ABI {
            let fix = "install the kernel module of the same version as this program (kernel-helpers/README.md)";
            return Err(Error::Setting { name: "the ABI of the kernel module contigo", value: info.abi.into(), fix });
        }
        let bus = if info.flags & INFO_TRANSLATED == 0 { Bus::Soc } else { next_bus()? };
        Ok(Self { kernel, file: ManuallyDrop::new(file), info, bus, imports: AtomicU32::new(0), armed: AtomicBool::new(false) })
    }

    /// `port` as the kernel describes this device. Where `dma-ranges` or an IOMMU translate its
    /// addresses, it is on a bus of its own with no offset, because then the kernel's addresses are
    /// this device's alone. The silicon's reach stays (`addr_bits`, `window`), and whether it
    /// snoops.
    ///
    /// Memory whose port disagrees about coherency is refused ([`Error::CoherencyMismatch`]): the
    /// device tree is wrong then, or the port.
    #[must_use]
    pub const fn seen_through(&self, port: Port) -> Port {
        match self.bus {
            Bus::Soc => port,
            bus => Port { bus, offset: 0, ..port },
        }
    }

    /// Does the device snoop the CPU's caches, by the kernel's word (`dma-coherent`)?
    #[must_use]
    pub const fn is_coherent(&self) -> bool {
        self.info.flags & INFO_COHERENT != 0
    }

    /// Are bus addresses other ones than physical addresses, by `dma-ranges` or an IOMMU?
    #[must_use]
    pub const fn translates(&self) -> bool {
        self.info.flags & INFO_TRANSLATED != 0
    }

    /// How many bytes each register window of the device has, by the kernel's word; 0: there is
    /// none.
    #[must_use]
    pub const fn window_len_bytes(&self) -> [u64; abi::MAX_WINDOWS] {
        self.info.window_len_bytes
    }

    /// Tells the kernel how many address lines the device has, 12 to 64. Before the first import;
    /// the device tree's limit stays.
    ///
    /// # Errors
    /// [`Error::Os`]: EBUSY, memory is imported; EINVAL, out of range; EIO, an IOMMU that cannot serve so few lines.
    pub fn set_addr_bits(&self, bits: u32) -> Result<(), Error> {
        self.kernel.ioctl(&self.file, Request::SetDmaBits(bits)).map_err(|errno| os("ioctl(CONTIGO_SET_DMA_BITS)", errno))
    }

    /// Lets a PCI function access memory. It may not after `open`. A platform device always may.
    ///
    /// # Errors
    /// [`Error::Os`]: EOPNOTSUPP, a platform device.
    ///
    /// # Safety
    /// As [`BusMaster::enable`](crate::BusMaster::enable).
    pub unsafe fn enable_bus_master(&self) -> Result<(), Error> {
        self.set_bus_master(true)
    }

    /// Takes that away: the device reaches no memory from here on.
    ///
    /// # Errors
    /// As [`enable_bus_master`](Self::enable_bus_master).
    pub fn disable_bus_master(&self) -> Result<(), Error> {
        self.set_bus_master(false)
    }

    fn set_bus_master(&self, on: bool) -> Result<(), Error> {
        self.kernel.ioctl(&self.file, Request::SetBusMaster(on)).map_err(|errno| os("ioctl(CONTIGO_SET_BUS_MASTER)", errno))
    }

    /// Leaves `program` with the kernel, for the device's register window `window` (its entry in
    /// `reg`, or its BAR), in the place of the one before. [`Engine::arm`](crate::Engine::arm) does
    /// it with the accelerator's own. An empty program disarms.
    ///
    /// # Errors
    /// [`Error::Os`]: ENXIO, no such window or a register outside of it; EINVAL, polls of more than a second together.
    ///
    /// # Safety
    /// - The program only stops this device: no write among its steps makes it, or another device,
    ///   access memory. It is run when the last descriptor of the file is closed, whatever the
    ///   device does then.
    /// - Where all of its polls are met, the device touches no memory until it is started again.
    /// - When this value is dropped, nobody drives the device any more: the kernel writes its
    ///   registers then.
    pub unsafe fn arm(&self, program: &StopProgram, window: u32) -> Result<(), Error> {
        let steps = program.steps_for(window);
        self.kernel.ioctl(&self.file, Request::Arm(&steps)).map_err(|errno| os("ioctl(CONTIGO_ARM)", errno))?;
        self.armed.store(!steps.is_empty(), Ordering::Relaxed);
        Ok(())
    }

    /// Gives up an import; where that fails, it counts as held.
    fn release(&self, handle: u32) {
        if self.kernel.ioctl(&self.file, Request::Release(handle)).is_ok() {
            self.imports.fetch_sub(1, Ordering::Release);
        }
    }

    pub(crate) const fn bus(&self) -> Bus {
        self.bus
    }
}

impl Drop for Guard {
    /// Closes the file, and the kernel stops the device. Where nothing was armed the kernel would
    /// take it as stopped, and give up what a forgotten job may still write: then the file stays
    /// open.
    fn drop(&mut self) {
        if self.armed.load(Ordering::Relaxed) || self.imports.load(Ordering::Acquire) == 0 {
            // SAFETY: `drop` runs once, and nothing uses the file after it.
            unsafe { ManuallyDrop::drop(&mut self.file) }
        }
    }
}

/// A bus that no other memory of this process is on.
fn next_bus() -> Result<Bus, Error> {
    // I/O address spaces count from 0 (`vfio`); these count down from the other end.
    const LAST: u32 = u32::MAX / 2;
    static NEXT: AtomicU32 = AtomicU32::new(u32::MAX);
    let next = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_sub(1).filter(|next| *next > LAST));
    next.map(Bus::Iommu).map_err(|_| Error::TooMany { what: "translated guards in the life of a program", most: LAST.into() })
}

const fn os(call: &'static str, errno: i32) -> Error {
    Error::Os { call, errno }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("info", &self.info).field("bus", &self.bus).finish_non_exhaustive()
    }
}

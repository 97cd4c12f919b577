#![allow(unsafe_code, reason = "a program that the kernel runs later writes registers")]
//! A device through the kernel module `contigo` (`kernel-helpers/`): one file for its registers,
//! its interrupts, its memory and its teardown. The module allocates memory for the device and
//! maintains its caches by ranges; it gives another driver's dma-buf an address. It stops the
//! device when the program that drives it ends, however it ends.
//!
//! ```text
//!   DevNode ──► OwnMemory ──► Region ──► …     allocated for the device: many buffers
//!     ├─────► DmaBuf ──► Region ──► …          a camera's dma-buf, or a dma-heap's block
//!     ├─────► Registers, DevNodeIrq              mapped, and waited for
//!     └────── Queue::arm:  what stops it       run by the kernel when the file goes, before the memory does
//! ```

#[allow(unreachable_pub, reason = "contigo-testkit includes this file, and shows what is in it")]
mod abi;
mod calls;
mod dma_buf;
mod info;
mod irq;
mod memory;
mod stop_program;
mod windows;

pub use self::dma_buf::DmaBuf;
pub use self::info::DevNodeInfo;
pub use self::irq::DevNodeIrq;
pub use self::memory::OwnMemory;

use self::abi::{
    DmaBits, INFO_COHERENT, INFO_TRANSLATED, Info, MAX_INTERRUPTS, Release, SyncRange,
};
use self::irq::Events;
use crate::job::StopProgram;
use crate::linux::os::fd::Fd;
use crate::linux::os::{Argument, Kernel, RUNNING, map as mapped};
use crate::mem::Port;
use crate::mem::backend::{Mapping, SyncScope};
use crate::types::shared::Shared;
use crate::types::{Align, BaseAddr, Bus, DevAddr, Error, PhysAddr};
use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use memmap2::MmapRaw;
use nix::libc::EPERM;
use spin::{Mutex, Once};

/// One device that is bound to the kernel module `contigo`: `/dev/contigo/<name>`, where `name` is
/// the kernel's for the device (`f8003000.dma-controller`, `40000000.gemm8`). One program at a time
/// can open it. It is a handle: clones share the open file, and its memory and interrupts hold a
/// handle each.
///
/// The file is all that a driver needs: [`registers`](Self::registers), [`irq`](Self::irq), and
/// memory: of the device's own ([`allocate`](Self::allocate)), or another
/// driver's ([`DmaBuf::import`],
/// [`DmaHeap::allocate_for`](crate::linux::memory::DmaHeap::allocate_for)). While it is open the
/// device is awake and its clocks run; opening resets a device that has a reset.
///
/// When the last handle and the last mapping of it are gone, however the process ends, the kernel
/// takes the registers and the interrupts away. It runs the program that
/// [`Queue::arm`](crate::Queue::arm) has loaded, and resets the device, if it can. Only then does
/// it release the memory that was allocated or imported. Where neither a program nor a reset stops
/// the device, the memory is kept until one does.
///
/// An import is held for this device only. A device behind another port needs an import of its own
/// ([`Region::export`](crate::Region::export) and [`DmaBuf::import`]), or the kernel does not wait
/// for that device after a crash. Make a [`Region`](crate::Region) of only one of the two, and
/// allocate every buffer from it; hold the other as long as that device may have one.
///
/// # References
/// `kernel-helpers/uapi/contigo.h`, the contract; `kernel-helpers/README.md`, how to install the
/// module and bind a device.
///
/// ```no_run
/// use contigo::{Bus, Port, Queue, Region, drivers::zdma::Zdma, hw::Wired, linux::dev_node::DevNode};
/// /// UG1085, "I/O Coherency".
/// const GDMA: Port = Port { name: "gdma", bus: Bus::Soc, offset: 0, addr_bits: 40, window: (0, (1 << 40) - 1), coherent: false };
/// let dev_node = DevNode::open("fd500000.dma-controller")?;
/// let region = Region::new(dev_node.allocate(4 << 20)?)?;
/// // SAFETY: GDMA's master reaches memory so; the module says whether an IOMMU is on.
/// let device = unsafe { Wired::new(dev_node.registers(0)?, dev_node.irq(0)?, dev_node.seen_through(GDMA)) };
/// // SAFETY: GDMA's channel 0 is at 0xFD50_0000 (UG1087), and nothing else drives it.
/// let queue = Queue::new(unsafe { Zdma::simple(device)? }, 1)?;
/// // SAFETY: this driver's registers are the contigo device's first window.
/// unsafe { queue.arm(&dev_node, 0)? };   // from here on a crash stops the device before its memory goes
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone)]
pub struct DevNode(Shared<Opened>);

struct Opened {
    kernel: Kernel,
    file: Fd,
    /// INVARIANT: `info::checked` passed it.
    info: Info,
    granule: Align,
    bus: Bus,
    /// Bit N: window N was handed out. Two mappings of the same registers would be two drivers.
    taken: AtomicU32,
    events: Events,
    /// Held while one of `events` is made.
    making: Mutex<()>,
}

impl DevNode {
    /// Opens `/dev/contigo/<name>`.
    ///
    /// # Errors
    /// - [`Error::BadName`]: `name` is empty, longer than 63 bytes, or holds a `/` or a NUL.
    /// - [`Error::NotFound`]: no bound device has that name; the error counts the others.
    /// - [`Error::Denied`]: this user may not open the file, or nothing confines the device and the
    ///   program lacks `CAP_SYS_RAWIO`. [`Error::InUse`]: another program has it, or its device,
    ///   behind an IOMMU, has not stopped since the last program.
    /// - [`Error::Unexpected`]: impossible values, or a module older than this program.
    /// - [`Error::Os`]: ENODEV, the device was unbound meanwhile. Else the errno of the clock, the
    ///   power domain or the reset that failed, which the kernel's log names.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::asking(RUNNING, name)
    }

    /// As [`open`](DevNode::open), with a kernel that the test provides.
    ///
    /// # Errors
    /// As [`open`](DevNode::open).
    #[cfg(feature = "testkit")]
    pub fn open_from(kernel: crate::linux::os::seam::Test, name: &str) -> Result<Self, Error> {
        Self::asking(Kernel::Test(kernel), name)
    }

    fn asking(kernel: Kernel, name: &str) -> Result<Self, Error> {
        let file = calls::open(&kernel, name)?;
        let (info, granule) = info(&kernel, &file)?;
        let bus = if info.flags & INFO_TRANSLATED == 0 { Bus::Soc } else { next_bus()? };
        let (taken, making) = (AtomicU32::new(0), Mutex::new(()));
        let events = [const { Once::new() }; MAX_INTERRUPTS];
        Shared::new(Opened { kernel, file, info, granule, bus, taken, events, making }).map(Self)
    }

    /// The facts about the device and this file, as the kernel reports them now.
    ///
    /// # Errors
    /// [`Error::Os`]: ENODEV, the device was taken away. [`Error::Unexpected`]: the module reports
    /// impossible values.
    pub fn info(&self) -> Result<DevNodeInfo, Error> {
        let (info, _) = info(&self.0.kernel, &self.0.file)?;
        Ok(DevNodeInfo::from(&info))
    }

    /// Returns `port` as the kernel describes this device. Where `dma-ranges` or an IOMMU
    /// translates its addresses, the port is on a bus of its own with no offset, because the
    /// kernel's addresses are then valid for this device alone. The silicon's reach stays
    /// (`addr_bits`, `window`), and so does whether it snoops.
    ///
    /// Memory whose port disagrees about coherency is refused ([`Error::CoherencyMismatch`]): the
    /// device tree is wrong then, or the port.
    #[must_use]
    pub fn seen_through(&self, port: Port) -> Port {
        match self.0.bus {
            Bus::Soc => port,
            bus => Port { bus, offset: 0, ..port },
        }
    }

    /// Returns whether the device snoops the CPU's caches, as the kernel reports (`dma-coherent`).
    #[must_use]
    pub fn is_coherent(&self) -> bool {
        self.0.info.flags & INFO_COHERENT != 0
    }

    /// Tells the kernel how many address lines the device has, 32 to 64; fewer only where the
    /// device tree allows no more. Call it before the first allocation or import; the device tree's
    /// limit stays.
    ///
    /// # Errors
    /// [`Error::Os`]: EBUSY, memory is allocated or imported; EINVAL, out of range; EIO, the kernel
    /// cannot serve so few lines.
    pub fn set_addr_bits(&self, bits: u32) -> Result<(), Error> {
        self.0
            .ask(&mut DmaBits { bits, reserved: 0 })
            .map_err(|errno| os("ioctl(CONTIGO_SET_DMA_BITS)", errno))
    }

    /// Resets the device by its reset lines: it is as after power-on, and accesses no memory.
    /// Memory in quarantine for it is freed. To continue with the queue of a device that would not
    /// stop, call [`Queue::stop`](crate::Queue::stop).
    ///
    /// Stop the queue before, or right after, and submit nothing in between. The driver of a core
    /// that takes several jobs (`ap_ctrl_chain`) would take the end of a later job for the end of
    /// one that the reset cut short, whose output the core did not write.
    ///
    /// # Errors
    /// [`Error::Os`] with `ioctl(CONTIGO_RESET)`: EOPNOTSUPP, the kernel cannot reset it; else the
    /// reset driver's errno.
    ///
    /// # Safety
    /// No other thread calls a queue or a stream of this device meanwhile: to start a job, to poll,
    /// or to wait. Some drivers start jobs while they wait. The kernel holds a thread that touches
    /// a register until the reset is over. A thread held between a job's addresses and its doorbell
    /// would then start a job with cleared addresses. Where no IOMMU confines the device, there is
    /// memory at address 0 too.
    pub unsafe fn reset(&self) -> Result<(), Error> {
        calls::reset(&self.0.kernel, &self.0.file)
            .map_err(|errno| os("ioctl(CONTIGO_RESET)", errno))
    }

    /// Loads `program` into the kernel, for the device's register window `window` (its entry in
    /// `reg`), replacing the one before. [`Queue::arm`](crate::Queue::arm) does it with the
    /// driver's own program. An empty program disarms.
    ///
    /// # Errors
    /// - [`Error::Denied`]: the node does not say that each register of this window answers
    ///   (`contigo,stop-windows`), and the program lacks `CAP_SYS_RAWIO`.
    /// - [`Error::Os`]: ENXIO, no such window or a register outside of it; EINVAL, polls of more
    ///   than a second together.
    ///
    /// # Safety
    /// - The program only stops this device: no write among its steps makes it, or another device,
    ///   access memory. The kernel runs it when the last descriptor of the file is closed, whatever
    ///   the device does then.
    /// - If all of its polls succeed, the device touches no memory until it is started again.
    /// - When this value and its registers are dropped, no code drives the device any more, through
    ///   a UIO device or `/dev/mem`: the kernel writes its registers then.
    pub unsafe fn arm(&self, program: &StopProgram, window: u32) -> Result<(), Error> {
        let steps = program.steps_for(window);
        let fix = "add contigo,stop-windows = <0>; to the device's node where each of its \
         registers answers, or run with CAP_SYS_RAWIO";
        calls::arm(&self.0.kernel, &self.0.file, &steps).map_err(|errno| match errno {
            EPERM => Error::Denied {
                what: "leaving a stop sequence with the kernel, which could \
             not survive a bus error",
                errno,
                fix,
            },
            errno => os("ioctl(CONTIGO_ARM)", errno),
        })
    }

    /// Synchronises `ranges`, none of which is empty, in one call: none where there are none.
    fn sync(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        if ranges.is_empty() {
            return Ok(());
        }
        calls::sync(&self.0.kernel, &self.0.file, ranges)
            .map_err(|errno| os("ioctl(CONTIGO_SYNC)", errno))
    }

    /// Memory of this device, which the kernel says is at `addr`: a physical address where nothing
    /// translates. `scope`: where the device does not snoop.
    fn mapping(&self, map: &MmapRaw, addr: u64, scope: SyncScope) -> Mapping {
        let coherent = self.is_coherent();
        let base = match self.0.bus {
            Bus::Soc => BaseAddr::Phys(PhysAddr(addr)),
            _ => BaseAddr::Dev(DevAddr(addr)),
        };
        let scope = if coherent { SyncScope::Coherent } else { scope };
        Mapping {
            cpu: mapped::start(map),
            len_bytes: map.len(),
            base,
            bus: self.0.bus,
            scope,
            coherent: Some(coherent),
        }
    }

    /// Releases an import or an allocation; if that fails, the file keeps it.
    fn release(&self, handle: u32) {
        let _ = self.0.ask(&mut Release { handle, reserved: 0 });
    }
}

impl Opened {
    /// One ioctl with its structure.
    fn ask<A: Argument>(&self, argument: &mut A) -> Result<(), i32> {
        calls::ask(&self.kernel, &self.file, argument)
    }
}

/// What the kernel reports about the device, and the unit that two owners may not share.
fn info(kernel: &Kernel, file: &Fd) -> Result<(Info, Align), Error> {
    let info = calls::info(kernel, file).map_err(|errno| os("ioctl(CONTIGO_GET_INFO)", errno))?;
    info::checked(info)
}

/// A bus that no other memory of this process is on.
fn next_bus() -> Result<Bus, Error> {
    // I/O address spaces count from 0 (`vfio`); these count down from the other end.
    const LAST: u32 = u32::MAX / 2;
    static NEXT: AtomicU32 = AtomicU32::new(u32::MAX);
    let next = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
        next.checked_sub(1).filter(|next| *next > LAST)
    });
    next.map(Bus::Iommu).map_err(|_| Error::TooMany {
        what: "translated contigo devices in the life of a program",
        most: LAST.into(),
    })
}

/// Refuses a range that is not all within the `len_bytes` of a block.
const fn check(range: &Range<usize>, len_bytes: usize) -> Result<(), Error> {
    if range.start <= range.end && range.end <= len_bytes {
        return Ok(());
    }
    Err(Error::OutOfRange { start: range.start, end: range.end, len_bytes })
}

/// Bytes `range` of the buffer `handle`, which has them, for `CONTIGO_SYNC`.
fn to_sync(handle: u32, range: &Range<usize>, flags: u32) -> SyncRange {
    let (offset_bytes, len_bytes) = (range.start as u64, range.len() as u64);
    SyncRange { handle, flags, offset_bytes, len_bytes }
}

const fn os(call: &'static str, errno: i32) -> Error {
    Error::Os { call, errno }
}

impl fmt::Debug for DevNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevNode")
            .field("info", &self.0.info)
            .field("bus", &self.0.bus)
            .finish_non_exhaustive()
    }
}

//! An open device: what it is, and who has it.

use super::DeviceName;
use super::contigo_device::ContigoDevice;
use super::kernel_registers::KernelRegisters;
use super::provided::GpuDevice;
use super::shared_core::SharedCore;
use contigo_core::linux::vfio::Vfio;
use contigo_core::types::Error;
use contigo_core::types::shared::Shared;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

/// An open device: **opening it once serves its registers, its interrupt and the memory that
/// belongs to it.** It is a handle: clones share the same open device, and each driver and memory
/// made from it holds one. When the last of them is dropped, the device is closed, and the kernel
/// stops it where it can (`vfio:…`, `contigo:…`).
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::zdma::Zdma};
/// use contigo::names::{Attach, DeviceName, MemoryName};
/// use core::time::Duration;
/// let device = "sim:zdma@7".parse::<DeviceName>()?.open()?;
/// let memory: MemoryName = "sim".parse()?;
/// let region = Region::new(device.memory(&memory, 1 << 20)?)?;
/// // SAFETY: the model is a ZDMA.
/// let mut queue = Queue::new(unsafe { Zdma::simple(device.attach(Attach::default())?)? }, 1)?;
/// let [from, to] = [region.alloc(4096, Align::LINE)?, region.alloc(4096, Align::LINE)?];
/// let [_from, _to] = queue.run([from.to_device(..), to.from_device(..)], &[], Duration::from_millis(20))?.buffers;
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone)]
pub struct OpenDevice(pub(super) Shared<Inner>);

pub(super) struct Inner {
    pub(super) name: DeviceName,
    /// What several drivers share.
    pub(super) core: SharedCore,
    /// A driver has the registers.
    pub(super) attached: AtomicBool,
    pub(super) opened: Opened,
}

pub(super) enum Opened {
    /// Registers whose port the program declares: a UIO device's, or a PCI function's.
    Plain(KernelRegisters),
    /// A device that the kernel module has.
    ContigoDevice(ContigoDevice),
    Vfio(Vfio),
    #[cfg(feature = "sim")]
    Simulated(contigo_sim::SimBoard, super::simulated::Models),
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    Gpu(contigo_core::cuda::Gpu),
    /// A GPU that another crate provided.
    Provided(&'static dyn GpuDevice),
}

impl OpenDevice {
    pub(super) fn new(name: &DeviceName, opened: Opened) -> Result<Self, Error> {
        let (core, attached) = (SharedCore::new(), AtomicBool::new(false));
        Shared::new(Inner { name: *name, core, attached, opened }).map(Self)
    }

    pub(super) fn core(&self) -> &SharedCore {
        &self.0.core
    }

    /// Its driver was dropped.
    pub(super) fn let_go(&self) {
        self.0.attached.store(false, Ordering::Release);
    }
}

impl fmt::Debug for OpenDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenDevice").field("name", &self.0.name).finish_non_exhaustive()
    }
}

#![allow(unsafe_code, reason = "`unsafe impl Backend`, which is another backend's in every method")]
//! Memory of every kind as one type: which there is, and how it is opened by its name.
//!
//! **A new kind of memory** needs more than its arms here: CONTRIBUTING.md lists the places.

use super::{
    called,
    files::Files,
    found::{self, Facts},
    kinds::MemoryKind,
    memory_name::MemoryName,
    opened::OpenDevice,
    provided::OwnedMemory,
};
use contigo_core::{
    forward,
    linux::{
        dev_node::{DmaBuf, OwnMemory},
        memory::{DmaHeap, HugeTlb, UDmaBuf},
        vfio::VfioMemory,
    },
    mem::Backend,
    types::{Error, platform::OwnedFd},
};
use core::fmt;

/// Memory of any kind: a [`Backend`] for a program whose user names the memory. It owns the block,
/// with no heap, and keeps the device open that the block belongs to.
///
/// `MemoryName::open` and [`OpenDevice::memory`](super::OpenDevice::memory) make one from a name,
/// and `From` makes one from each type that holds memory.
///
/// ```
/// # #[cfg(feature = "sim")] {
/// use contigo::{Region, names::AnyMemory, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let memory: AnyMemory = board.memory(4096)?.into();
/// assert_eq!(Region::new(memory)?.len_bytes(), 4096);
/// # }
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct AnyMemory(Block);

/// One of the types that hold memory.
enum Block {
    UDmaBuf(UDmaBuf),
    DmaHeap(DmaHeap),
    ContigoDevice(OwnMemory),
    Imported(DmaBuf),
    HugeTlb(HugeTlb),
    Vfio(VfioMemory),
    #[cfg(feature = "sim")]
    Sim(contigo_sim::Sim),
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    Cuda(contigo_core::cuda::CudaHost),
    Provided(OwnedMemory),
}

impl Block {
    fn backend(&self) -> &dyn Backend {
        match self {
            Self::UDmaBuf(block) => block,
            Self::DmaHeap(block) => block,
            Self::ContigoDevice(block) => block,
            Self::Imported(block) => block,
            Self::HugeTlb(block) => block,
            Self::Vfio(block) => block,
            #[cfg(feature = "sim")]
            Self::Sim(block) => block,
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Self::Cuda(block) => block,
            Self::Provided(block) => block,
        }
    }
}

impl From<UDmaBuf> for AnyMemory {
    fn from(block: UDmaBuf) -> Self {
        Self(Block::UDmaBuf(block))
    }
}

impl From<DmaHeap> for AnyMemory {
    fn from(block: DmaHeap) -> Self {
        Self(Block::DmaHeap(block))
    }
}

impl From<OwnMemory> for AnyMemory {
    fn from(block: OwnMemory) -> Self {
        Self(Block::ContigoDevice(block))
    }
}

impl From<DmaBuf> for AnyMemory {
    fn from(block: DmaBuf) -> Self {
        Self(Block::Imported(block))
    }
}

impl From<HugeTlb> for AnyMemory {
    fn from(block: HugeTlb) -> Self {
        Self(Block::HugeTlb(block))
    }
}

impl From<VfioMemory> for AnyMemory {
    fn from(block: VfioMemory) -> Self {
        Self(Block::Vfio(block))
    }
}

#[cfg(feature = "sim")]
impl From<contigo_sim::Sim> for AnyMemory {
    fn from(block: contigo_sim::Sim) -> Self {
        Self(Block::Sim(block))
    }
}

#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
impl From<contigo_core::cuda::CudaHost> for AnyMemory {
    fn from(block: contigo_core::cuda::CudaHost) -> Self {
        Self(Block::Cuda(block))
    }
}

impl From<OwnedMemory> for AnyMemory {
    fn from(block: OwnedMemory) -> Self {
        Self(Block::Provided(block))
    }
}

// SAFETY: every method belongs to one backend, the same one at every call, because the value inside
// is never replaced. Moving this value moves no block, as that backend promises.
unsafe impl Backend for AnyMemory {
    forward!(|this| this.0.backend() =>
        name, mapping, segment, sync_for_device, sync_for_cpu, settled, handle, held_by,
        wrong_accesses
    );

    unsafe fn export(&self) -> Result<OwnedFd, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.0.backend().export() }
    }
}

impl fmt::Debug for AnyMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyMemory")
            .field("name", &self.name())
            .field("mapping", &self.mapping())
            .finish()
    }
}

impl MemoryName {
    /// Opens `len_bytes` of it. For memory that belongs to a device, this opens the device too, and
    /// keeps it open; if the device is open already, use [`OpenDevice::memory`]. A u-dma-buf has a
    /// fixed size, so all of its block is opened.
    ///
    /// # Errors
    /// - [`Error::NeedsDevice`]: the name does not say which device it belongs to.
    /// - [`Error::NotBuiltIn`]: this program was built without it.
    /// - [`Error::BlockSize`]: the block is smaller. The errors of
    ///   [`DeviceName::open`](super::DeviceName::open), and of the backend's own function.
    ///
    /// ```
    /// use contigo::{names::MemoryName, Region};
    /// let name: MemoryName = "sim:7".parse()?; // or "u-dma-buf:udmabuf0", "contigo:f8003000"
    /// let region = Region::new(name.open(1 << 20)?)?;
    /// assert_eq!(region.len_bytes(), 1 << 20);
    /// # Ok::<(), contigo::Error>(())
    /// ```
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn open(&self, len_bytes: usize) -> Result<AnyMemory, Error> {
        match self.device() {
            Some(owner) => owner.open()?.memory(self, len_bytes),
            None => of(self, None, len_bytes),
        }
    }
}

impl OpenDevice {
    /// Opens `len_bytes` of memory for this device: memory of its own (`contigo`, `vfio:…`), a
    /// dma-heap's block through its device node, or memory that belongs to no device.
    ///
    /// # Errors
    /// - [`Error::NeedsDevice`]: it belongs to another device.
    /// - [`Error::NotBuiltIn`]: this program was built without it. The error of the backend's own
    ///   function.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn memory(&self, name: &MemoryName, len_bytes: usize) -> Result<AnyMemory, Error> {
        if name.device().is_some_and(|owner| !self.is(&owner)) {
            return Err(Error::NeedsDevice { kind: name.kind() });
        }
        of(name, Some(self), len_bytes)
    }
}

/// Memory of `device`, if it belongs to one.
#[cfg_attr(feature = "audit", track_caller)]
fn of(
    name: &MemoryName,
    device: Option<&OpenDevice>,
    len_bytes: usize,
) -> Result<AnyMemory, Error> {
    let (argument, dev_node) = (name.argument(), device.and_then(OpenDevice::dev_node));
    let (row, other) = (name.row(), Error::NeedsDevice { kind: name.kind() });
    Ok(match row.id {
        MemoryKind::Contigo => dev_node.ok_or(other)?.allocate(len_bytes)?.into(),
        MemoryKind::UDmaBuf => at_least(UDmaBuf::open(argument)?, len_bytes)?,
        MemoryKind::DmaHeap => match dev_node {
            Some(dev_node) => DmaHeap::allocate_for(dev_node, argument, len_bytes)?.into(),
            None => DmaHeap::allocate(argument, len_bytes)?.into(),
        },
        MemoryKind::HugeTlb => HugeTlb::new(len_bytes)?.into(),
        MemoryKind::Vfio => {
            device.and_then(OpenDevice::vfio).ok_or(other)?.memory(len_bytes)?.into()
        }
        #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
        MemoryKind::Cuda => {
            let gpu = device.and_then(OpenDevice::gpu).ok_or(other)?;
            contigo_core::cuda::CudaHost::allocate(
                gpu,
                len_bytes,
                contigo_core::types::Align::PAGE,
            )?
            .into()
        }
        #[cfg(not(all(feature = "cuda", target_pointer_width = "64")))]
        MemoryKind::Cuda => return Err(Error::NotBuiltIn { kind: row.kind, feature: row.feature }),
        MemoryKind::Vulkan | MemoryKind::OpenCl => {
            device.and_then(OpenDevice::provided).ok_or(other)?.memory(len_bytes)?.into()
        }
        #[cfg(feature = "sim")]
        MemoryKind::Sim => {
            device.and_then(OpenDevice::board).ok_or(other)?.memory(len_bytes)?.into()
        }
        #[cfg(not(feature = "sim"))]
        MemoryKind::Sim => return Err(Error::NotBuiltIn { kind: row.kind, feature: row.feature }),
    })
}

/// A block of fixed size, if it is large enough.
fn at_least(block: UDmaBuf, need_bytes: usize) -> Result<AnyMemory, Error> {
    let len_bytes = block.mapping().len_bytes;
    if len_bytes < need_bytes {
        return Err(Error::BlockSize { len_bytes, need_bytes, line_bytes: 1 });
    }
    Ok(block.into())
}

/// Calls `each` with the argument of every name that exists of a kind.
pub(super) fn find(kind: MemoryKind, files: Files<'_>, each: &mut dyn FnMut(&str)) {
    match kind {
        MemoryKind::Contigo => files.each(called::DEV_NODES, each),
        MemoryKind::UDmaBuf => ["sys/class/u-dma-buf", "sys/class/udmabuf"]
            .into_iter()
            .for_each(|class| files.each(class, each)),
        MemoryKind::DmaHeap => found::dma_heaps(files, each),
        MemoryKind::HugeTlb => found::huge_pages(files, each),
        MemoryKind::Vfio => found::vfio_functions(files, each),
        MemoryKind::Cuda => found::gpus(files, each),
        MemoryKind::Vulkan => found::vulkan_drivers(files, each),
        MemoryKind::OpenCl => found::opencl_drivers(files, each),
        MemoryKind::Sim => each(""),
    }
}

/// What is known of one memory.
pub(super) fn facts(kind: MemoryKind, files: Files<'_>, argument: &str) -> Facts {
    match kind {
        MemoryKind::Contigo => found::own_memory(files, argument),
        MemoryKind::UDmaBuf => found::u_dma_buf(files, argument),
        MemoryKind::DmaHeap => found::dma_heap(files, argument),
        MemoryKind::HugeTlb => found::hugetlb(files, argument),
        MemoryKind::Vfio => found::vfio(files, argument),
        MemoryKind::Cuda | MemoryKind::Vulkan | MemoryKind::OpenCl | MemoryKind::Sim => {
            Facts::default()
        }
    }
}

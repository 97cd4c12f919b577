//! Memory of every kind: which there is, and how it is opened by its name.
//!
//! **A new kind of memory** needs more than its arms here: CONTRIBUTING.md lists the places.

use super::any_memory::AnyMemory;
use super::called;
use super::files::Files;
use super::found::{self, Facts};
use super::kinds::MemoryKind;
use super::memory_name::MemoryName;
use super::opened::OpenDevice;
use contigo_core::linux::memory::{DmaHeap, HugeTlb, UDmaBuf};
use contigo_core::mem::Backend;
use contigo_core::types::Error;

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

    /// Memory of this device that needs no sync, for a driver's descriptors; `None`: it has none.
    /// A simulated board has it where it is `asked` for, so that a driver's syncs are seen there.
    pub(super) fn coherent_memory(
        &self,
        len_bytes: usize,
        asked: bool,
    ) -> Result<Option<AnyMemory>, Error> {
        if let Some(dev_node) = self.dev_node() {
            return AnyMemory::new(dev_node.allocate_coherent(len_bytes)?).map(Some);
        }
        #[cfg(feature = "sim")]
        if let Some(board) = self.board().filter(|_| asked) {
            return AnyMemory::new(board.memory_coherent(len_bytes)?).map(Some);
        }
        let _ = asked;
        Ok(None)
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
    match row.id {
        MemoryKind::Contigo => AnyMemory::new(dev_node.ok_or(other)?.allocate(len_bytes)?),
        MemoryKind::UDmaBuf => at_least(UDmaBuf::open(argument)?, len_bytes),
        MemoryKind::DmaHeap => match dev_node {
            Some(dev_node) => AnyMemory::new(DmaHeap::allocate_for(dev_node, argument, len_bytes)?),
            None => AnyMemory::new(DmaHeap::allocate(argument, len_bytes)?),
        },
        MemoryKind::HugeTlb => AnyMemory::new(HugeTlb::new(len_bytes)?),
        MemoryKind::Vfio => {
            AnyMemory::new(device.and_then(OpenDevice::vfio).ok_or(other)?.memory(len_bytes)?)
        }
        #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
        MemoryKind::Cuda => {
            use contigo_core::cuda::CudaHost;
            use contigo_core::types::Align;
            let gpu = device.and_then(OpenDevice::gpu).ok_or(other)?;
            AnyMemory::new(CudaHost::allocate(gpu, len_bytes, Align::PAGE)?)
        }
        #[cfg(not(all(feature = "cuda", target_pointer_width = "64")))]
        MemoryKind::Cuda => Err(Error::NotBuiltIn { kind: row.kind, feature: row.feature }),
        MemoryKind::Vulkan | MemoryKind::OpenCl => {
            device.and_then(OpenDevice::provided).ok_or(other)?.memory(len_bytes)
        }
        #[cfg(feature = "sim")]
        MemoryKind::Sim => {
            AnyMemory::new(device.and_then(OpenDevice::board).ok_or(other)?.memory(len_bytes)?)
        }
        #[cfg(not(feature = "sim"))]
        MemoryKind::Sim => Err(Error::NotBuiltIn { kind: row.kind, feature: row.feature }),
    }
}

/// A block of fixed size, if it is large enough.
fn at_least(block: UDmaBuf, need_bytes: usize) -> Result<AnyMemory, Error> {
    let len_bytes = block.mapping().len_bytes;
    if len_bytes < need_bytes {
        return Err(Error::BlockSize { len_bytes, need_bytes, line_bytes: 1 });
    }
    AnyMemory::new(block)
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

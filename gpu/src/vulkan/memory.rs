#![allow(unsafe_code, reason = "a backend, and objects of Vulkan that are freed once")]
//! Any memory of this process, as a Vulkan device's.

use super::VulkanGpu;
use super::import::{self, Imported};
use crate::Pages;
use contigo::mem::{Api, Handle, Holder, Mapping, SyncScope, WrongAccesses};
use contigo::types::{BaseAddr, Refused};
use contigo::{Backend, DevAddr, Direction, Error, Result};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Range;
use std::os::fd::AsFd;

/// Any memory of this process, as a Vulkan device's: a [`Backend`] whose bytes are those of the
/// backend that it was made of, with nothing copied.
///
/// **Owner.** The memory belongs to this value until it is dropped. Then the device lets go of it,
/// and the backend inside is dropped. Beside a job that does not end, on a lost device, or in a
/// child of fork, both are leaked. A [`Region`](contigo::Region) over it, and what is
/// allocated of it, keep it.
///
/// **Addresses.** It is on the device's own bus ([`VulkanGpu::bus`]), which no other device
/// understands; the backend's own address is out of use for as long. Its
/// [`handle`](Backend::handle) is the `VkBuffer`.
///
/// ```no_run
/// use contigo::{Region, linux::memory::HugeTlb};
/// use contigo_gpu::vulkan::{VulkanGpu, VulkanMemory};
/// let gpu = VulkanGpu::open(0)?;
/// let own = Region::new(VulkanMemory::allocate(gpu, 1 << 20)?)?;
/// // The same huge page that an FPGA could have had, with no copy.
/// let imported = Region::new(VulkanMemory::import(gpu, HugeTlb::new(2 << 20)?)?)?;
/// # drop((own, imported));
/// # Ok::<(), contigo::Error>(())
/// ```
///
/// # References
/// Vulkan 1.3, "Device Memory", "Host Access to Device Memory Objects",
/// `VkImportMemoryHostPointerInfoEXT`, `VkImportMemoryFdInfoKHR`.
pub struct VulkanMemory<B: Backend = Pages> {
    gpu: &'static VulkanGpu,
    /// Dropped when the device has let go of it.
    backend: ManuallyDrop<B>,
    imported: Imported,
    base: DevAddr,
}

impl VulkanMemory<Pages> {
    /// Maps `len_bytes`, rounded up to whole pages of 64 KiB and zeroed, and imports them.
    ///
    /// # Errors
    /// As [`Pages::new`] and [`import`](VulkanMemory::import).
    pub fn allocate(gpu: &'static VulkanGpu, len_bytes: usize) -> Result<Self> {
        Ok(Self::import(gpu, Pages::new(len_bytes)?)?)
    }
}

impl<B: Backend> VulkanMemory<B> {
    /// Imports the bytes of `backend` by their pointer: `VK_EXT_external_memory_host`.
    ///
    /// A driver need not look at the bytes. Mesa's lavapipe takes any pointer, and pages that are
    /// a device's registers are refused by GPUs' drivers at the import.
    ///
    /// # Errors
    /// The backend comes back with
    /// - [`Error::Misaligned`], [`Error::Argument`]: its bytes do not begin or end at a multiple of
    ///   `min_imported_host_pointer_alignment`, or are more than `max_allocation_bytes`
    ///   ([`VulkanFacts`](super::VulkanFacts)).
    /// - [`Error::Gpu`] with `VK_ERROR_INVALID_EXTERNAL_HANDLE`: the driver refuses the pointer.
    /// - [`Error::Unsupported`]: the GPU would not see these bytes coherently.
    ///   [`Error::BlockSize`]: they are fewer than the driver needs.
    /// - [`Error::TooMany`]: 256 blocks are there. [`Error::Contended`].
    /// - [`Error::Forked`]: this is a child of the process that opened the device.
    pub fn import(gpu: &'static VulkanGpu, backend: B) -> Result<Self, Refused<B>> {
        let mapping = backend.mapping();
        // SAFETY: a backend's bytes stay mapped until it is dropped, which `drop` does after the
        // device has let go of them. A job has only what was handed over to it.
        let imported = unsafe { import::host(gpu, &mapping) };
        Self::made(gpu, backend, imported)
    }

    /// Imports the bytes of `backend` as a dma-buf: `VK_EXT_external_memory_dma_buf`. For memory
    /// that the device's driver does not take by its pointer, because it is no ordinary page.
    ///
    /// # Errors
    /// The backend comes back with [`Error::Unsupported`]: the device does not import dma-bufs
    /// ([`has_dma_buf`](super::VulkanFacts::has_dma_buf)), or the hardware does not keep the memory
    /// coherent for every master ([`SyncScope::Coherent`]).
    /// [`Error::Os`]: the kernel exports none. As [`import`](Self::import).
    pub fn import_dma_buf(gpu: &'static VulkanGpu, backend: B) -> Result<Self, Refused<B>> {
        let mapping = backend.mapping();
        let imported = import::can_import_dma_buf(gpu, &mapping).and_then(|_| {
            // SAFETY: the backend has lent nothing, because it is owned here; the importer lets go
            // of it before it is dropped. In between the device touches what was handed over to it,
            // and no caches need maintenance, because the memory is coherent.
            let fd = unsafe { backend.export()? };
            // SAFETY: the dma-buf holds the whole block (`Backend`, 7); otherwise as in `import`.
            unsafe { import::dma_buf(gpu, &mapping, fd.as_fd()) }
        });
        Self::made(gpu, backend, imported)
    }

    fn made(
        gpu: &'static VulkanGpu,
        backend: B,
        imported: Result<Imported>,
    ) -> Result<Self, Refused<B>> {
        let refused = |error: Error, backend| Err(Refused::new(error, backend));
        let imported = match imported {
            Ok(imported) => imported,
            Err(error) => return refused(error, backend),
        };
        match gpu.objects.add(imported.object, backend.mapping().len_bytes) {
            Ok(base) => Ok(Self { gpu, backend: ManuallyDrop::new(backend), imported, base }),
            Err(error) => {
                // SAFETY: no job has seen it, and it is not used again.
                unsafe { imported.free(gpu) }
                refused(error, backend)
            }
        }
    }

    /// The device.
    #[must_use]
    pub const fn gpu(&self) -> &'static VulkanGpu {
        self.gpu
    }
}

impl<B: Backend> Drop for VulkanMemory<B> {
    /// Takes the memory from the device and drops the backend; or leaks both, where a job may still
    /// write there.
    fn drop(&mut self) {
        // A job that does not end has its buffers, and a region with buffers out is not dropped.
        // Beside such a job nothing is freed all the same: a driver may wait for it.
        if self.gpu.is_hung() || self.gpu.objects.remove(self.base).is_err() {
            return;
        }
        // SAFETY: the code that drops this value has all of its bytes, so that no job has any. No
        // job can find the buffer any more.
        // The backend is dropped once, and the device does not reach it any more.
        unsafe {
            self.imported.free(self.gpu);
            ManuallyDrop::drop(&mut self.backend);
        }
    }
}

// SAFETY: 1, 2. The bytes are the backend's, which is owned and does not change. 3. Nothing is
// synchronised. 4. Objects gave the addresses to this block alone, on the device's own bus, as one
// run. 5. The buffer is over all of the block, and lives until this value is dropped. 6. The type
// of the device's memory is HOST_COHERENT, which needs no cache management by the host (Vulkan 1.3,
// "Device Memory"), and a kernel's commands have the barriers. A dma-buf is taken only where its
// backend says that the hardware keeps it coherent for every master.
unsafe impl<B: Backend> Backend for VulkanMemory<B> {
    fn name(&self) -> &'static str {
        "vulkan"
    }

    fn mapping(&self) -> Mapping {
        // Behind its port nothing is ever synchronised. The granule is there for buffers and slots,
        // which begin at multiples of it: so a kernel takes each of them.
        let scope = SyncScope::Range { granule_bytes: self.gpu.align().bytes() };
        Mapping {
            base: BaseAddr::Dev(self.base),
            bus: self.gpu.bus(),
            scope,
            coherent: Some(true),
            ..self.backend.mapping()
        }
    }

    unsafe fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }

    unsafe fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }

    fn handle(&self) -> Option<Handle> {
        let raw = ash::vk::Handle::as_raw(self.imported.object.buffer);
        Some(Handle { api: Api::Vulkan, raw, device_id: self.gpu.facts().ordinal })
    }

    fn held_by(&self, range: Range<usize>, holder: Holder<'_>) {
        self.backend.held_by(range, holder);
    }

    fn wrong_accesses(&self) -> Result<WrongAccesses> {
        self.backend.wrong_accesses()
    }
}

impl<B: Backend> fmt::Debug for VulkanMemory<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanMemory")
            .field("over", &self.backend.name())
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

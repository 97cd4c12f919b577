#![allow(unsafe_code, reason = "another importer writes the memory: implementing and calling it are promises")]
//! Memory that can be given to another importer.

use crate::{
    linux::os::ExportedFd,
    mem::{Backend, Region},
    types::Error,
};

/// The refusal of memory that no other importer can have: huge pages, VFIO's, the simulated
/// board's.
pub const NO_DMA_BUF: Error = Error::Unsupported {
    what: "this memory is no dma-buf, which another importer could take",
    fix: "use u-dma-buf, dma-heap or an imported dma-buf",
};

/// Memory that the kernel holds as a dma-buf, or can: u-dma-buf, a dma-heap's, an imported one.
///
/// # Safety
/// Callers promise what [`Region::export`] asks for.
///
/// # Implementation safety
/// The descriptor is of a dma-buf that holds the whole block, and stays its own after the backend
/// is dropped.
pub unsafe trait Export: Backend {
    /// A descriptor of a dma-buf that holds the whole block.
    ///
    /// # Errors
    /// An error of the kernel. A type for many kinds of memory answers [`NO_DMA_BUF`] for others.
    ///
    /// # Safety
    /// As [`Region::export`].
    unsafe fn export(&self) -> Result<ExportedFd, Error>;
}

impl<B: Export> Region<B> {
    /// A descriptor of a dma-buf that holds the block, for another importer: a camera's or a
    /// display's driver writes or reads it without a copy.
    ///
    /// # Safety
    /// - While an importer has the block mapped, nobody has a view of any byte of it, and no engine
    ///   has a job in it. The importer reads, writes, and maintains the caches of all of it, carves
    ///   of others included.
    /// - Of u-dma-buf: the importers have let go of it before this region is dropped, because then
    ///   another program may open the device.
    ///
    /// # Errors
    /// [`Error::Os`]: what the kernel says.
    ///
    /// ```no_run
    /// use contigo::{DmaHeap, Guard, Region};
    /// let guard = Guard::open("40000000.gemm8")?;
    /// let region = Region::new(DmaHeap::allocate_for(&guard, "linux,cma", 4 << 20)?)?;
    /// // SAFETY: nothing is carved from it yet; the camera has it alone until VIDIOC_DQBUF.
    /// let fd = unsafe { region.export()? };   // AsFd: V4L2's VIDIOC_QBUF with V4L2_MEMORY_DMABUF, DRM's PRIME
    /// # drop(fd);
    /// # Ok::<(), contigo::Error>(())
    /// ```
    pub unsafe fn export(&self) -> Result<ExportedFd, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.backend.export() }
    }
}

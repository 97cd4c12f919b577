#![allow(unsafe_code, reason = "`unsafe impl Backend`, which is another backend's in every method")]
//! Every kind of memory as one type, so that a heap is one type.

#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
use contigo::cuda::CudaHost;
use contigo::{
    Backend, Direction, DmaBuf, DmaHeap, Error, Export, ExportedFd, HugeTlb, Mapping, Segment, UDmaBuf, linux::NO_DMA_BUF, sim::Sim,
};
use core::ops::Range;

/// Every kind of memory. It owns the block.
pub(crate) enum Memory {
    Sim(Sim<'static>),
    UDmaBuf(UDmaBuf),
    DmaHeap(DmaHeap),
    DmaHeapFor(DmaBuf<'static>),
    HugePages(HugeTlb),
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    Cuda(CudaHost<'static>),
}

impl Memory {
    fn backend(&self) -> &dyn Backend {
        match self {
            Self::Sim(block) => block,
            Self::UDmaBuf(block) => block,
            Self::DmaHeap(block) => block,
            Self::DmaHeapFor(block) => block,
            Self::HugePages(block) => block,
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Self::Cuda(block) => block,
        }
    }
}

// SAFETY: every method is one backend's own, the same at every call, because what is inside is never exchanged.
unsafe impl Backend for Memory {
    fn name(&self) -> &'static str {
        self.backend().name()
    }
    fn mapping(&self) -> Mapping {
        self.backend().mapping()
    }
    fn segment(&self, offset_bytes: usize) -> Result<Segment, Error> {
        self.backend().segment(offset_bytes)
    }
    unsafe fn sync_for_device(&self, range: Range<usize>, direction: Direction) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.backend().sync_for_device(range, direction) }
    }
    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.backend().sync_for_cpu(range, direction) }
    }
    fn held_by(&self, range: Range<usize>, holder: contigo::sim::Holder<'_>) {
        self.backend().held_by(range, holder);
    }
}

// SAFETY: every method is one backend's own.
unsafe impl Export for Memory {
    unsafe fn export(&self) -> Result<ExportedFd, Error> {
        match self {
            // SAFETY: the caller's promise.
            Self::UDmaBuf(block) => unsafe { block.export() },
            // SAFETY: as above.
            Self::DmaHeap(block) => unsafe { block.export() },
            // SAFETY: as above.
            Self::DmaHeapFor(block) => unsafe { block.export() },
            _ => Err(NO_DMA_BUF),
        }
    }
}

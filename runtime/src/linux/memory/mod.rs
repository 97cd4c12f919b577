//! Memory that Linux gives, a file or a folder for each kind.

pub mod dma_heap;
mod exported;
mod hugetlb;
pub mod u_dma_buf;

pub use self::{dma_heap::DmaHeap, exported::ExportedFd, hugetlb::HugeTlb, u_dma_buf::UDmaBuf};

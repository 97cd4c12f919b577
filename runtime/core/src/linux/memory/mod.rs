//! Memory from Linux, a file or a folder for each kind.

pub mod dma_heap;
mod hugetlb;
pub mod u_dma_buf;

pub use self::dma_heap::DmaHeap;
pub use self::hugetlb::HugeTlb;
pub use self::u_dma_buf::UDmaBuf;

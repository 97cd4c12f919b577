//! Tensors in DMA memory: a framework (TVM, NumPy, PyTorch, ONNX Runtime) reads the same buffer as
//! the accelerator.
//!
//! ```text
//!   CpuBuf ──► TensorTable::lend ──► Lent ──tensor()──► the framework    the CPU's address: kDLCPU, kDLCUDAHost
//!   DevBuf ──►                        │ ▲                     │          the device's: kDLExtDev, kDLCUDA, kDLVulkan, kDLOpenCL
//!     ▲                               │ └───── the deleter ◄──┘
//!     └────────── take_back ◄─────────┘
//!
//!   the framework ──► Foreign ──► Imported   memory of a region: no copy, and a bus address
//!                        └──────► copy_to    elsewhere: one copy, counted, by a call that is named so
//! ```
//!
//! While a tensor is out, its buffer belongs to the consumer and can go to no device. It keeps its
//! region's memory, as any buffer does, even after its `Lent` was dropped. A buffer that a device
//! has can be lent only as an address. So a loop of frames lends each one anew, which costs two
//! atomic operations to lend and two to take back.
//!
//! The structures are those of `dlpack.h` 1.1, and of the form before 1.0. Reference:
//! <https://dmlc.github.io/dlpack/latest/>.

pub mod abi;
mod contract;
mod dtype;
mod entry;
mod foreign;
mod imported;
mod lendable;
mod lent;
mod place;
mod shape;
mod slot;
mod spec;
mod table;

pub use crate::types::TensorRule;
pub use abi::DataType;
pub use contract::Contract;
pub use foreign::{Description, Foreign};
pub use imported::Imported;
pub use lendable::Lendable;
pub use lent::Lent;
pub use place::{ByteOffset, Place};
pub use shape::{MAX_DIMS, Shape};
pub use spec::TensorSpec;
pub use table::TensorTable;

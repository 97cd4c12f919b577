//! The functions that C calls. They check what comes from C, and do nothing else.
#![allow(non_camel_case_types, reason = "the names in C")]

mod buf;
mod design;
mod device;
mod engine;
mod gpu;
mod job;
mod kernel;
mod library;
mod pool;
mod port;
mod raw;
mod region;
mod registers;
mod sim;
mod simulate;
mod tensor;

pub use buf::*;
pub use design::*;
pub use device::*;
pub use engine::*;
pub use gpu::*;
pub use job::*;
pub use kernel::*;
pub use library::*;
pub use pool::*;
pub use port::*;
pub use region::*;
pub use registers::*;
pub use sim::*;
pub use simulate::*;
pub use tensor::*;

pub use contigo_objects::driver::{
    CONTIGO_READS, CONTIGO_WRITES, contigo_completion, contigo_dev_slice, contigo_driver_device,
    contigo_driver_library, contigo_driver_ops, contigo_operand_spec, contigo_use,
};

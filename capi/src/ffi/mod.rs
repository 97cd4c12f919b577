//! The functions that C calls. They check what comes from C, and do nothing else.
#![allow(non_camel_case_types, reason = "the names in C")]

mod buf;
mod design;
mod device;
mod device_info;
mod driver_ops;
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
mod tensor;

pub use {
    buf::*, design::*, device::*, device_info::*, driver_ops::*, engine::*, gpu::*, job::*, kernel::*, library::*, pool::*, port::*,
    region::*, registers::*, sim::*, tensor::*,
};

//! The functions that C calls. They check what comes from C, and do nothing else.
#![allow(non_camel_case_types, reason = "the names in C")]

mod buf;
mod device;
mod engine;
mod heap;
mod job;
mod library;
mod pool;
mod port;
mod raw;
mod sim;
mod tensor;

pub use {buf::*, device::*, engine::*, heap::*, job::*, library::*, pool::*, port::*, sim::*, tensor::*};

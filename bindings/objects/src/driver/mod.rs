//! Drivers behind functions of C: of the program itself, or in a shared library.
//!
//! ```text
//!   abi.rs: contigo.h's structures ──► ops.rs: a driver of functions, a program's own
//!                                         ▲    or a library's
//!   library.rs: a library, and its row ───┘◄── device.rs: the device that the library uses
//!   export.rs: the other side: such a library, written in Rust
//! ```

mod abi;
mod device;
mod export;
mod library;
mod ops;

pub use abi::{
    CONTIGO_READS, CONTIGO_WRITES, contigo_completion, contigo_dev_slice, contigo_driver_device,
    contigo_driver_library, contigo_driver_ops, contigo_operand_spec, contigo_status, contigo_use,
    direction, use_of,
};
pub use export::{DriverDevice, DriverMemory, Export, library_of};
pub use library::{DRIVER_LIBRARIES, LoadError, load_driver};
pub use ops::DriverOps;

//! Memory and devices, opened by name. A name is the same text in the tool, in C, in Python and in
//! the board tests.
//!
//! ```text
//!   "contigo:f8003000" ─► MemoryName ─┬─ device() ─► DeviceName ─► OpenDevice ─┬─ memory(name, bytes) ─► AnyMemory
//!                                   └─ open(bytes) ─► AnyMemory              └─ attach(how) ─► AnyDevice
//!   Inventory: what this machine has, by the same names, and why it lacks the rest
//! ```
//!
//! Nothing here allocates. [`AnyMemory`] is a [`Backend`](crate::Backend) and [`AnyDevice`] a
//! [`Device`](crate::Device), so regions, drivers and engines take them as any other. Memory that
//! belongs to a device is opened from the device, and one opening serves its registers too.
//! [`OpenDevice::take`] takes a device for a driver by name, or a channel of it beside others.
//!
//! | files | what they do |
//! |---|---|
//! | `grammar`, by the rows in `kinds` | parse a name |
//! | `name`, `text`, `error`; `device_name`, `memory_name` | names as values; they open nothing |
//! | `files`, `found`, `called`; `inventory` | which memory and devices a machine has |
//! | `devices`, `memories`; `any_memory` | open one by its kind |
//! | `opened`, `contigo_device`, `kernel_registers`, `simulated`, `gpu`, `provided` | what an opened device is |
//! | `attachment`, `any_device`, `open_device` | what one driver gets of it |
//! | `shared_core`, `core_gate`, `take`; `registry` | drivers by their names, and how several share a device |
//! | `designed` | the cores of a block design by these names |
//!
//! A new kind of memory needs its backend, a row of `kinds.rs` with its arms in `memories.rs` and
//! `memory_name.rs`, a fake, and a line of the conformance suite. The tool, C and Python name no
//! kind except GPUs, whose code they load.
//!
//! Another crate, `contigo-gpu`, provides the GPUs of Vulkan and OpenCL, by [`provide`].
//!
//! [`row`] finds a driver by its name, and [`register`] adds one of the program's own.

mod any_device;
mod any_memory;
mod any_module;
mod attachment;
mod called;
mod contigo_device;
mod core_gate;
mod designed;
mod device_name;
mod devices;
mod error;
mod files;
mod found;
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
mod gpu;
mod grammar;
mod inventory;
mod kernel_registers;
mod kinds;
mod memories;
mod memory_name;
mod name;
mod open_device;
mod opened;
mod provided;
mod registry;
mod shared_core;
#[cfg(feature = "sim")]
mod simulated;
mod take;
mod text;

pub use self::any_device::AnyDevice;
pub use self::any_memory::AnyMemory;
pub use self::any_module::{AnyModule, GpuModule};
pub use self::attachment::{AnyIrq, Attach};
pub use self::core_gate::GateAt;
pub use self::designed::{Fabric, device_of, driver_of, node_of, settings_of};
pub use self::device_name::DeviceName;
pub use self::error::{NameError, NameRule};
pub use self::found::Facts;
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
pub use self::gpu::load_cuda;
pub use self::inventory::{Entry, Inventory};
pub use self::memory_name::MemoryName;
pub use self::name::Name;
pub use self::open_device::NO_PORT;
pub use self::opened::OpenDevice;
pub use self::provided::{GpuDevice, GpuKind, gpu_behind, provide};
pub use self::registry::{DriverRow, each_row, register, row};
pub use self::take::Taken;

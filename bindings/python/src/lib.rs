//! Contigo for Python: memory that NumPy, TVM and an accelerator share.
//!
//! ```text
//!   names.rs: names, and what this machine has
//!   device.rs: a device, its registers, its memory, its driver ──► opening.rs: one opening of it
//!        │                   │                 │
//!        ▼                   ▼                 ▼
//!   region.rs: memory   engine.rs: jobs   function.rs: a GPU's kernel
//!        │                   │ job.rs: one, as Python has it
//!        │                   ▼ jobs.rs: those in flight, record.rs: what became of one
//!   buffer.rs: an array, the CPU's or a device's
//!        │     handover.rs: a device's, by registers that the program writes
//!        │     tensor.rs: DLPack, both ways
//!        ▼
//!   inner.rs: who has its bytes ──► memory.rs: the region's part, and how a device reaches it
//!   simulation.rs: a simulated kernel that a function of Python's computes; computed.rs: its jobs
//!   lock.rs: every lock, and what may be done under one; shared.rs: how threads wait
//!   local.rs: what a child of fork does not get; error.rs: refusals, and their exceptions
//! ```
//! The package's Python has the rest: names of registers, loops over jobs and frames, the call of a
//! kernel, and the cores of a block design, which `design.rs` reads.
//!
//! Python has a heap and objects live as long as they are referred to. So the rules that Rust's
//! types keep at compile time are checked at each call, by `contigo-objects`: who has a buffer, and
//! which jobs are in flight. Memory and devices are closed with the last object that has a part of
//! them.

mod buffer;
mod computed;
mod design;
mod device;
mod engine;
mod error;
mod function;
mod handover;
mod inner;
mod job;
mod jobs;
mod layout;
mod local;
mod lock;
mod memory;
mod names;
mod opening;
mod record;
mod region;
mod shared;
mod simulation;
mod tensor;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use std::ffi::CString;

/// Adds everything to `module`, which is `contigo._contigo` of a build. The package's own is
/// `module/`. The tests' build registers drivers with models beside the runtime's first.
///
/// A tool for NVTX that waits for this interpreter gets the runtime's ranges from here on.
///
/// # Errors
/// Python's own.
pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    if let Err(error) = contigo_nvtx::listen() {
        let said = CString::new(error.to_string()).unwrap_or_default();
        PyErr::warn(module.py(), &module.py().get_type::<PyRuntimeWarning>(), &said, 1)?;
    }
    #[cfg(feature = "gpu")]
    contigo_gpu::register().map_err(error::raised)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<region::Region>()?;
    module.add_class::<device::Device>()?;
    module.add_class::<region::Pool>()?;
    module.add_class::<buffer::Buffer>()?;
    module.add_class::<buffer::View>()?;
    module.add_class::<handover::Handover>()?;
    module.add_class::<tensor::Imported>()?;
    module.add_class::<buffer::Operand>()?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<engine::Ends>()?;
    module.add_class::<job::Job>()?;
    module.add_class::<job::Done>()?;
    module.add_class::<simulation::Simulation>()?;
    module.add_function(wrap_pyfunction!(design::_design, module)?)?;
    module.add_function(wrap_pyfunction!(design::_fabric, module)?)?;
    module.add_function(wrap_pyfunction!(design::_kernel_map, module)?)?;
    module.add_function(wrap_pyfunction!(region::open_memory, module)?)?;
    module.add_function(wrap_pyfunction!(names::doctor, module)?)?;
    module.add_function(wrap_pyfunction!(shared::_seconds, module)?)?;
    module.add_function(wrap_pyfunction!(names::load_driver, module)?)?;
    module.add_function(wrap_pyfunction!(names::inventory, module)?)
}

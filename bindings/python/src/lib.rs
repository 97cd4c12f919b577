//! Contigo for Python: memory that NumPy, TVM and an accelerator share.
//!
//! ```text
//!   names.rs: names, and what this machine has ──► device.rs: one opening of a device, its registers
//!        ▼                                             ▼ its memory          ▼ its driver, by a name
//!   region.rs: memory, from a name ──► pool.rs: equal arrays of it      engine.rs: jobs, for Python
//!        │                               ▼                                   ▼
//!        ├─────────────────────────► buffer.rs: an array, the CPU's     jobs.rs: those in flight
//!        ▲                            │  or a device's ──► export.rs    shared.rs: how threads wait
//!        │                            ├── handover.rs: a device's for a while, by the program's word
//!        │                            └── operand.rs: a part of it, for a job
//!        └── imported.rs: a framework's array that lies there
//!   port.rs: how an accelerator reaches memory
//!   lock.rs: every lock, and what may be done under one; error.rs: refusals, and their exceptions
//! ```
//! `contigo/device.py` has names for registers, `contigo/queues.py` the loops over jobs,
//! `contigo/streams.py` those over frames. `contigo/kernel.py` has the call of a kernel: one of
//! HLS, whose map `kernel.rs` reads, or a GPU's (`function.rs`). `contigo/overlay.py` has a block
//! design, which `design.rs` reads, `contigo/cores.py` its cores, and `contigo/channels.py` those
//! with streams. `opening.rs` is what a device and its memory count on.
//!
//! Python has a heap and objects live as long as they are referred to. So the rules that Rust's
//! types keep at compile time are checked at each call, by `contigo-objects`: who has a buffer
//! (`inner.rs` locks it), and which jobs are in flight. Memory and devices are closed with the
//! last object that has a part of them. A child of fork has no part in it: mine.rs.

mod buffer;
mod design;
mod device;
mod doctor;
mod dtype;
mod ends;
mod engine;
mod error;
mod export;
mod function;
mod gate;
mod handover;
mod imported;
mod inner;
mod jobs;
mod kernel;
mod lock;
mod mine;
mod names;
mod open;
mod opening;
mod operand;
mod pool;
mod port;
mod region;
mod register;
mod shared;

use pyo3::{exceptions::PyRuntimeWarning, prelude::*};
use std::ffi::CString;

/// Adds everything to `module`, which is `contigo._contigo` of a build. The package's own is
/// `module/`. The tests' build registers drivers with models beside the runtime's first.
///
/// A tool for NVTX that waits for this interpreter hears the runtime from here on.
///
/// # Errors
/// What Python says.
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
    module.add_class::<pool::Pool>()?;
    module.add_class::<buffer::Buffer>()?;
    module.add_class::<buffer::View>()?;
    module.add_class::<handover::Handover>()?;
    module.add_class::<imported::Imported>()?;
    module.add_class::<operand::Operand>()?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<ends::Ends>()?;
    module.add_class::<engine::Job>()?;
    module.add_class::<engine::Done>()?;
    module.add_function(wrap_pyfunction!(design::_design, module)?)?;
    module.add_function(wrap_pyfunction!(design::_fabric, module)?)?;
    module.add_function(wrap_pyfunction!(kernel::_kernel_map, module)?)?;
    module.add_function(wrap_pyfunction!(region::open_memory, module)?)?;
    module.add_function(wrap_pyfunction!(doctor::doctor, module)?)?;
    module.add_function(wrap_pyfunction!(shared::_seconds, module)?)?;
    module.add_function(wrap_pyfunction!(names::load_driver, module)?)?;
    module.add_function(wrap_pyfunction!(names::inventory, module)?)
}

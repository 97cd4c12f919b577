//! Contigo for Python: memory that NumPy, TVM and an accelerator share.
//!
//! ```text
//!   names.rs: names, and what this machine has ──► device.rs: one opening of a device
//!        ▼                                             ▼ its memory
//!   region.rs: memory, from a name ──► pool.rs: equal arrays of it
//!        │                               ▼
//!        ├─────────────────────────► buffer.rs: an array, the CPU's or a device's ──► export.rs: DLPack's capsules
//!        ▲                                   └── handover.rs, gemm8.rs: a device's for a while
//!        └── imported.rs: a framework's array that lies there
//! ```
//! Python has a heap and objects live as long as somebody looks at them; so what Rust's types say at compile time is checked here when it
//! is called, and memory that was once opened stays open until the process ends. A child of fork
//! has no part in it: mine.rs.

mod buffer;
mod device;
mod dtype;
mod error;
mod export;
mod gemm8;
mod handover;
mod imported;
mod mine;
mod names;
mod pool;
mod region;

use pyo3::prelude::*;

#[pymodule]
fn _contigo(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ContigoError", module.py().get_type::<error::ContigoError>())?;
    module.add("ForkedError", module.py().get_type::<error::ForkedError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<region::Region>()?;
    module.add_class::<device::Device>()?;
    module.add_class::<pool::Pool>()?;
    module.add_class::<buffer::Buffer>()?;
    module.add_class::<buffer::View>()?;
    module.add_class::<handover::Handover>()?;
    module.add_class::<imported::Imported>()?;
    module.add_class::<gemm8::Gemm8>()?;
    module.add_function(wrap_pyfunction!(region::open_memory, module)?)?;
    module.add_function(wrap_pyfunction!(names::inventory, module)?)
}

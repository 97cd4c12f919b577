//! Real handwritten digits through the engine: two jobs for each image, chained on the device, and
//! every score compared with a reference that shares no code with it.

mod digits;
mod error;
mod network;
mod reference;
mod run;

pub use digits::{Digit, HELD_OUT, INK, PIXELS, SIDE, held_out};
pub use error::DemoError;
pub use network::{SCORES, answer};
pub use reference::Reference;
#[cfg(any(feature = "cuda", feature = "opencl", feature = "vulkan"))]
pub use run::stream_on_gpu;
pub use run::{Measured, Outcome, REGION_BYTES, Task, stream, stream_through};

//! In the place of `gpu.rs` where there is no CUDA: each call is refused with the reason.

use crate::fault::Fault;
use contigo::{Align, Error, Port, names::AnyMemory};

/// Why there is none.
const WHY: &str = if cfg!(target_pointer_width = "64") {
    "this libcontigo was built without its feature cuda"
} else {
    "this libcontigo is for a 32-bit processor, for which NVIDIA has no driver"
};

const NONE: Fault = Fault::Runtime(Error::NoLibrary { name: "libcuda.so.1", fix: WHY });

/// Can this library load a driver at all?
pub(crate) const fn here() -> Result<(), Fault> {
    Err(NONE)
}

pub(crate) fn port(_ordinal: u32) -> Result<Port, Fault> {
    Err(NONE)
}

pub(crate) fn pinned(_ordinal: u32, _len_bytes: usize, _align: Align, _write_combined: bool) -> Result<AnyMemory<'static>, Fault> {
    Err(NONE)
}

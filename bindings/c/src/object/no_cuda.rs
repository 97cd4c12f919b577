#![allow(unsafe_code, reason = "as `cuda.rs`, whose functions ask for promises")]
//! In the place of `cuda.rs` where there is no CUDA: each call is refused with the reason.

use crate::fault::Fault;
use contigo::names::{AnyMemory, AnyModule};
use contigo::{Align, Error, Port};
use core::fmt;

/// Why there is none.
const WHY: &str = if cfg!(target_pointer_width = "64") {
    "this libcontigo was built without its feature cuda"
} else {
    "this libcontigo is for a 32-bit processor, for which NVIDIA has no driver"
};

const NONE: Error = Error::NoLibrary { name: "libcuda.so.1", fix: WHY };

pub(crate) fn port(_ordinal: u32) -> Result<Port, Fault> {
    Err(NONE.into())
}

pub(crate) fn pinned(
    _ordinal: u32,
    _len_bytes: usize,
    _align: Align,
    _write_combined: bool,
) -> Result<AnyMemory, Fault> {
    Err(NONE.into())
}

/// # Safety
/// None: there is none.
pub(crate) unsafe fn load(
    _ordinal: u32,
    _image: &[u8],
    _log: &mut dyn fmt::Write,
) -> Result<AnyModule, Error> {
    Err(NONE)
}

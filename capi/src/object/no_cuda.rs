#![allow(unsafe_code, reason = "as `gpu.rs`, whose functions ask for promises")]
//! In the place of `gpu.rs` where there is no CUDA: each call is refused with the reason.

use crate::fault::Fault;
use contigo::{Align, Error, Port, names::AnyMemory};
use contigo::{AnyDriver, OperandSpec};
use core::ffi::CStr;

/// Why there is none.
const WHY: &str = if cfg!(target_pointer_width = "64") {
    "this libcontigo was built without its feature cuda"
} else {
    "this libcontigo is for a 32-bit processor, for which NVIDIA has no driver"
};

const NONE: Fault = Fault::Runtime(Error::NoLibrary { name: "libcuda.so.1", fix: WHY });

pub(crate) fn port(_ordinal: u32) -> Result<Port, Fault> {
    Err(NONE)
}

pub(crate) fn pinned(_ordinal: u32, _len_bytes: usize, _align: Align, _write_combined: bool) -> Result<AnyMemory<'static>, Fault> {
    Err(NONE)
}

/// Parameters of one kernel at most.
pub(crate) const MAX_PARAMETERS: usize = 32;

/// As `contigo::cuda::Parameter`.
#[derive(Clone, Copy)]
pub(crate) enum Parameter {
    Operand(#[allow(dead_code, reason = "no kernel takes it")] OperandSpec),
    Words(#[allow(dead_code, reason = "the same")] usize),
}

/// There is none.
pub(crate) enum ModuleLease {}

/// # Safety
/// None: there is none.
pub(crate) unsafe fn load(_port: &Port, _image: &[u8]) -> Result<u64, Fault> {
    Err(NONE)
}

/// # Safety
/// None: there is none.
pub(crate) unsafe fn kernel(_module: u64, _entry: &CStr, _parameters: &[Parameter]) -> Result<(AnyDriver<'static>, ModuleLease), Fault> {
    Err(NONE)
}

pub(crate) fn close(_module: u64) -> Result<(), Fault> {
    Err(NONE)
}

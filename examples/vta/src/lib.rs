//! A model of TVM's accelerator VTA on the simulated board, for the driver in `driver/`, which is
//! in C: `README.md` beside this crate says what that does.
//!
//! A program in C calls [`contigo_vta_model`], and `sim:vta` is there.
#![allow(unsafe_code, reason = "a model promises to touch only what it was told of; C calls by a name")]

mod model;

// The functions of contigo.h, for the static library.
use contigo_c as _;

use contigo::{
    Error, Result,
    job::{AnyDriver, Parts},
    names::{AnyDevice, DriverRow, register},
    sim::AnyModel,
};
pub use model::{VtaDe10Nano, VtaModel};

/// **The model, by the name `vta`**, for [`register`]. It has no driver in Rust.
pub static ROW: DriverRow = DriverRow::new("vta", "TVM's accelerator VTA, as pynq_sample.json has it; its driver is examples/vta", open)
    .model(|| AnyModel::new(VtaModel::new()));

/// The same as the DE10-Nano has it, by the name `vta_de10nano`.
pub static DE10_NANO: DriverRow =
    DriverRow::new("vta_de10nano", "TVM's accelerator VTA on a DE10-Nano", open).model(|| AnyModel::new(VtaDe10Nano::new()));

/// # Safety
/// None is asked for: it opens nothing.
unsafe fn open(_: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
    Err(Error::Unsupported { what: "VTA is driven by TVM's runtime", fix: "link TVM with examples/vta/driver" })
}

/// Puts the models behind `sim:vta` and `sim:vta_de10nano`, for a program in C. 0: it is there.
// SAFETY: the name is this crate's own.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_vta_model() -> i32 {
    if [&ROW, &DE10_NANO].into_iter().all(|row| register(row).is_ok()) { 0 } else { -1 }
}

//! A model of TVM's accelerator VTA on the simulated board, for the driver in `driver/`, which is
//! in C: `README.md` beside this crate says what that does.
//!
//! A program in C calls [`contigo_vta_model`], and `sim:vta` is there.
#![allow(
    unsafe_code,
    reason = "a model promises to touch only what it was told of; C calls by a name"
)]

mod model;

// The functions of contigo.h, for the static library.
use contigo_c as _;

use contigo::sim::{AnyModel, register};
pub use model::{VtaDe10Nano, VtaModel};

/// Puts the models behind `sim:vta` and `sim:vta_de10nano`, as TVM's `pynq_sample.json` and its
/// DE10-Nano have them, for a program in C. 0: they are there. Its driver is C's, in `driver/`.
// SAFETY: the name is this crate's own.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_vta_model() -> i32 {
    let vta = register("vta", || AnyModel::new(VtaModel::new()));
    let de10_nano = register("vta_de10nano", || AnyModel::new(VtaDe10Nano::new()));
    if vta.is_ok() && de10_nano.is_ok() { 0 } else { -1 }
}

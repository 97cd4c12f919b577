#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name, in a build that registers the row.

use crate::Gemm8;
#[cfg(feature = "sim")]
use crate::Gemm8Model;
#[cfg(feature = "sim")]
use contigo::sim::AnyModel;
use contigo::{
    Result,
    job::{AnyDriver, Parts},
    names::{AnyDevice, DriverRow},
};

/// **The engine, by the name `gemm8`**, for [`register`](contigo::names::register). Its jobs have
/// the operands A, B, bias and C, and the four words of [`Gemm::words`](crate::Gemm::words): m, n,
/// k and `MODE`. With the feature `sim`, `sim:gemm8` is its model.
///
/// ```
/// use contigo::names::{register, row};
/// register(&contigo_gemm8::ROW)?;
/// assert_eq!(row("gemm8")?.name, "gemm8");
/// # Ok::<(), contigo::Error>(())
/// ```
pub static ROW: DriverRow = {
    const HELP: &str = "an int8 matrix engine: C = A·B + bias; its jobs have the operands A, B, bias, C and the words m, n, k, MODE";
    let row = DriverRow::new("gemm8", HELP, open);
    #[cfg(feature = "sim")]
    let row = row.model(|| AnyModel::new(Gemm8Model::default()));
    row
};

/// # Safety
/// As [`Gemm8::open`].
unsafe fn open(parts: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { Gemm8::open(parts.device)? })
}

#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens the engine by name, in a build that registers it.

use crate::Gemm8;
use contigo::{
    Result,
    job::{AnyDriver, Parts},
    names::{self, AnyDevice, DriverRow},
};

/// **Registers the engine under the name `gemm8`.** Its jobs have the operands A, B, bias and C,
/// and the four words of [`Gemm::words`](crate::Gemm::words): m, n, k and `MODE`. With the feature
/// `sim`, `sim:gemm8` is its model.
///
/// # Errors
/// Those of [`names::register`], and with `sim` of `contigo::sim::register`.
///
/// ```
/// contigo_gemm8::register()?;
/// assert_eq!(contigo::names::row("gemm8")?.name, "gemm8");
/// # Ok::<(), contigo::Error>(())
/// ```
pub fn register() -> Result<()> {
    const HELP: &str = "an int8 matrix engine: C = A·B + bias; its jobs have the operands A, B, \
                        bias, C and the words m, n, k, MODE";
    static ROW: DriverRow = DriverRow::new("gemm8", HELP, open);
    names::register(&ROW)?;
    #[cfg(feature = "sim")]
    contigo::sim::register("gemm8", || contigo::sim::AnyModel::new(crate::Gemm8Model::default()))?;
    Ok(())
}

/// # Safety
/// As [`Gemm8::open`].
unsafe fn open(parts: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { Gemm8::open(parts.device)? })
}

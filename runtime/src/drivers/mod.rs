//! Drivers, a folder a core: its registers, its driver, and with the feature `sim` its model.
//!
//! Each is a [`Driver`](crate::Driver) over a [`Device`](crate::Device). To open one
//! over registers is unsafe, because only the program knows which core is there. To open one over
//! its own model (`open_simulated`) is safe: the type of the window names the model.
//!
//! **A new driver is a folder, and its name in the two lists here.** `row.rs` in the folder says
//! how C, Python and the tool open it by its name (`names::DriverRow`).
//!
//! Imports: `types`, `mem`, `hw`, `job`, `sim`.

pub mod ap_ctrl;
pub mod pl330;
pub mod zdma;

/// Hands the folder of each driver to the macro `$table`; `[shared]` of those whose channels can
/// have a driver each.
#[cfg(all(feature = "linux", target_os = "linux"))]
macro_rules! each_driver {
    ($table:ident) => {
        $table! { #[cfg(feature = "describe")] ap_ctrl pl330[shared] zdma }
    };
}
#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) use each_driver;

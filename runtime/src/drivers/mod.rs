//! Drivers, a folder a core: its registers, its driver, and with the feature `sim` its model.
//!
//! Each is a [`Driver`](crate::Driver) over a [`Device`](crate::Device). To open one
//! over registers is unsafe, because only the program knows which core is there. To open one over
//! its own model (`open_simulated`) is safe: the type of the window names the model.
//!
//! **A new driver is a folder, and its name in the two lists here.** `registry.rs` in the folder
//! says how C, Python and the tool open it by its name (`names::DriverRow`).
//!
//! Imports: `types`, `mem`, `hw`, `job`, `sim`, `design`.

pub mod ap_ctrl;
pub mod axi_cdma;
pub mod axi_dma;
pub mod axi_dmac;
pub mod axi_gate;
pub mod axi_mcdma;
pub mod axi_vdma;
pub mod litepcie;
pub mod msgdma;
pub mod pl330;
mod ring;
mod tail;
pub mod zdma;

/// Hands the folder of each driver to the macro `$table`; `[shared]` of those whose channels can
/// have a driver each.
#[cfg(all(feature = "linux", target_os = "linux"))]
macro_rules! each_driver {
    ($table:ident) => {
        $table! { #[cfg(feature = "describe")] ap_ctrl axi_dma[shared] axi_dmac axi_mcdma[shared] litepcie[shared] msgdma axi_cdma axi_vdma[shared] pl330[shared] zdma }
    };
}
#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) use each_driver;

/// A simulated device of another name than its driver's.
#[cfg(all(feature = "linux", target_os = "linux", feature = "sim"))]
pub(crate) type Scene = (&'static str, fn() -> crate::sim::AnyModel);

/// All of them: `sim:NAME`, for the driver that the name begins with. `registers` is for none.
#[cfg(all(feature = "linux", target_os = "linux", feature = "sim"))]
pub(crate) static SCENES: &[Scene] = &[
    #[cfg(feature = "describe")]
    ("ap_ctrl_gated", ap_ctrl::registry::gated),
    #[cfg(feature = "describe")]
    ("ap_ctrl_hs", ap_ctrl::registry::hs),
    ("axi_dma_camera", axi_dma::registry::camera),
    ("axi_dma_sink", axi_dma::registry::sink),
    ("axi_dmac_camera", axi_dmac::registry::camera),
    ("axi_dmac_sink", axi_dmac::registry::sink),
    ("axi_mcdma_camera", axi_mcdma::registry::camera),
    ("axi_mcdma_sink", axi_mcdma::registry::sink),
    ("axi_vdma_camera", axi_vdma::registry::camera),
    ("axi_vdma_sink", axi_vdma::registry::sink),
    ("msgdma_camera", msgdma::registry::camera),
    ("msgdma_prefetcher", msgdma::registry::prefetcher),
    ("msgdma_sink", msgdma::registry::sink),
    ("registers", crate::sim::registers),
];

//! Drivers, one folder for each core: its registers, its driver, and in `mod.rs` its row in the
//! table of drivers. A program sees them as `contigo::drivers`.
//!
//! Each is a [`Driver`](contigo_core::Driver) over a [`Device`]. Opening one over registers is
//! unsafe, because only the program knows which core is there. Over a core's model, `contigo::sim`
//! has a safe function.
//!
//! **A new driver is a folder, its module here, and its row in [`rows`].**
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

pub mod ap_ctrl;
pub mod axi_cdma;
pub mod axi_dma;
pub mod axi_dmac;
pub mod axi_gate;
pub mod axi_mcdma;
pub mod axi_vdma;
mod checks;
pub mod litepcie;
pub mod msgdma;
pub mod pl330;
mod ring;
mod settle;
mod tail;
pub mod zdma;

use contigo_core::Device;
use contigo_core::job::DriverRow;

/// The rows of all drivers, for a table of drivers by name.
#[must_use]
pub const fn rows<D: Device + Send + Sync + 'static>() -> &'static [DriverRow<D>] {
    const {
        &[
            ap_ctrl::row(),
            axi_dma::row(),
            axi_dmac::row(),
            axi_mcdma::row(),
            litepcie::row(),
            msgdma::row(),
            axi_cdma::row(),
            axi_vdma::row(),
            pl330::row(),
            zdma::row(),
        ]
    }
}

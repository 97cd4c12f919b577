//! The drivers of cores that block designs are made of, each on its own model: registers compared
//! with the model's table, modes, edges, errors, and how they end.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

#[path = "cores/after_a_stop.rs"]
mod after_a_stop;
#[path = "cores/axi_cdma.rs"]
mod axi_cdma;
#[path = "cores/axi_dma.rs"]
mod axi_dma;
#[path = "cores/axi_dmac.rs"]
mod axi_dmac;
#[path = "cores/axi_mcdma.rs"]
mod axi_mcdma;
#[path = "cores/axi_vdma.rs"]
mod axi_vdma;
#[path = "cores/camera.rs"]
mod camera;
#[path = "cores/litepcie.rs"]
mod litepcie;
#[path = "cores/msgdma.rs"]
mod msgdma;
#[path = "cores/refusing.rs"]
mod refusing;
#[path = "cores/whole_words.rs"]
mod whole_words;

//! The drivers of cores that block designs are made of, each on its own model: registers compared
//! with the model's table, modes, edges, errors, and how they end.

mod after_a_stop;
mod axi_cdma;
mod axi_dma;
mod axi_dmac;
mod axi_mcdma;
mod axi_vdma;
mod litepcie;
mod msgdma;
mod whole_words;

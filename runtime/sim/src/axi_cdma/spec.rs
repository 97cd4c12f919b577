//! A core as a block design builds it, for the model.

use crate::stream::StreamConfig;

/// The parameters of the simulated core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxiCdmaSpec {
    /// `C_INCLUDE_SG`.
    pub sg: bool,
    /// How many bits BTT has: 26 in version 4.1.
    pub length_bits: u32,
    /// `C_ADDR_WIDTH`.
    pub address_bits: u32,
    /// `C_M_AXI_DATA_WIDTH`.
    pub data_bits: u32,
    /// `C_INCLUDE_DRE`.
    pub dre: bool,
    /// `C_USE_DATAMOVER_LITE`, and the longest burst in beats.
    pub lite_beats: Option<u32>,
    /// The FIFO at [`FIFO_ADDR`](super::FIFO_ADDR), for fixed bursts.
    pub fifo: StreamConfig,
}

impl Default for AxiCdmaSpec {
    /// Everything that there is, so that a driver of any configuration works. It has
    /// scatter-gather, realignment, 26 bits of length, 64 of addresses, and a FIFO that gives back
    /// what it gets.
    fn default() -> Self {
        Self {
            sg: true,
            length_bits: 26,
            address_bits: 64,
            data_bits: 32,
            dre: true,
            lite_beats: None,
            fifo: StreamConfig::default(),
        }
    }
}

impl AxiCdmaSpec {
    pub(super) const fn word_bytes(&self) -> u64 {
        self.data_bits as u64 / 8
    }

    pub(super) const fn length_mask(&self) -> u32 {
        (1 << self.length_bits) - 1
    }

    /// `addr` as its registers hold it.
    pub(super) const fn held(&self, addr: u64) -> u64 {
        if self.address_bits >= 64 { addr } else { addr & ((1 << self.address_bits) - 1) }
    }
}

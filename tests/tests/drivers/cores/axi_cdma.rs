//! AXI CDMA: what it refuses, how it fails, what its registers do, and its keyhole.

mod keyhole;
mod refused;
mod registers;
mod tail;

use contigo::drivers::axi_cdma::AxiCdmaConfig;
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(20);

/// Any byte.
const DRE: AxiCdmaConfig = AxiCdmaConfig { dre: true, ..DEFAULT };
const DEFAULT: AxiCdmaConfig = AxiCdmaConfig {
    length_bits: 23,
    address_bits: 32,
    data_bits: 32,
    dre: false,
    lite: false,
    burst_beats: 16,
    depth: None,
    irq_threshold: 1,
    irq_delay: 0,
    stop_us: 10_000,
};

#[test]
fn the_default_is_the_core_of_any_version() {
    assert_eq!(AxiCdmaConfig::default(), DEFAULT);
}

/// Buffers of a region, by their size.
macro_rules! carve {
    ($region:expr) => {
        |len_bytes| $region.alloc(len_bytes, contigo::Align::PAGE).unwrap()
    };
}
use carve;

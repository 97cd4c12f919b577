#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{AxiCdma, AxiCdmaConfig, AxiCdmaKeyhole, Keyhole};
use contigo_core::{
    hw::Device,
    job::{AnyDriver, DriverRow, Parts},
    types::{Error, Result},
};

const SETTINGS: &[&str] = &[
    "length_bits",
    "address_bits",
    "data_bits",
    "dre",
    "lite",
    "burst_beats",
    "depth",
    "irq_threshold",
    "irq_delay",
    "stop_us",
    "keyhole_read",
    "keyhole_write",
];

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new(
        "axi_cdma",
        "AMD's AXI CDMA: copies operand 0 to operand 1; with memory of its own by descriptors, several at once; with \
                               keyhole_read or keyhole_write, an address, one operand",
        open::<D>,
    )
    .settings(SETTINGS)
    // Linux `Documentation/devicetree/bindings/dma/xilinx/xilinx_dma.txt`.
    .compatible(&["xlnx,axi-cdma-1.00.a"])
    // PG034, "User Parameters".
    .ip(
        &["axi_cdma"],
        &[
            ("C_ADDR_WIDTH", "address_bits"),
            ("C_M_AXI_DATA_WIDTH", "data_bits"),
            ("C_INCLUDE_DRE", "dre"),
            ("C_USE_DATAMOVER_LITE", "lite"),
            ("C_M_AXI_MAX_BURST_LEN", "burst_beats"),
        ],
    )
    .copies()
}

/// # Safety
/// As [`AxiCdma::simple`], and with a keyhole as [`AxiCdmaKeyhole::open`].
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let Parts { device, memory, settings, .. } = parts;
    settings.only(SETTINGS)?;
    let config = AxiCdmaConfig::of(settings)?;
    let (reads, writes) = (
        settings.number("keyhole_read", 0, u64::MAX)?,
        settings.number("keyhole_write", 0, u64::MAX)?,
    );
    let keyhole = match (reads, writes) {
        (None, None) => None,
        (Some(addr), None) => Some(Keyhole::Reads(addr)),
        (None, Some(addr)) => Some(Keyhole::Writes(addr)),
        (Some(_), Some(_)) => {
            return Err(Error::Unsupported {
                what: "an AXI CDMA with a keyhole on both sides would move no memory",
                fix: "give keyhole_read or keyhole_write",
            });
        }
    };
    match (keyhole, memory) {
        (Some(keyhole), memory) => {
            // SAFETY: the caller's promise.
            let opened = unsafe { AxiCdmaKeyhole::open(device, config, keyhole, memory) };
            AnyDriver::new(opened.map_err(|refused| refused.error)?)
        }
        // SAFETY: the caller's promise.
        (None, Some(memory)) => AnyDriver::new(unsafe { AxiCdma::sg(device, config, memory)? }),
        // SAFETY: the caller's promise.
        (None, None) => AnyDriver::new(unsafe { AxiCdma::simple(device, config)? }),
    }
}

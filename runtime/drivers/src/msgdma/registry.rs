#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{Msgdma, MsgdmaConfig};
use contigo_core::{
    hw::Device,
    job::{AnyDriver, DriverRow, Parts},
    types::{Error, Result},
};

const SETTINGS: &[&str] = MsgdmaConfig::SETTINGS;

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new("msgdma", "Altera's mSGDMA: copies operand 0 to operand 1, or with mode=1 sends a packet, with mode=2 receives one; prefetcher_at needs memory", open::<D>)
        .settings(SETTINGS)
        // Linux `Documentation/devicetree/bindings/dma/altr,msgdma.yaml`.
        .compatible(&["altr,socfpga-msgdma"])
        .copies()
}

/// # Safety
/// As [`Msgdma::open`].
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    let config = MsgdmaConfig::from_settings(&parts.settings)?;
    AnyDriver::new(match (config.prefetcher_at, parts.memory) {
        // SAFETY: the caller's promise.
        (Some(_), Some(memory)) => unsafe { Msgdma::prefetched(parts.device, config, memory)? },
        (Some(_), None) => {
            return Err(Error::Unsupported {
                what: "a prefetcher needs memory for its descriptors",
                fix: "give the driver memory of its own",
            });
        }
        // SAFETY: the caller's promise.
        (None, _) => unsafe { Msgdma::open(parts.device, config)? },
    })
}

#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{Msgdma, MsgdmaConfig};
#[cfg(feature = "sim")]
use super::{MsgdmaBuild, MsgdmaMode, MsgdmaModel};
#[cfg(feature = "sim")]
use crate::sim::{
    AnyModel,
    stream::{SourceConfig, StreamConfig},
};
use crate::{
    hw::Device,
    job::{AnyDriver, Parts},
    types::{Error, Result},
};

pub(crate) const NAME: &str = "msgdma";
pub(crate) const HELP: &str =
    "Altera's mSGDMA: copies operand 0 to operand 1, or with mode=1 sends a packet, with mode=2 receives one; prefetcher_at needs memory";
/// Linux `Documentation/devicetree/bindings/dma/altr,msgdma.yaml`.
pub(crate) const COMPATIBLE: &[&str] = &["altr,socfpga-msgdma"];
pub(crate) const SETTINGS: &[&str] = MsgdmaConfig::SETTINGS;
pub(crate) const IP: &[&str] = &[];
pub(crate) const PARAMETERS: &[(&str, &str)] = &[];
pub(crate) const MEMORY_BYTES: usize = 0;
pub(crate) const COPIES: bool = true;
#[cfg(feature = "sim")]
pub(crate) const MODEL: Option<fn() -> AnyModel> = Some(|| built(MsgdmaConfig::default(), StreamConfig::default()));

/// `sim:msgdma_prefetcher`, for `prefetcher_at=0x60`.
#[cfg(feature = "sim")]
pub(crate) fn prefetcher() -> AnyModel {
    built(MsgdmaConfig { prefetcher_at: Some(0x60), ..MsgdmaConfig::default() }, StreamConfig::sink())
}

/// `sim:msgdma_sink`, for `mode=1`: it takes whatever comes.
#[cfg(feature = "sim")]
pub(crate) fn sink() -> AnyModel {
    built(MsgdmaConfig { mode: MsgdmaMode::Send, ..MsgdmaConfig::default() }, StreamConfig::sink())
}

/// `sim:msgdma_camera`, for `mode=2,resp_at=0x40`: packets of 4 KiB back to back at 400 MB/s,
/// without end.
#[cfg(feature = "sim")]
pub(crate) fn camera() -> AnyModel {
    let config = MsgdmaConfig { mode: MsgdmaMode::Receive, resp_at: Some(0x40), ..MsgdmaConfig::default() };
    built(config, StreamConfig::source(SourceConfig::default(), 512))
}

#[cfg(feature = "sim")]
fn built(config: MsgdmaConfig, stream: StreamConfig) -> AnyModel {
    // It answers writes, whatever the setting says.
    let config = MsgdmaConfig { write_responses: true, ..config };
    AnyModel::new(MsgdmaModel::new(MsgdmaBuild { config, stream, ..MsgdmaBuild::default() }))
}

/// # Safety
/// As [`Msgdma::open`].
pub(crate) unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
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

#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{Pl330, Pl330Config, regs};
#[cfg(feature = "sim")]
use crate::sim::AnyModel;
use crate::{
    hw::Device,
    job::{AnyDriver, Parts},
    types::{Error, Result},
};

pub(crate) const NAME: &str = "pl330";
pub(crate) const HELP: &str = "Arm's DMA-330, one channel of it: copies operand 0 to operand 1; settings channel, event";
/// Linux `Documentation/devicetree/bindings/dma/arm,pl330.yaml`.
pub(crate) const COMPATIBLE: &[&str] = &["arm,pl330"];
pub(crate) const MEMORY_BYTES: usize = super::PROGRAM_BYTES;
pub(crate) const COPIES: bool = true;
#[cfg(feature = "sim")]
pub(crate) const MODEL: Option<fn() -> AnyModel> = Some(|| AnyModel::new(super::Pl330Model::new(super::Pl330Spec::default())));

/// Arm DDI 0424C, CR0.num_events: 32 at most.
const EVENTS_MAX: u64 = 32;

/// # Safety
/// As [`Pl330::open`].
pub(crate) unsafe fn open<'a, D: Device + Send + 'a>(parts: Parts<'a, '_, D>) -> Result<AnyDriver<'a>> {
    parts.settings.only(&["channel", "event"])?;
    let number = |name, most| -> Result<u8> {
        let value = parts.settings.number(name, 0, most)?;
        // At most 31, so that it fits.
        Ok(value.and_then(|value| u8::try_from(value).ok()).unwrap_or(0))
    };
    let config = Pl330Config { channel: number("channel", regs::CHANNELS_MAX as u64 - 1)?, event: number("event", EVENTS_MAX - 1)? };
    let memory = parts.memory.ok_or(Error::BlockSize { len_bytes: 0, need_bytes: MEMORY_BYTES, line_bytes: 1 })?;
    // SAFETY: the caller's promise.
    Ok(AnyDriver::new(unsafe { Pl330::open_with(parts.device, memory, config)? }))
}

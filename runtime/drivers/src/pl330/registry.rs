#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{Controller, Pl330, Pl330Config, regs};
use contigo_core::{
    hw::Device,
    job::{AnyCore, AnyDriver, Channels, DriverRow, Parts},
    mem::CpuBuf,
    types::{Error, Result},
};

const SETTINGS: &[&str] = &["channel", "event"];

const MEMORY_BYTES: usize = super::PROGRAM_BYTES;

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new(
        "pl330",
        "Arm's DMA-330: copies operand 0 to operand 1; with settings channel, event one channel of it, beside others",
        open::<D>,
    )
    .settings(SETTINGS)
    // Linux `Documentation/devicetree/bindings/dma/arm,pl330.yaml`.
    .compatible(&["arm,pl330"])
    .memory(MEMORY_BYTES)
    .copies()
    .shared(open_core::<D>)
}

/// Arm DDI 0424C, CR0.num_events: 32 at most.
const EVENTS_MAX: u64 = 32;

/// The whole controller, by one channel.
///
/// # Safety
/// As [`Pl330::open`].
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let Parts { device, memory, settings, map } = parts;
    let (config, memory) = said(Parts { device: (), memory, settings, map })?;
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { Pl330::open_with(device, memory, config)? })
}

/// The core that its channels share.
///
/// # Safety
/// As [`Controller::open`].
unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
    // SAFETY: the caller's promise.
    AnyCore::new(unsafe { Controller::open(device)? })
}

impl<D: Device + Send + Sync + 'static> Channels for Controller<D> {
    /// A channel. No setting can be untrue: it has the channel and the event, or refuses them.
    unsafe fn open(&self, parts: Parts<'_, ()>) -> Result<AnyDriver> {
        let (config, memory) = said(parts)?;
        AnyDriver::new(self.channel(config, memory)?)
    }

    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Self::reset(self, pull)
    }
}

/// Channel, event and program. A channel has the event of its own number, unless the settings say
/// another.
fn said(parts: Parts<'_, ()>) -> Result<(Pl330Config, CpuBuf)> {
    parts.settings.only(SETTINGS)?;
    // At most 31, so that it fits.
    let small = |value: Option<u64>| value.and_then(|value| u8::try_from(value).ok());
    let channel =
        small(parts.settings.number("channel", 0, regs::CHANNELS_MAX as u64 - 1)?).unwrap_or(0);
    let event = small(parts.settings.number("event", 0, EVENTS_MAX - 1)?).unwrap_or(channel);
    const NO_MEMORY: Error = Error::Unsupported {
        what: "pl330 needs memory of its own, for its program",
        fix: "give it a block of 512 bytes",
    };
    const { assert!(MEMORY_BYTES <= 512) };
    let memory = parts.memory.ok_or(NO_MEMORY)?;
    Ok((Pl330Config { channel, event }, memory))
}

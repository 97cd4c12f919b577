//! Arm's DMA-330, better known as PL330: the DMA controller of Zynq-7000 and Cyclone V SoC, and of
//! many others. It copies memory by running programs that it fetches from memory.
//!
//! A [`Pl330`] drives a whole controller through one of its channels. A [`Controller`] opens up to
//! eight channels: each is a driver of its own ([`Pl330Channel`]), in any thread. By name, `pl330`
//! with the setting `channel` is a channel, whose event has the same number unless `event` is set;
//! without it, it is the whole controller.
//!
//! A job has two operands, in this order:
//!
//! | operand | what | bytes | direction |
//! |---|---|---|---|
//! | from | any | `n`, 1 to the limit below | to the device |
//! | to | any | `n` or more; `n` are written | from the device |
//!
//! Any addresses and any length work. Speed depends on how many low bits the two addresses have in
//! common. At equal offsets in a cache line it copies in bursts of a line or more. At offsets that
//! differ by an odd number it copies byte by byte. The limit depends on the same: 2,097,152 blocks,
//! whose size is the lowest bit in which the addresses differ, and at most 16 beats of the
//! controller's bus. That is 2 MiB at worst, and 256 MiB on Zynq-7000 if the addresses agree in
//! their lowest seven bits.
//!
//! Addresses have 32 bits.
//!
//! Before user space opens the controller, its clock must run and its reset must be released:
//! `uio_pdrv_genirq` does neither (Linux `drivers/uio/uio_pdrv_genirq.c`). No kernel driver may use
//! it at the same time.
//!
//! # References
//! Arm DDI 0424C, CoreLink DMA Controller DMA-330 Technical Reference Manual. Linux
//! `drivers/dma/pl330.c`. AMD UG585, chapter 9.

mod channel;
mod config;
mod driver;
mod microcode;
mod regs;
mod stop;
mod submit;

pub use self::channel::{Controller, Pl330Channel};
pub use self::config::Pl330Config;
pub use self::driver::Pl330;
pub use self::microcode::PROGRAM_BYTES;

use contigo_core::hw::Device;
use contigo_core::job::{AnyCore, AnyDriver, Channels, Descriptors, DriverRow, Parts};
use contigo_core::mem::CpuBuf;
use contigo_core::types::{Error, Result};

const SETTINGS: &[&str] = &["channel", "event", Descriptors::SETTING];

const MEMORY_BYTES: usize = PROGRAM_BYTES;

/// Its driver info.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow {
        settings: Some(SETTINGS),
        // Linux `Documentation/devicetree/bindings/dma/arm,pl330.yaml`.
        compatible: &["arm,pl330"],
        memory_bytes: MEMORY_BYTES,
        copies: true,
        core: Some(open_core::<D>),
        ..DriverRow::new(
            "pl330",
            "Arm's DMA-330: copies operand 0 to operand 1; with settings channel, event one \
             channel of it, beside others",
            open::<D>,
        )
    }
}

/// Arm DDI 0424C, CR0.num_events: 32 at most.
const EVENTS_MAX: u64 = 32;

/// The whole controller, through one channel.
///
/// # Safety
/// As [`Pl330::open`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
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
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
    // SAFETY: the caller's promise.
    AnyCore::new(unsafe { Controller::open(device)? })
}

#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
impl<D: Device + Send + Sync + 'static> Channels for Controller<D> {
    /// A channel. No setting can be false: the controller refuses a channel or event that it lacks.
    unsafe fn open(&self, parts: Parts<'_, ()>) -> Result<AnyDriver> {
        let (config, memory) = said(parts)?;
        AnyDriver::new(self.channel(config, memory)?)
    }

    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Self::reset(self, pull)
    }
}

/// Channel, event and program. The event defaults to the channel's number.
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

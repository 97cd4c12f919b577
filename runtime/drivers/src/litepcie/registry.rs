#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{Litepcie, LitepcieConfig, LitepcieCore, Side};
use contigo_core::{
    hw::Device,
    job::{AnyCore, AnyDriver, Channels, DriverRow, Parts, Settings},
    types::Result,
};

const SETTINGS: &[&str] = &[
    "channel",
    "reader_at",
    "writer_at",
    "loopback_at",
    "msi_at",
    "reader_irq",
    "writer_irq",
    "address_bits",
    "data_bits",
    "depth",
    "settle_us",
    "ordered",
    "stop_us",
];

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new("litepcie", "LitePCIe's DMA: copies operand 0 to operand 1 by the card's loopback; with channel=0 it only sends, with channel=1 it only receives", open::<D>)
        .settings(SETTINGS)
        .shared(open_core::<D>)
}

/// # Safety
/// As [`Litepcie::open`].
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let (side, config) = said(parts.settings)?;
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { Litepcie::open(parts.device, side, config)? })
}

/// The DMA that both sides share.
///
/// # Safety
/// As [`LitepcieCore::open`].
unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
    // SAFETY: the caller's promise.
    AnyCore::new(unsafe { LitepcieCore::open(device)? })
}

impl<D: Device + Send + Sync + 'static> Channels for LitepcieCore<D> {
    unsafe fn open(&self, parts: Parts<'_, ()>) -> Result<AnyDriver> {
        let (side, config) = said(parts.settings)?;
        // SAFETY: the caller's promise: the settings describe the design.
        AnyDriver::new(unsafe { self.channel(side, config)? })
    }

    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Self::reset(self, pull)
    }
}

/// The side that the settings name, and the design.
fn said(settings: Settings<'_>) -> Result<(Side, LitepcieConfig)> {
    settings.only(SETTINGS)?;
    let default = LitepcieConfig::default();
    let number = |name, default| settings.value(name, 0, u32::MAX, default);
    let byte = |name, default: u8| {
        number(name, default.into()).map(|value| u8::try_from(value).unwrap_or(u8::MAX))
    };
    let short = |name, default: u16| {
        number(name, default.into()).map(|value| u16::try_from(value).unwrap_or(u16::MAX))
    };
    let config = LitepcieConfig {
        reader_at: number("reader_at", default.reader_at)?,
        writer_at: number("writer_at", default.writer_at)?,
        loopback_at: number("loopback_at", default.loopback_at)?,
        msi_at: number("msi_at", default.msi_at)?,
        reader_irq: byte("reader_irq", default.reader_irq)?,
        writer_irq: byte("writer_irq", default.writer_irq)?,
        address_bits: byte("address_bits", default.address_bits)?,
        data_bits: short("data_bits", default.data_bits)?,
        depth: short("depth", default.depth)?,
        settle_us: number("settle_us", default.settle_us)?,
        ordered: settings.flag("ordered", default.ordered)?,
        stop_us: number("stop_us", default.stop_us)?,
    };
    let side = match settings.number("channel", 0, 1)? {
        None => Side::Loopback,
        Some(0) => Side::Reader,
        Some(_) => Side::Writer,
    };
    Ok((side, config))
}

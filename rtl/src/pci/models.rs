//! The models by name.

use super::description::{Description, Vectors};
use contigo::{
    drivers::litepcie::{LitepcieConfig, LitepcieModel, LitepcieSpec},
    sim::AnyModel,
};

/// A model that `contigo-pci` serves.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its identity.
    pub description: Description,
    /// Makes one.
    pub make: fn() -> AnyModel,
}

/// All of them. **A new one is a line here.**
pub const MODELS: &[Row] = &[Row {
    name: "litepcie",
    about: "a card with LitePCIe's DMA, whose own stream is a loopback",
    // A card of the 7 series, whose PHY has one channel: the vendor, and a device, of LitePCIe's
    // kernel driver (`main.c`); memory controller, other.
    description: Description { vendor: 0x10EE, device: 0x7024, class: 0x05_80_00, vectors: Vectors::Msi, slice_ns: 1_000_000 },
    make: || {
        let config = LitepcieConfig { address_bits: 64, ordered: true, ..LitepcieConfig::default() };
        AnyModel::new(LitepcieModel::new(LitepcieSpec { config, ..LitepcieSpec::default() }))
    },
}];

/// The model of this name.
#[must_use]
pub fn row(name: &str) -> Option<&'static Row> {
    MODELS.iter().find(|row| row.name == name)
}

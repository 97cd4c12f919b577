//! The models by name.

use super::PciError;
use super::description::{Description, Faults, Obeys, Vectors};
use super::guest::Counts;
use super::server::{Fatal, Served, serve};
use crate::axi::{Landing, SlaveConfig};
use crate::{Core, PowerOn, RtlConfig, RtlModel};
use contigo::drivers::litepcie::LitepcieConfig;
use contigo::sim::litepcie::{LitepcieModel, LitepcieSpec};
use std::path::Path;

/// The report of a model whose client has gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its counts.
    pub counts: Counts,
    /// The rules of its bus that it broke. A model that is written by hand looks for none.
    pub findings: Vec<String>,
}

/// A model that `contigo-pci` serves.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// A line about it.
    pub about: &'static str,
    /// Its identity.
    pub description: Description,
    /// The core that it is made of, where it is RTL.
    core: Option<&'static str>,
    serve: fn(&Description, &Path, Fatal) -> Result<Report, PciError>,
}

impl Row {
    /// Why it cannot be served here, if so.
    #[must_use]
    pub fn missing(&self) -> Option<PciError> {
        Core::open(self.core?, PowerOn::Zeros).err().map(PciError::from)
    }

    /// Serves one, as [`serve`] does.
    ///
    /// # Errors
    /// [`PciError`].
    pub fn serve(&self, path: &Path, fatal: Fatal) -> Result<Report, PciError> {
        (self.serve)(&self.description, path, fatal)
    }
}

/// All of them. **A new one is a line here.**
pub const MODELS: &[Row] = &[
    Row {
        name: "litepcie",
        about: "a card with LitePCIe's DMA, whose own stream is a loopback",
        // A card of the 7 series, whose PHY has one channel: the vendor, and a device, of
        // LitePCIe's kernel driver (`main.c`); memory controller, other.
        description: Description {
            vendor: 0x10EE,
            device: 0x7024,
            class: 0x05_80_00,
            vectors: Vectors::Msi,
            obeys: Obeys::Pci,
            slice_ns: 1_000_000,
            faults: Faults::NONE,
        },
        core: None,
        serve: |about, path, fatal| {
            let config =
                LitepcieConfig { address_bits: 64, ordered: true, ..LitepcieConfig::default() };
            let model = LitepcieModel::new(LitepcieSpec { config, ..LitepcieSpec::default() });
            let Served { counts, .. } = serve(model, about, path, fatal)?;
            Ok(Report { counts, findings: Vec::new() })
        },
    },
    Row {
        name: "gemm8",
        about: "gemm8 in Verilog, a matrix engine (examples/gemm8)",
        description: Description { vectors: Vectors::MsiX, ..OF_A_CORE },
        core: Some("gemm8"),
        serve: |about, path, fatal| rtl("gemm8", about, path, fatal),
    },
    Row {
        name: "gemm8-gated",
        about: "the same behind the gate (docs/stopping.md), as on a SoC: nothing but its \
            registers stops it",
        description: Description { device: 0x4754, obeys: Obeys::Registers, ..OF_A_CORE },
        core: Some("gemm8_gated"),
        serve: |about, path, fatal| rtl("gemm8_gated", about, path, fatal),
    },
    Row {
        name: "broken",
        about: "a core that breaks a rule of AXI when told to, for tests of this program",
        description: OF_A_CORE,
        core: Some("broken32"),
        serve: |about, path, fatal| rtl("broken32", about, path, fatal),
    },
];

/// A core that is no product: the vendor that QEMU uses for its own (`edu`), "GM"; processing
/// accelerator. 4 µs are 800 of its cycles, in which memory answers all that one master may be
/// owed: so a guest that looks sees a core stop.
const OF_A_CORE: Description = Description {
    vendor: 0x1234,
    device: 0x474D,
    class: 0x12_00_00,
    vectors: Vectors::Msi,
    obeys: Obeys::Pci,
    slice_ns: 4_000,
    faults: Faults::NONE,
};

/// Registers of a core, then those of its gate where it has one.
const WINDOW_BYTES: usize = 0x2000;

/// A gate that was told to stop holds a core's addresses back, and a core that waits for its writes
/// takes no answer of a read meanwhile. A stop lets that last for 1 ms at most before it resets
/// the core, a twentieth of this.
const STOP_CYCLES: u32 = 4_000_000;

/// A core in memory that takes its time, and that writes reach before their answer.
fn rtl(core: &str, about: &Description, path: &Path, fatal: Fatal) -> Result<Report, PciError> {
    let patience_cycles = match about.obeys {
        Obeys::Pci => SlaveConfig::CALM.patience_cycles,
        Obeys::Registers => STOP_CYCLES,
    };
    let calm = SlaveConfig { patience_cycles, ..SlaveConfig::CALM };
    let memory = SlaveConfig {
        read_cycles: 1..=100,
        write_cycles: 1..=100,
        stalls: 100,
        landing: Landing::Random,
        ..calm
    };
    let model = RtlModel::new(
        core,
        RtlConfig { memory, window_bytes: WINDOW_BYTES, ..RtlConfig::default() },
    )?;
    let Served { counts, model } = serve(model, about, path, fatal)?;
    Ok(Report { counts, findings: model.findings().iter().map(ToString::to_string).collect() })
}

/// The model of this name. After a colon it has the mistakes that it shall make ([`Faults::of`]).
///
/// # Errors
/// [`PciError::NoModel`], [`PciError::NoFault`].
pub fn row(name: &str) -> Result<Row, PciError> {
    let (name, faults) =
        name.split_once(':').map_or((name, None), |(name, faults)| (name, Some(faults)));
    let mut row = *MODELS
        .iter()
        .find(|row| row.name == name)
        .ok_or_else(|| PciError::NoModel { name: name.into() })?;
    row.description.faults = faults.map_or(Ok(Faults::NONE), Faults::of)?;
    Ok(row)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn missing_core_is_refused_with_reason() {
        let row = Row {
            core: Some("no-such"),
            serve: |about, path, fatal| rtl("no-such", about, path, fatal),
            ..row("gemm8").unwrap()
        };
        let refused = row.serve(Path::new("/nowhere"), |error| panic!("{error}")).unwrap_err();
        let missing = row.missing().unwrap();
        assert!(
            matches!(missing, PciError::NoCore(_)) && missing.to_string() == refused.to_string(),
            "{missing}"
        );
        assert!(missing.to_string().starts_with("there is no such model here: "), "{missing}");
    }
}

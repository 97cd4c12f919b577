//! The port and the memory of a row.

use super::TableError;
use crate::axi::{LiteConfig, SlaveConfig};
use crate::{RtlConfig, RtlModel};
use contigo::Port;
use contigo::sim::{SimBoard, SimDevice};
use std::path::PathBuf;

/// The port and the memory of a row, and the seed of all that is left to chance.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The same seed gives the same run.
    pub seed: u64,
    /// The core is behind the board's port that snoops.
    pub coherent: bool,
    /// The name of its memory.
    pub stalls: &'static str,
    /// Memory behind the core's master.
    pub memory: SlaveConfig,
    /// The processor's side of its registers waits in so many cycles of 1,000.
    pub register_stalls: u16,
    /// A file for the core's signals ([`RtlModel::trace`]).
    pub trace: Option<PathBuf>,
}

impl Setting {
    /// Memory that is always ready, behind the port that does not snoop.
    #[must_use]
    pub const fn calm(seed: u64) -> Self {
        Self {
            seed,
            coherent: false,
            stalls: "calm",
            memory: SlaveConfig::CALM,
            register_stalls: 0,
            trace: None,
        }
    }

    /// Memory that stalls and reorders, behind the same port.
    #[must_use]
    pub const fn hostile(seed: u64) -> Self {
        Self {
            seed,
            coherent: false,
            stalls: "hostile",
            memory: SlaveConfig::HOSTILE,
            register_stalls: 300,
            trace: None,
        }
    }

    /// All four: each memory behind each port.
    #[must_use]
    pub fn all(seed: u64) -> [Self; 4] {
        let coherent = |setting: Self| Self { coherent: true, ..setting };
        [
            Self::calm(seed),
            Self::hostile(seed),
            coherent(Self::calm(seed)),
            coherent(Self::hostile(seed)),
        ]
    }

    /// Its port of `board`.
    #[must_use]
    pub fn port(&self, board: &SimBoard) -> Port {
        if self.coherent { board.coherent_port() } else { board.port() }
    }

    /// The core of this name on `board`, with registers of so many bytes. `has_irq`: its driver
    /// waits for interrupts.
    ///
    /// # Errors
    /// [`TableError::NoCore`]; [`TableError::File`]: its trace cannot be made.
    pub fn device(
        &self,
        board: &SimBoard,
        core: &str,
        window_bytes: usize,
        has_irq: bool,
    ) -> Result<SimDevice<RtlModel>, TableError> {
        self.device_with(board, core, RtlConfig { window_bytes, has_irq, ..RtlConfig::default() })
    }

    /// The same with more settings. Memory and the processor's side are this row's.
    ///
    /// # Errors
    /// As [`Setting::device`].
    pub fn device_with(
        &self,
        board: &SimBoard,
        core: &str,
        config: RtlConfig,
    ) -> Result<SimDevice<RtlModel>, TableError> {
        let lite = LiteConfig { stalls: self.register_stalls, ..LiteConfig::default() };
        let mut model =
            RtlModel::new(core, RtlConfig { memory: self.memory.clone(), lite, ..config })?;
        self.trace.as_deref().map_or(Ok(()), |path| model.trace(path))?;
        Ok(SimDevice::with_model(board, self.port(board), model))
    }
}

//! A core in plain memory: no board, and no owners of bytes.

use contigo::{
    DevAddr,
    sim::{BusError, Faults, Model, SimBus, SimMemory},
};
use contigo_rtl::{RtlModel, axi::Finding};
use std::ops::Range;

/// Memory from address 0, and a clock.
pub(crate) struct Plain {
    pub(crate) bytes: Vec<u8>,
    pub(crate) now_ns: u64,
}

impl Plain {
    fn range(&self, addr: DevAddr, len: usize) -> Result<Range<usize>, BusError> {
        let start = usize::try_from(addr.0).map_err(|_| BusError { addr })?;
        let end = start
            .checked_add(len)
            .filter(|end| *end <= self.bytes.len())
            .ok_or(BusError { addr })?;
        Ok(start..end)
    }
}

impl SimMemory for Plain {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn read(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError> {
        let range = self.range(addr, to.len())?;
        to.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    fn write(&mut self, addr: DevAddr, from: &[u8]) -> Result<(), BusError> {
        let range = self.range(addr, from.len())?;
        self.bytes[range].copy_from_slice(from);
        Ok(())
    }
}

/// A core in 64 KiB of random bytes.
pub(crate) struct Rig {
    pub(crate) model: RtlModel,
    pub(crate) memory: Plain,
    rng: fastrand::Rng,
    pub(crate) faults: Faults,
}

impl Rig {
    pub(crate) fn new(model: RtlModel, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes = (0..64 << 10).map(|_| rng.u8(..)).collect();
        Self { model, memory: Plain { bytes, now_ns: 0 }, rng, faults: Faults::NONE }
    }

    pub(crate) fn on<R>(&mut self, act: impl FnOnce(&mut RtlModel, &mut SimBus<'_>) -> R) -> R {
        let mut bus = SimBus::over(&mut self.memory, &mut self.rng, &self.faults);
        self.model.advance(&mut bus);
        act(&mut self.model, &mut bus)
    }

    pub(crate) fn read(&mut self, offset: usize) -> u32 {
        self.memory.now_ns += 100;
        self.on(|model, bus| model.read32(offset, bus))
    }

    pub(crate) fn write(&mut self, offset: usize, value: u32) {
        self.memory.now_ns += 100;
        self.on(|model, bus| model.write32(offset, value, bus));
    }

    /// Waits for the interrupt; how long that took.
    pub(crate) fn wait_us(&mut self, us: u64) -> u64 {
        let from_ns = self.memory.now_ns;
        self.memory.now_ns = self.on(|model, bus| model.run(from_ns + us * 1_000, bus));
        self.memory.now_ns - from_ns
    }

    pub(crate) fn pass_us(&mut self, us: u64) {
        self.memory.now_ns += us * 1_000;
        self.on(|_, _| ());
    }

    pub(crate) fn findings(&self) -> &[Finding] {
        self.model.findings()
    }
}

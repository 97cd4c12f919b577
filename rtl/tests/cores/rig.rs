//! A core, or a model of one, in plain memory: no board, and no owners of bytes.
#![allow(dead_code, reason = "each test uses a part of it")]

use contigo::DevAddr;
use contigo::sim::{BusError, Faults, Model, SimBus, SimMemory};
use contigo_rtl::RtlModel;
use contigo_rtl::axi::Finding;
use std::ops::Range;

/// Memory from an address on, and a clock. There is none in its hole.
#[derive(Default)]
pub(crate) struct Plain {
    pub(crate) bytes: Vec<u8>,
    /// The address of the first byte.
    pub(crate) base: u64,
    pub(crate) hole: Range<u64>,
    pub(crate) now_ns: u64,
    /// Accesses since a test set it to 0.
    pub(crate) accesses: u64,
}

impl Plain {
    fn range(&mut self, addr: DevAddr, len: usize) -> Result<Range<usize>, BusError> {
        self.accesses += 1;
        let in_hole = addr.0 < self.hole.end && addr.0.saturating_add(len as u64) > self.hole.start;
        let start = addr.0.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        start
            .and_then(|start| Some(start..start.checked_add(len)?))
            .filter(|range| range.end <= self.bytes.len() && !in_hole)
            .ok_or(BusError { addr })
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

/// A core in memory of its own.
pub(crate) struct Rig<M = RtlModel> {
    pub(crate) model: M,
    pub(crate) memory: Plain,
    rng: fastrand::Rng,
    pub(crate) faults: Faults,
    /// As long as a job may take.
    pub(crate) limit_ns: u64,
}

impl Rig {
    /// In 64 KiB of random bytes.
    pub(crate) fn new(model: RtlModel, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes = (0..64 << 10).map(|_| rng.u8(..)).collect();
        Self { rng, ..Self::with(model, Plain { bytes, ..Plain::default() }, seed) }
    }

    pub(crate) fn findings(&self) -> &[Finding] {
        self.model.findings()
    }
}

impl<M: Model> Rig<M> {
    pub(crate) fn with(model: M, memory: Plain, seed: u64) -> Self {
        let rng = fastrand::Rng::with_seed(seed);
        Self { model, memory, rng, faults: Faults::NONE, limit_ns: 50_000_000 }
    }

    pub(crate) fn on<R>(&mut self, act: impl FnOnce(&mut M, &mut SimBus<'_>) -> R) -> R {
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

    /// Waits for the interrupt, and accesses no register meanwhile; how long that took.
    pub(crate) fn wait_us(&mut self, us: u64) -> u64 {
        let from_ns = self.memory.now_ns;
        self.memory.now_ns = self.on(|model, bus| model.run(from_ns + us * 1_000, bus));
        self.memory.now_ns - from_ns
    }

    pub(crate) fn pass_us(&mut self, us: u64) {
        self.pass_ns(us * 1_000);
    }

    pub(crate) fn pass_ns(&mut self, ns: u64) {
        self.memory.now_ns += ns;
        self.on(|_, _| ());
    }
}

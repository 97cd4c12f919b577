//! A gemm8 in plain memory. Its registers are numbers of the contract, written down once more.

use contigo::{
    DevAddr,
    sim::{BusError, Faults, Model, SimBus, SimMemory},
};
use contigo_gemm8::Gemm8Model;
use contigo_rtl::{RtlConfig, RtlModel, axi::SlaveConfig};
use fastrand::Rng;
use std::ops::Range;

pub(crate) const CTRL: usize = 0x00;
pub(crate) const GIE: usize = 0x04;
pub(crate) const IER: usize = 0x08;
pub(crate) const ISR: usize = 0x0C;
pub(crate) const POINTERS: [usize; 4] = [0x10, 0x1C, 0x28, 0x34];
pub(crate) const SIZES: [usize; 3] = [0x40, 0x48, 0x50];
pub(crate) const MODE: usize = 0x58;
pub(crate) const ABORT: usize = 0x60;
pub(crate) const STATUS: usize = 0x68;
pub(crate) const BYTES_OUT: usize = 0x78;

pub(crate) const START: u32 = 1;
pub(crate) const DONE: u32 = 2;
pub(crate) const IDLE: u32 = 4;
pub(crate) const READY: u32 = 8;

/// Memory lies on both sides of 4 GiB, so that a pointer's high word counts.
pub(crate) const BASE: u64 = (4 << 30) - (256 << 10);
pub(crate) const LEN_BYTES: usize = 1 << 20;
/// Longer than any job of the core takes here. The model is slow with sizes that are refused.
const LIMIT_NS: u64 = 50_000_000;
const ORACLE_LIMIT_NS: u64 = 1 << 60;

/// Plain memory. There is none in its hole.
pub(crate) struct Memory {
    pub(crate) bytes: Vec<u8>,
    pub(crate) hole: Range<u64>,
    pub(crate) now_ns: u64,
    /// Accesses since a test set it to 0.
    pub(crate) accesses: u64,
}

impl Memory {
    fn range(&mut self, addr: DevAddr, len: usize) -> Result<Range<usize>, BusError> {
        self.accesses += 1;
        let end = addr.0 + len as u64;
        if addr.0 < BASE
            || end > BASE + LEN_BYTES as u64
            || (addr.0 < self.hole.end && end > self.hole.start)
        {
            return Err(BusError { addr });
        }
        let start = usize::try_from(addr.0 - BASE).unwrap();
        Ok(start..start + len)
    }
}

impl SimMemory for Memory {
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

/// A gemm8 in memory of its own.
pub(crate) struct Bench<M> {
    pub(crate) model: M,
    pub(crate) memory: Memory,
    pub(crate) faults: Faults,
    limit_ns: u64,
    rng: Rng,
}

/// The model, which is the oracle.
pub(crate) fn oracle(bytes: Vec<u8>) -> Bench<Gemm8Model> {
    Bench { limit_ns: ORACLE_LIMIT_NS, ..Bench::new(Gemm8Model::new(), bytes, 0) }
}

/// The core; `None` where there is no Verilator.
pub(crate) fn core(
    test: &str,
    config: RtlConfig,
    bytes: Vec<u8>,
    seed: u64,
) -> Option<Bench<RtlModel>> {
    let model = super::skip::or_skip(&format!("gemm8::{test}"), RtlModel::new("gemm8", config))?;
    Some(Bench::new(model, bytes, seed))
}

/// The settings of a seed: memory that answers at once, memory that takes its time, and memory that
/// stalls and reorders.
pub(crate) fn settings(seed: u64) -> RtlConfig {
    let memory = match seed % 3 {
        0 => SlaveConfig {
            read_cycles: 0..=0,
            write_cycles: 0..=0,
            outstanding: 16,
            ..SlaveConfig::CALM
        },
        1 => SlaveConfig { data_first: seed.is_multiple_of(2), ..SlaveConfig::HOSTILE },
        _ => SlaveConfig {
            read_cycles: 1..=100,
            write_cycles: 1..=100,
            stalls: 100,
            outstanding: 16,
            ..SlaveConfig::CALM
        },
    };
    let mut config = RtlConfig {
        memory,
        has_irq: true,
        finds_unknowns: seed.is_multiple_of(8),
        ..RtlConfig::default()
    };
    config.lite.stalls = if seed.is_multiple_of(2) { 300 } else { 0 };
    config
}

impl<M: Model> Bench<M> {
    fn new(model: M, bytes: Vec<u8>, seed: u64) -> Self {
        assert_eq!(bytes.len(), LEN_BYTES);
        let memory = Memory { bytes, hole: 0..0, now_ns: 0, accesses: 0 };
        Self { model, memory, faults: Faults::NONE, limit_ns: LIMIT_NS, rng: Rng::with_seed(seed) }
    }

    fn on<R>(&mut self, act: impl FnOnce(&mut M, &mut SimBus<'_>) -> R) -> R {
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

    pub(crate) fn pass_ns(&mut self, ns: u64) {
        self.memory.now_ns += ns;
        self.on(|_, _| ());
    }

    /// Waits for the interrupt, and accesses no register meanwhile.
    pub(crate) fn wait_quietly(&mut self) {
        let deadline_ns = self.memory.now_ns + self.limit_ns;
        self.memory.now_ns = self.on(|model, bus| model.run(deadline_ns, bus));
    }

    /// Waits for the interrupt.
    pub(crate) fn wait(&mut self) {
        let deadline_ns = self.memory.now_ns + self.limit_ns;
        while self.memory.now_ns < deadline_ns {
            self.memory.now_ns = self.on(|model, bus| model.run(deadline_ns, bus));
            self.on(|_, _| ());
            if self.read(ISR) != 0 {
                return;
            }
        }
        panic!("no interrupt came");
    }

    /// The end of a job, as the driver sees it: STATUS and BYTES_OUT.
    pub(crate) fn end(&mut self) -> (u32, u32) {
        self.wait();
        assert_eq!(self.read(CTRL), DONE | IDLE | READY);
        assert_eq!(self.read(CTRL), IDLE, "a read clears AP_DONE and AP_READY");
        self.write(ISR, 1);
        assert_eq!(self.read(ISR), 0);
        (self.read(STATUS), self.read(BYTES_OUT))
    }
}

//! A gemm8 in a rig. Its registers are numbers of the contract, written down once more.

pub(crate) use super::rig::{Plain, Rig};
use contigo::sim::Model;
use contigo_gemm8::Gemm8Model;
use contigo_rtl::axi::SlaveConfig;
use contigo_rtl::{RtlConfig, RtlModel};

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

fn bench<M: Model>(model: M, bytes: Vec<u8>, seed: u64) -> Rig<M> {
    assert_eq!(bytes.len(), LEN_BYTES);
    Rig::with(model, Plain { bytes, base: BASE, ..Plain::default() }, seed)
}

/// The model, which is the oracle. It is slow with sizes that are refused.
pub(crate) fn oracle(bytes: Vec<u8>) -> Rig<Gemm8Model> {
    let mut rig = bench(Gemm8Model::new(), bytes, 0);
    rig.limit_ns = 1 << 60;
    rig
}

/// The core; `None` where there is no Verilator.
pub(crate) fn core(config: RtlConfig, bytes: Vec<u8>, seed: u64) -> Option<Rig> {
    Some(bench(super::skip::or_skip(RtlModel::new("gemm8", config))?, bytes, seed))
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

impl<M: Model> Rig<M> {
    /// Waits for the interrupt.
    pub(crate) fn wait(&mut self) {
        let deadline_ns = self.memory.now_ns + self.limit_ns;
        while self.memory.now_ns < deadline_ns {
            self.memory.now_ns = self.on(|model, bus| model.run(deadline_ns, bus));
            self.pass_ns(0);
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

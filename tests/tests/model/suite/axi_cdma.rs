//! AXI CDMA: in registers and in descriptors, with realignment and without, as it is built in
//! several ways.

use super::See;
use contigo::drivers::axi_cdma::AxiCdmaConfig;
use contigo::sim::SimWindow;
use contigo::sim::axi_cdma::{AxiCdmaModel, AxiCdmaSpec};
use contigo::{CpuBuf, Driver, Error, Result};
use contigo_exerciser::Limits;
use contigo_testkit::suite::{Kind, Sight, Subject};

/// One way of building and driving it.
struct InMode {
    name: &'static str,
    config: AxiCdmaConfig,
    /// 0: in registers.
    memory_bytes: usize,
    /// The core itself has scatter-gather.
    sg: bool,
    limits: Limits,
}

impl Subject for InMode {
    type Model = AxiCdmaModel;

    fn name(&self) -> &'static str {
        self.name
    }
    fn kind(&self) -> Kind {
        Kind::Copy
    }
    fn model(&self) -> AxiCdmaModel {
        let AxiCdmaConfig { length_bits, address_bits, data_bits, dre, lite, burst_beats, .. } =
            self.config;
        let lite_beats = lite.then_some(burst_beats);
        AxiCdmaModel::new(AxiCdmaSpec {
            sg: self.sg,
            length_bits,
            address_bits,
            data_bits,
            dre,
            lite_beats,
            ..AxiCdmaSpec::default()
        })
    }
    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
    fn limits(&self) -> Limits {
        self.limits
    }
    fn never(&self) -> &'static [Sight] {
        &[Sight::Short]
    }
    fn may_fail(&self, error: &Error) -> bool {
        let Error::FaultAt { device: "axi_cdma", what, .. } = error else { return false };
        let is = |name| what.starts_with(name);
        is("DMAIntErr")
            || is("DMASlvErr")
            || is("DMADecErr")
            || self.memory_bytes > 0 && is("SGSlvErr")
    }
    fn open<R>(
        &self,
        window: SimWindow<AxiCdmaModel>,
        memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        Ok(match memory {
            Some(memory) => act(&mut window.sg(self.config, memory)?),
            None => act(&mut window.simple(self.config)?),
        })
    }
}

/// Any byte, with 63 jobs in flight at most.
const SG: InMode = InMode {
    name: "axi_cdma, scatter-gather",
    config: AxiCdmaConfig { dre: true, ..DEFAULT },
    memory_bytes: 4096,
    sg: true,
    limits: Limits::NONE,
};

const DEFAULT: AxiCdmaConfig = AxiCdmaConfig {
    length_bits: 23,
    address_bits: 32,
    data_bits: 32,
    dre: false,
    lite: false,
    burst_beats: 16,
    depth: None,
    irq_threshold: 1,
    irq_delay: 0,
    stop_us: 10_000,
};

const WORDS: Limits = Limits { offset_align_bytes: 4, ..Limits::NONE };

const SIMPLE: InMode = InMode { name: "axi_cdma, simple", memory_bytes: 0, sg: false, ..SG };

pub(crate) fn each(see: &mut impl See) {
    see.see(&SIMPLE);
    see.see(&SG);
}

suite! {
    simple: SIMPLE;
    simple_in_a_core_with_scatter_gather_and_without_realignment: InMode {
        name: "axi_cdma, simple beside scatter-gather",
        config: DEFAULT,
        memory_bytes: 0,
        sg: true,
        limits: WORDS,
    };
    scatter_gather: SG;
    /// A length of 10 bits: five descriptors for the longest copy.
    several_descriptors_a_job_with_wide_addresses: InMode {
        name: "axi_cdma, several descriptors a job",
        config: AxiCdmaConfig {
            length_bits: 10,
            address_bits: 64,
            depth: Some(3),
            irq_threshold: 4,
            irq_delay: 3,
            ..SG.config
        },
        ..SG
    };
    without_realignment_on_a_wide_bus: InMode {
        name: "axi_cdma, 512 bits",
        config: AxiCdmaConfig { data_bits: 512, depth: Some(4), ..DEFAULT },
        limits: Limits { offset_align_bytes: 64, ..Limits::NONE },
        ..SG
    };
    /// One burst of 16 beats, which begins where it cannot cross 4 KiB.
    lite: InMode {
        name: "axi_cdma, lite",
        config: AxiCdmaConfig { lite: true, ..DEFAULT },
        limits: Limits { offset_align_bytes: 64, len_align_bytes: 1, len_max_bytes: 64 },
        ..SIMPLE
    };
}

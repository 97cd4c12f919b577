//! The PL330.

use contigo::drivers::pl330::PROGRAM_BYTES;
use contigo::sim::SimWindow;
use contigo::sim::pl330::{Pl330Model, Pl330Spec};
use contigo::{CpuBuf, Driver, Error, Result};
use contigo_testkit::suite::{Kind, Sight, Subject};

/// Copies by programs of the default controller.
pub(super) struct Dma330;

impl Subject for Dma330 {
    type Model = Pl330Model;

    fn name(&self) -> &'static str {
        "pl330"
    }
    fn kind(&self) -> Kind {
        Kind::Copy
    }
    fn model(&self) -> Pl330Model {
        Pl330Model::new(Pl330Spec::default())
    }
    fn memory_bytes(&self) -> usize {
        PROGRAM_BYTES
    }
    fn never(&self) -> &'static [Sight] {
        &[Sight::Short]
    }
    fn may_fail(&self, error: &Error) -> bool {
        matches!(error, Error::Fault { device: "pl330", what: "a bus error while reading", .. })
    }
    fn open<R>(
        &self,
        window: SimWindow<Pl330Model>,
        memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        Ok(act(&mut window.driver(memory.unwrap())?))
    }
}

suite! {
    copies: Dma330;
}

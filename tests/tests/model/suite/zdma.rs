//! ZDMA, in both modes.

use super::See;
use contigo::sim::SimWindow;
use contigo::sim::zdma::ZdmaModel;
use contigo::{CpuBuf, Driver, Error, Result};
use contigo_testkit::suite::{Kind, Subject};

/// With so many bytes of descriptors; 0: in registers.
struct InMode(&'static str, usize);

impl Subject for InMode {
    type Model = ZdmaModel;

    fn name(&self) -> &'static str {
        self.0
    }
    fn kind(&self) -> Kind {
        Kind::Copy
    }
    fn model(&self) -> ZdmaModel {
        ZdmaModel::default()
    }
    fn memory_bytes(&self) -> usize {
        self.1
    }
    fn may_fail(&self, error: &Error) -> bool {
        match error {
            Error::Fault { device: "zdma", what, .. } => {
                what.starts_with("a bus error while")
                    || what.contains("descriptor that cannot be read")
            }
            Error::ShortTransfer { need_bytes, done_bytes } => done_bytes < need_bytes,
            _ => false,
        }
    }
    fn open<R>(
        &self,
        window: SimWindow<ZdmaModel>,
        memory: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        Ok(match memory {
            Some(memory) => act(&mut window.linked(memory)?),
            None => act(&mut window.simple()?),
        })
    }
}

const SIMPLE: InMode = InMode("zdma, simple", 0);
const LINKED: InMode = InMode("zdma, linked", 4096);

pub(crate) fn each(see: &mut impl See) {
    see.see(&SIMPLE);
    see.see(&LINKED);
}

suite! {
    simple: SIMPLE;
    linked: LINKED;
}

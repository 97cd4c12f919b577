//! A kernel of HLS that copies, by both protocols.

use contigo::design::kernel::{KernelMap, Protocol};
use contigo::sim::SimWindow;
use contigo::sim::ap_ctrl::{ApCtrlModel, KernelCall, KernelError, KernelFn};
use contigo::{CpuBuf, Driver, Error, OperandSpec, Result};
use contigo_testkit::suite::{Kind, Sight, Subject};
use std::time::Duration;

/// `int copy(const char *from, char *to, unsigned n)`, which returns `n`.
fn map(protocol: Protocol) -> KernelMap {
    KernelMap::named("copy", protocol)
        .interrupt(true)
        .result("ap_return", 0x10, 32)
        .pointer("from", 0x18, OperandSpec::to_device(), "n")
        .pointer("to", 0x24, OperandSpec::from_device(), "n")
        .scalar("n", 0x30, 32)
        .build()
        .unwrap()
}

fn copy(call: &mut KernelCall<'_, '_>) -> Result<[u32; 4], KernelError> {
    let mut bytes = vec![0; usize::try_from(call.len_bytes(0)).unwrap()];
    call.read(0, 0, &mut bytes)?;
    call.write(1, 0, &bytes)?;
    Ok([u32::try_from(bytes.len()).unwrap(), 0, 0, 0])
}

pub(crate) struct Copier(&'static str, Protocol);

impl Subject for Copier {
    type Model = ApCtrlModel;

    fn name(&self) -> &'static str {
        self.0
    }
    fn kind(&self) -> Kind {
        Kind::Copy
    }
    fn model(&self) -> ApCtrlModel {
        ApCtrlModel::new(map(self.1), copy as KernelFn).unwrap()
    }
    /// A kernel has no bit for an error.
    fn tells_failures(&self) -> bool {
        false
    }
    fn words(&self, len_bytes: usize) -> Vec<u32> {
        vec![u32::try_from(len_bytes).unwrap()]
    }
    /// What `copy` returns.
    fn words_expected(&self, bytes: &[u8]) -> Option<[u32; 4]> {
        Some([u32::try_from(bytes.len()).unwrap(), 0, 0, 0])
    }
    fn never(&self) -> &'static [Sight] {
        match self.1 {
            // Its stop waits, and what ended meanwhile is done.
            Protocol::Hs => &[Sight::Error, Sight::Short, Sight::Stopped],
            Protocol::Chain => &[Sight::Error, Sight::Short],
        }
    }
    fn may_fail(&self, _: &Error) -> bool {
        false
    }
    fn open<R>(
        &self,
        window: SimWindow<ApCtrlModel>,
        _: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        Ok(act(&mut window.driver()?.stops_within(Duration::from_millis(1))?))
    }
}

pub(crate) const HS: Copier = Copier("ap_ctrl_hs", Protocol::Hs);
const CHAIN: Copier = Copier("ap_ctrl_chain", Protocol::Chain);

/// Every subject of this module.
pub(super) fn each(see: &mut impl super::See) {
    see.see(&HS);
    see.see(&CHAIN);
}

suite! {
    hs: HS;
    chain: CHAIN;
}

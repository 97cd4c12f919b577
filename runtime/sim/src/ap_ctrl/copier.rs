//! The kernel that a model has by default: it copies, for tests.

use super::ApCtrlModel;
use contigo_core::job::OperandSpec;
use contigo_design::kernel::{KernelMap, MapError, Protocol};

/// `int copy(const char *from, char *to, unsigned n)`, which returns `n`: a kernel for tests.
const fn map(protocol: Protocol) -> Result<KernelMap, MapError> {
    KernelMap::named("copy", protocol)
        .interrupt(true)
        .result("ap_return", 0x10, 32)
        .pointer("from", 0x18, OperandSpec::to_device(), "n")
        .pointer("to", 0x24, OperandSpec::from_device(), "n")
        .scalar("n", 0x30, 32)
        .build()
}
const COPIER: KernelMap = match map(Protocol::Chain) {
    Ok(map) => map,
    Err(_) => panic!("the table is wrong"),
};
const COPIER_HS: KernelMap = match map(Protocol::Hs) {
    Ok(map) => map,
    Err(_) => panic!("the table is wrong"),
};
/// One burst: 16 beats of 128 bits.
const BURST_BYTES: usize = 256;

impl Default for ApCtrlModel {
    /// `int copy(const char *from, char *to, unsigned n)`, a chain that copies `n` bytes and
    /// returns `n`. Its operands are `from` and `to`, its argument word is `n`.
    fn default() -> Self {
        Self::copier(COPIER)
    }
}

impl ApCtrlModel {
    /// The same kernel by `ap_ctrl_hs`: one job at a time.
    #[must_use]
    pub fn copier_hs() -> Self {
        Self::copier(COPIER_HS)
    }

    fn copier(map: KernelMap) -> Self {
        Self::as_reset(map, |call| {
            let len_bytes = call.len_bytes(0);
            for at in (0..len_bytes).step_by(BURST_BYTES) {
                let mut beats = [0; BURST_BYTES];
                let burst = len_bytes.saturating_sub(at).min(BURST_BYTES as u64);
                #[allow(clippy::cast_possible_truncation, reason = "256 at most")]
                let bytes = beats.get_mut(..burst as usize).unwrap_or_default();
                call.read(0, at, bytes)?;
                call.write(1, at, bytes)?;
            }
            #[allow(clippy::cast_possible_truncation, reason = "the scalar has 32 bits")]
            Ok([call.scalar(0) as u32, 0, 0, 0])
        })
    }
}

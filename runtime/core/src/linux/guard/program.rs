//! A driver's quiesce program, as the kernel takes it.

use super::abi::{self, STEP_ELSE, STEP_POLL, STEP_POLL_NOT, STEP_WRITE, Step};
use crate::job::{StopProgram, StopStep};

// A program always fits.
const _: () = assert!(StopProgram::MAX_STEPS <= abi::MAX_STEPS);

impl StopProgram {
    /// The steps for the device's register window `window`.
    pub(super) fn steps_for(&self, window: u32) -> heapless::Vec<Step, { abi::MAX_STEPS }> {
        let step = |step: &StopStep| match *step {
            StopStep::Write { offset_bytes, mask, value } => {
                Step { kind: STEP_WRITE, window, offset_bytes, mask, value, timeout_us: 0 }
            }
            StopStep::PollUntil { offset_bytes, mask, value, timeout_us } => {
                Step { kind: STEP_POLL, window, offset_bytes, mask, value, timeout_us }
            }
            StopStep::PollWhile { offset_bytes, mask, value, timeout_us } => {
                Step { kind: STEP_POLL_NOT, window, offset_bytes, mask, value, timeout_us }
            }
            StopStep::Else => Step { kind: STEP_ELSE, ..Step::default() },
        };
        self.steps().iter().map(step).collect()
    }
}

#![allow(unsafe_code, reason = "a program that the kernel runs later writes registers")]
//! A driver's stop program, in the kernel's form, and how it is loaded into the kernel.

use super::DevNode;
use super::abi::{self, STEP_ELSE, STEP_POLL, STEP_POLL_NOT, STEP_WRITE, Step};
use crate::job::{Driver, Queue, StopProgram, StopStep};
use crate::types::Error;

impl<D: Driver> Queue<D> {
    /// Loads the program that stops the device into the kernel. The kernel runs it when the file of
    /// `contigo` is closed, however this process ends, and only then releases the memory that was
    /// imported there. Call this before the first job. A contigo device has one program: arming it
    /// again, from another queue or for another window, replaces that program. One program stops
    /// all channels of one core; one of them loads it.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: this driver has no such program. As
    /// [`DevNode::arm`](crate::linux::dev_node::DevNode::arm).
    ///
    /// A device that has not stopped when the program's time is over, a second at most, is reset
    /// where the kernel can ([`DevNodeInfo::can_reset`](crate::linux::dev_node::DevNodeInfo)).
    /// Where it cannot, its memory is kept until the program stops it later: the kernel tries again
    /// when the device is next opened. So a driver that waits for the end of a job needs jobs that
    /// are shorter (ZDMA: 90 MB at 100 MB/s).
    ///
    /// # Safety
    /// `contigo` is the device that this queue's driver drives, and its window `window` holds the
    /// driver's registers. If the driver has them from elsewhere (a UIO device, `/dev/mem`), it is
    /// not used after `contigo` is dropped: the kernel writes the registers then. For registers
    /// that come from the contigo device itself, the kernel waits.
    pub unsafe fn arm(&self, dev_node: &DevNode, window: u32) -> Result<(), Error> {
        let program = self.driver().stop_program();
        if program.steps().is_empty() {
            let fix = "poll its stop in the program, or give the driver a stop program";
            return Err(Error::Unsupported {
                what: "this driver has no stop program for the kernel",
                fix,
            });
        }
        // SAFETY: the program only stops the device (`Driver`, 7), and the caller says that these
        // are its registers.
        unsafe { dev_node.arm(&program, window) }
    }
}

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

//! A transfer of edu by its registers (`docs/specs/edu.rst`), from its own memory to the machine's.

use crate::raw::{RawRegisters, Step};
use std::time::Duration;

const SOURCE: u32 = 0x80;
const DESTINATION: u32 = 0x88;
const COUNT: u32 = 0x90;
const COMMAND: u32 = 0x98;
const OWN_MEMORY: u32 = 0x4_0000;
/// Start, from its own memory to the machine's.
const WRITE: u32 = 3;
const RUNNING: u32 = 1;
/// Longer than a transfer.
pub(super) const OVER: Duration = Duration::from_millis(300);
/// Longer than a transfer, which takes 100 ms.
const OVER_US: u32 = 400_000;
/// All that it moves at once: QEMU counts one byte too many.
pub(super) const LEN: u32 = 4095;

/// The program that finds it stopped.
pub(super) const STOP: [Step; 1] = [Step::poll(COMMAND, RUNNING, 0, OVER_US)];

/// The steps that begin a transfer, as a program of a hostile user has them.
pub(super) const fn start(to: u32) -> [Step; 4] {
    [
        Step::write(SOURCE, OWN_MEMORY),
        Step::write(DESTINATION, to),
        Step::write(COUNT, LEN),
        Step::write(COMMAND, WRITE),
    ]
}

/// Is it at work?
pub(super) fn is_running(registers: &RawRegisters) -> bool {
    registers.read(COMMAND) & RUNNING != 0
}

pub(super) fn begin(registers: &RawRegisters, to: u64) {
    registers.write(SOURCE, OWN_MEMORY);
    registers.write(DESTINATION, u32::try_from(to).unwrap_or(0));
    registers.write(COUNT, LEN);
    registers.write(COMMAND, WRITE);
}

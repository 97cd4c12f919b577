//! The control registers of a kernel that HLS made: UG1399, "S_AXILITE Control Register Map", and
//! the table at the top of each `x<name>_hw.h`. A kernel's arguments begin behind them.

use crate::hw::mmio::{ReadClears, ReadWrite, Register, WriteOneToggles};

/// Control. `ap_ctrl_hs`: AP_DONE and AP_READY clear when read. `ap_ctrl_chain`: AP_DONE stays
/// until AP_CONTINUE is written.
pub const CTRL: Register<ReadClears> = Register::at(0x00);
/// Global interrupt enable, bit 0.
pub(crate) const GIE: Register<ReadWrite> = Register::at(0x04);
/// Interrupt enable: [`INT_DONE`], [`INT_READY`].
pub(crate) const IER: Register<ReadWrite> = Register::at(0x08);
/// Interrupt status: writing 1 toggles a bit; kernels that are built so clear it when it is read.
pub const ISR: Register<WriteOneToggles> = Register::at(0x0C);
/// The first argument's register.
pub(crate) const ARGUMENTS: u32 = 0x10;

/// CTRL: starts a job; reads 1 until the kernel has taken it, and its arguments may change.
pub const AP_START: u32 = 1 << 0;
/// CTRL: a job is done.
pub const AP_DONE: u32 = 1 << 1;
/// CTRL: no job is under way.
pub const AP_IDLE: u32 = 1 << 2;
/// CTRL: a job was taken.
pub const AP_READY: u32 = 1 << 3;
/// CTRL of `ap_ctrl_chain`: the end of a job was seen, and the next one may end. Clears itself.
pub(crate) const AP_CONTINUE: u32 = 1 << 4;

/// CTRL: the kernel starts again by itself whenever it has taken a job. Every write to CTRL sets or
/// clears it; this driver never sets it.
pub const AUTO_RESTART: u32 = 1 << 7;

/// IER, ISR: a job is done.
pub(crate) const INT_DONE: u32 = 1 << 0;
/// IER, ISR: a job was taken.
pub(crate) const INT_READY: u32 = 1 << 1;

/// CTRL: the bits that say whether the kernel touches nothing; then they are [`AP_IDLE`] alone.
/// AP_START makes all ones, which a device that is gone answers, another value.
pub const IDLE_MASK: u32 = AP_IDLE | AP_START;

/// Does a value of CTRL say that the kernel touches nothing?
#[must_use]
pub const fn is_idle(ctrl: u32) -> bool {
    ctrl & IDLE_MASK == AP_IDLE
}

/// Does a value of CTRL say that a job is done? All ones is what a device that is gone answers: no.
#[must_use]
pub(crate) const fn is_done(ctrl: u32) -> bool {
    ctrl & AP_DONE != 0 && ctrl != u32::MAX
}

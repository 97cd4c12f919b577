//! The registers of `axi_gate`: `rtl/gate/registers.md`.

use contigo_core::hw::mmio::{ReadOnly, ReadWrite, Register};

/// The window.
pub const WINDOW_BYTES: usize = 0x1000;

/// [`GATE`].
pub(crate) const ID: Register<ReadOnly> = Register::at(0x00);
/// Major version in bits 31:16.
pub(crate) const VERSION: Register<ReadOnly> = Register::at(0x04);
/// [`STOP`], [`RESET`].
pub(crate) const CONTROL: Register<ReadWrite> = Register::at(0x0C);
/// [`IDLE`], [`STOPPED`], [`IN_RESET`], [`FAILED`], [`MISFRAMED`], [`STRAY`].
pub(crate) const STATUS: Register<ReadOnly> = Register::at(0x10);
/// Bursts of reads in 7:0, of writes in 15:8, beats of the burst that is being written in 24:16.
pub(crate) const OWED: Register<ReadOnly> = Register::at(0x14);
/// The first error; writing 1 to bit 0 clears it.
pub(crate) const ERROR: Register<ReadWrite> = Register::at(0x18);
/// The address of the first error's burst.
pub(crate) const ERROR_ADDR_LOW: Register<ReadOnly> = Register::at(0x1C);
/// The same, bits 63:32.
pub(crate) const ERROR_ADDR_HIGH: Register<ReadOnly> = Register::at(0x20);
/// Answers with SLVERR or DECERR.
pub(crate) const ERRORS: Register<ReadOnly> = Register::at(0x34);

/// ID: "GATE".
pub(crate) const GATE: u32 = 0x4741_5445;
/// The major version that this driver knows.
pub(crate) const MAJOR: u32 = 1;

/// CONTROL: no new address passes.
pub(crate) const STOP: u32 = 1 << 0;
/// CONTROL: the core is held in reset, until nothing is owed.
pub(crate) const RESET: u32 = 1 << 1;

/// STATUS: every burst that passed was answered.
pub(crate) const IDLE: u32 = 1 << 0;
/// STATUS: [`STOP`] and [`IDLE`].
pub(crate) const STOPPED: u32 = 1 << 1;
/// STATUS: the core is in reset.
pub(crate) const IN_RESET: u32 = 1 << 2;
/// STATUS: ERROR has an error.
pub(crate) const FAILED: u32 = 1 << 3;
/// STATUS: the core's WLAST did not match its own length.
pub(crate) const MISFRAMED: u32 = 1 << 4;
/// STATUS: an answer came that no burst had asked for.
pub(crate) const STRAY: u32 = 1 << 5;
/// STATUS: bits that are always 0; a device that is gone answers ones.
pub(crate) const ZEROS: u32 = !0x3F;

/// ERROR: DECERR, which is 3; SLVERR is 2.
pub(crate) const DECERR: u32 = 1 << 1;
/// ERROR: the burst was a write.
pub(crate) const BY_WRITE: u32 = 1 << 3;

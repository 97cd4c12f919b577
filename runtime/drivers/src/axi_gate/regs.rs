//! The registers of `axi_gate`: `rtl/gate/registers.md`.

use contigo_core::hw::mmio::{ReadOnly, ReadWrite, Register};

/// The window.
pub const WINDOW_BYTES: usize = 0x1000;

/// [`GATE`].
pub const ID: Register<ReadOnly> = Register::at(0x00);
/// Major version in bits 31:16.
pub const VERSION: Register<ReadOnly> = Register::at(0x04);
/// The build parameters: data bits in 9:0, ID bits in 13:10, address bits in 22:16, depth in 31:24.
pub const CONFIG: Register<ReadOnly> = Register::at(0x08);
/// [`STOP`], [`RESET`].
pub const CONTROL: Register<ReadWrite> = Register::at(0x0C);
/// [`IDLE`], [`STOPPED`], [`IN_RESET`], [`FAILED`], [`MISFRAMED`], [`STRAY`].
pub const STATUS: Register<ReadOnly> = Register::at(0x10);
/// Bursts of reads in 7:0, of writes in 15:8, beats of the burst that is being written in 24:16.
pub const OWED: Register<ReadOnly> = Register::at(0x14);
/// The first error; writing 1 to bit 0 clears it.
pub const ERROR: Register<ReadWrite> = Register::at(0x18);
/// The address of the first error's burst.
pub const ERROR_ADDR_LOW: Register<ReadOnly> = Register::at(0x1C);
/// The same, bits 63:32.
pub const ERROR_ADDR_HIGH: Register<ReadOnly> = Register::at(0x20);
/// Bursts of reads that passed; this and the following counters wrap.
pub const READ_BURSTS: Register<ReadOnly> = Register::at(0x24);
/// Words that were read.
pub const READ_BEATS: Register<ReadOnly> = Register::at(0x28);
/// Bursts of writes that passed.
pub const WRITE_BURSTS: Register<ReadOnly> = Register::at(0x2C);
/// Words that were written, including the gate's own.
pub const WRITE_BEATS: Register<ReadOnly> = Register::at(0x30);
/// Answers with SLVERR or DECERR.
pub const ERRORS: Register<ReadOnly> = Register::at(0x34);

/// ID: "GATE".
pub const GATE: u32 = 0x4741_5445;
/// The major version that this driver knows.
pub(crate) const MAJOR: u32 = 1;

/// CONTROL: no new address passes.
pub const STOP: u32 = 1 << 0;
/// CONTROL: the core is held in reset, until nothing is owed.
pub const RESET: u32 = 1 << 1;

/// STATUS: every burst that passed was answered.
pub const IDLE: u32 = 1 << 0;
/// STATUS: [`STOP`] and [`IDLE`].
pub const STOPPED: u32 = 1 << 1;
/// STATUS: the core is in reset.
pub const IN_RESET: u32 = 1 << 2;
/// STATUS: ERROR has an error.
pub const FAILED: u32 = 1 << 3;
/// STATUS: the core's WLAST did not match its own length.
pub const MISFRAMED: u32 = 1 << 4;
/// STATUS: an answer came that no burst had asked for.
pub const STRAY: u32 = 1 << 5;
/// STATUS: bits that are always 0; a device that is gone answers ones.
pub(crate) const ZEROS: u32 = !0x3F;

/// ERROR: DECERR, which is 3; SLVERR is 2.
pub(crate) const DECERR: u32 = 1 << 1;
/// ERROR: the burst was a write.
pub(crate) const BY_WRITE: u32 = 1 << 3;

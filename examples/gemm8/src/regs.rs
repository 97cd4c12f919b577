//! The registers of `gemm8`, by the control protocol of AMD's Vitis HLS User Guide (UG1399,
//! "S_AXILITE Control Register Map", block-level protocol `ap_ctrl_hs`). `examples/gemm8/README.md`
//! has the table that the hardware implements.

use contigo::hw::mmio::{Pointer, ReadClears, ReadOnly, ReadWrite, Register, WriteOneToggles};

/// The bytes used of the window; the window itself may be a 4 KiB page.
pub const WINDOW_BYTES: usize = 0x90;
/// Every pointer is a multiple of this.
pub const POINTER_ALIGN: usize = 64;
/// `n` and `k` are multiples of this: the width of the array.
pub const TILE: u32 = 16;
/// The most rows or columns: |sum of 4,096 products of int8| ≤ 2²⁶, and a row of A fits the
/// engine's buffer.
pub const DIM_MAX: u32 = 4096;

/// UG1399, 0x00: control. AP_START is set by writing; AP_DONE and AP_READY clear when read.
pub const CTRL: Register<ReadClears> = Register::at(0x00);
/// UG1399, 0x04: global interrupt enable, bit 0.
pub const GIE: Register<ReadWrite> = Register::at(0x04);
/// UG1399, 0x08: interrupt enable: bit 0 done, bit 1 ready.
pub const IER: Register<ReadWrite> = Register::at(0x08);
/// UG1399, 0x0C: interrupt status: bit 0 done, bit 1 ready; writing 1 toggles.
pub const ISR: Register<WriteOneToggles> = Register::at(0x0C);
/// Bus addresses of A, B, bias and C, two words each.
pub const POINTERS: [Pointer; 4] =
    [Pointer::at(0x10), Pointer::at(0x1C), Pointer::at(0x28), Pointer::at(0x34)];
/// Rows of A and C.
pub const M: Register<ReadWrite> = Register::at(0x40);
/// Columns of B and C.
pub const N: Register<ReadWrite> = Register::at(0x48);
/// Columns of A, rows of B.
pub const K: Register<ReadWrite> = Register::at(0x50);
/// The form of the results: bits 4..0 shift, bit 8 ReLU, bit 9 raw int32.
pub const MODE: Register<ReadWrite> = Register::at(0x58);
/// Bit 0: issue no more bursts, wait for those under way, then become idle.
pub const ABORT: Register<ReadWrite> = Register::at(0x60);
/// The error of the last job; 0: none.
pub const STATUS: Register<ReadOnly> = Register::at(0x68);
/// How many bytes of C the last job wrote.
pub const BYTES_OUT: Register<ReadOnly> = Register::at(0x78);
/// Reads [`ID_VALUE`] if the device is a gemm8.
pub const ID: Register<ReadOnly> = Register::at(0x88);

/// CTRL: starts a job; reads 1 until the engine has taken it.
pub const AP_START: u32 = 1 << 0;
/// CTRL: the job is done, and all of its writes have been answered. Clears when read.
pub const AP_DONE: u32 = 1 << 1;
/// CTRL: no job and no burst is under way.
pub const AP_IDLE: u32 = 1 << 2;
/// CTRL: the engine can take the next job. Clears when read.
pub const AP_READY: u32 = 1 << 3;

/// IER, ISR: the job is done.
pub const INT_DONE: u32 = 1 << 0;
/// MODE: the shift's bits.
pub const MODE_SHIFT: u32 = 0x1F;
/// MODE: negative sums become 0.
pub const MODE_RELU: u32 = 1 << 8;
/// MODE: store the sums as int32.
pub const MODE_RAW: u32 = 1 << 9;

/// STATUS: m, n or k is outside its limits.
pub const STATUS_DIMENSION: u32 = 1 << 0;
/// STATUS: a pointer is not aligned.
pub const STATUS_ALIGNMENT: u32 = 1 << 1;
/// STATUS: a read was answered with SLVERR or DECERR.
pub const STATUS_READ: u32 = 1 << 2;
/// STATUS: a write was answered with SLVERR or DECERR.
pub const STATUS_WRITE: u32 = 1 << 3;
/// STATUS: the job was aborted.
pub const STATUS_ABORTED: u32 = 1 << 4;

/// "GM8" and version 1.
pub const ID_VALUE: u32 = 0x474D_3801;

/// CTRL: the engine touches nothing if these bits read [`AP_IDLE`] alone. AP_START is part of the
/// mask because a device that is gone reads as all ones.
pub const IDLE_MASK: u32 = AP_IDLE | AP_START;

/// Describes the most important bit of STATUS in words.
#[must_use]
pub const fn describe(status: u32) -> &'static str {
    if status == u32::MAX {
        "that it is gone (all ones)"
    } else if status & STATUS_WRITE != 0 {
        "a bus error while writing C"
    } else if status & STATUS_READ != 0 {
        "a bus error while reading A, B or bias"
    } else if status & STATUS_ALIGNMENT != 0 {
        "a pointer that is not aligned"
    } else if status & STATUS_DIMENSION != 0 {
        "m, n or k outside its limits"
    } else if status & STATUS_ABORTED != 0 {
        "that the job was aborted"
    } else {
        "unknown bits"
    }
}

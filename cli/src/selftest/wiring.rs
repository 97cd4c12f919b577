#![allow(unsafe_code, reason = "how a real engine is wired is a fact about its board, which this file claims")]
//! Real engines, wired to the ports that their boards' constants or the user name.

use contigo::{PhysAddr, Port, Registers, Result, Spin, Uio, UioIrq, Wired};

/// One page: no engine here has more registers.
const WINDOW_BYTES: usize = 4096;

/// The engine that is `/dev/uio<index>`, with its interrupt.
pub(crate) fn uio(index: u32, port: Port) -> Result<Wired<Registers, UioIrq>> {
    let device = Uio::open(index)?;
    // SAFETY: the port is that of the board's constant, found by the address of these registers, or the one that the user named for
    // them with --port; --lab-port is the user's word that no cache is here.
    Ok(unsafe { device.wired(port) })
}

/// The engine whose registers are at `addr`, through `/dev/mem`: polled.
pub(crate) fn dev_mem(addr: u64, port: Port) -> Result<Wired<Registers, Spin>> {
    // SAFETY: --dev-mem is the user's word that the registers of this engine are there, and that nobody else drives it.
    let registers = unsafe { Registers::from_dev_mem(PhysAddr(addr), WINDOW_BYTES)? };
    // SAFETY: as in `uio`.
    Ok(unsafe { Wired::new(registers, Spin, port) })
}

#![allow(unsafe_code, reason = "how a real engine is wired is a fact about its board, which this file claims")]
//! Engines, wired to the ports that their boards' constants or the user name.

use contigo::{
    PhysAddr, Port, Registers, Result, Spin, Wired,
    names::{AnyDevice, Attach, OpenDevice},
};

/// One page: no engine here has more registers.
const WINDOW_BYTES: usize = 4096;

/// An opened engine, with its interrupt; `None`: the kernel says its port.
pub(crate) fn attach(device: &OpenDevice, port: Option<Port>) -> Result<AnyDevice<'_>> {
    match port {
        // SAFETY: the port is that of the board's constant, found by the address of these
        // registers, or the one that the user named for them with --port; --lab-port is the user's
        // word that no cache is here. A model's is its board's.
        Some(port) => unsafe { device.attach_wired(port, Attach::default()) },
        None => device.attach(Attach::default()),
    }
}

/// The engine whose registers are at `addr`, through `/dev/mem`: polled.
pub(crate) fn dev_mem(addr: u64, port: Port) -> Result<Wired<Registers, Spin>> {
    // SAFETY: --dev-mem is the user's word that the registers of this engine are there, and that nobody else drives it.
    let registers = unsafe { Registers::from_dev_mem(PhysAddr(addr), WINDOW_BYTES)? };
    // SAFETY: as in `attach`.
    Ok(unsafe { Wired::new(registers, Spin, port) })
}

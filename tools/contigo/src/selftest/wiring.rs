#![allow(
    unsafe_code,
    reason = "how a real engine is wired is a fact about its board, which this file claims"
)]
//! Engines, wired to the ports that their boards' constants or the user name.

use contigo::{
    PhysAddr, Port, Result,
    linux::device::Registers,
    names::{AnyDevice, Attach, OpenDevice},
};

/// One page: no engine here has more registers.
const WINDOW_BYTES: usize = 4096;

/// An opened engine, with its interrupt; `None`: the kernel says its port.
pub(crate) fn attach(device: &OpenDevice, port: Option<Port>) -> Result<AnyDevice> {
    match port {
        // SAFETY: the port is that of the board's constant, found by the address of these
        // registers, or the one that the user named for them with --port. With --lab-port the user
        // says that no cache is here. A model has its board's port.
        Some(port) => unsafe { device.attach_wired(port, Attach::default()) },
        None => device.attach(Attach::default()),
    }
}

/// The registers at `addr`, through `/dev/mem`.
pub(crate) fn dev_mem(addr: u64) -> Result<Registers> {
    // SAFETY: --dev-mem is the user's word that the registers of this engine are there, and that
    // no other code drives it.
    unsafe { Registers::from_dev_mem(PhysAddr(addr), WINDOW_BYTES) }
}

/// The engine that has them: polled.
pub(crate) const fn of_registers(registers: Registers, port: Port) -> AnyDevice {
    // SAFETY: as in `attach`, and as in `dev_mem`.
    unsafe { AnyDevice::of_registers(registers, port) }
}

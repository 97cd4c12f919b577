#![allow(unsafe_code, reason = "ENABLE is a bit of a control register")]
//! How the core is stopped: it is disabled, completes its accesses, and resets itself.
//!
//! HWDESC stays as it is: the core waits for the read of a descriptor only where it is set
//! (`axi_dmac_reset_manager.v`, `disabled_all`). Without it the reset comes before the read's
//! answer, which the next list then takes for its own descriptor.

use super::{AxiDmac, regs};
use crate::{
    hw::{Device, wait::poll_every},
    job::{StopProgram, StopStep},
    types::{Error, Result},
};
use core::time::Duration;

/// Between two looks while it waits: no interrupt announces the end of a stop.
const STOP_STEP_US: u32 = 5;
/// How long the kernel's program waits, where this program is gone.
const PROGRAM_US: u32 = 500_000;

/// Does the debug word tell a state? It reads 0 where the core is built without.
pub(super) fn can_be_seen(device: &impl Device) -> Result<()> {
    let state = regs::STATE.read(device);
    if state & regs::STATE_RESERVED != 0 {
        let expected = state & !regs::STATE_RESERVED;
        return Err(Error::WrongDevice { device: "axi_dmac", register: "the debug word at 0x43C", expected, found: state });
    }
    if state == 0 {
        let fix = "build it with DISABLE_DEBUG_REGISTERS = 0, which is the default";
        return Err(Error::Unsupported { what: "without its debug registers nobody sees that this AXI DMAC has stopped", fix });
    }
    Ok(())
}

impl<D: Device> AxiDmac<D> {
    /// Disables the core, and waits until it has reset itself.
    pub(super) fn halt(&self) -> Result<()> {
        halt(&self.device, self.config.stop_us)
    }
}

/// Disables the core behind `device`, and waits until it has reset itself. HWDESC stays.
pub(super) fn halt(device: &impl Device, stop_us: u32) -> Result<()> {
    let mut status = 0;
    let lists = regs::CONTROL.read(device) & regs::HWDESC;
    // SAFETY: a core that is disabled starts nothing.
    unsafe {
        regs::IRQ_MASK.write(device, regs::IRQ_QUEUED | regs::IRQ_ENDED);
        regs::CONTROL.write(device, lists);
    }
    let met = poll_every(device, STOP_STEP_US, Duration::from_micros(stop_us.into()), |device| {
        status = regs::STATE.read(device);
        status & (regs::STATE_BITS | regs::STATE_RESERVED) == regs::STATE_RESET
    })?;
    if met { Ok(()) } else { Err(Error::WillNotStop { device: "axi_dmac", status, waited_us: stop_us }) }
}

/// The same as data.
pub(super) fn program() -> StopProgram {
    StopProgram::new(&[
        StopStep::write(regs::CONTROL.offset(), !regs::HWDESC, 0),
        StopStep::poll_until(regs::STATE.offset(), regs::STATE_BITS | regs::STATE_RESERVED, regs::STATE_RESET, PROGRAM_US),
    ])
    .unwrap_or_default()
}

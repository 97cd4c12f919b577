//! The look of registers that are an mSGDMA's.

use super::{MsgdmaConfig, MsgdmaMode, regs, window::At};
use crate::{
    hw::Device,
    types::{Error, Result},
};

/// Is it this core, as it is said to be built?
pub(super) fn is_msgdma(device: &impl Device, config: &MsgdmaConfig) -> Result<()> {
    config.check(device)?;
    let csr = At(device, config.csr_at);
    let wrong = |register, expected, found| Err(Error::WrongDevice { device: "msgdma", register, expected, found });
    let status = regs::STATUS.read(&csr);
    if status & regs::RESERVED != 0 {
        return wrong("STATUS", status & !regs::RESERVED, status);
    }
    // Descriptors wait, or the core is busy, or it is empty.
    if status & (regs::BUSY | regs::EMPTY) == 0 {
        return wrong("STATUS", status | regs::EMPTY, status);
    }
    if let Some(at) = config.prefetcher_at {
        let found = regs::FETCH_CONTROL.read(&At(device, at));
        if found & regs::FETCH_RESERVED != 0 {
            return wrong("the prefetcher's CONTROL", found & !regs::FETCH_RESERVED, found);
        }
    }
    if config.is_spoilt_by_stop() && regs::CONTROL.read(&csr) & regs::STOP != 0 {
        let fix = "a stop cut a copy of this core, which waits for the answers of writes that it never made: reset it from outside";
        return Err(Error::Setting { name: "mSGDMA's CONTROL", value: regs::CONTROL.read(&csr).into(), fix });
    }
    if regs::COMPONENT_INFO.read(&csr) & regs::COMPONENT_TYPE_BITS != regs::COMPONENT_TYPE {
        return Ok(()); // an older core
    }
    let mode = match config.mode {
        MsgdmaMode::Copy => 0,
        MsgdmaMode::Send => 1,
        MsgdmaMode::Receive => 2,
    } << regs::COMPONENT_MODE.trailing_zeros();
    let extended = if config.extended { regs::COMPONENT_EXTENDED } else { 0 };
    let prefetcher = if config.prefetcher_at.is_some() { regs::COMPONENT_PREFETCHER } else { 0 };
    let (first, second) = (regs::COMPONENT_1.read(&csr), regs::COMPONENT_2.read(&csr));
    let (mask, expected) = (regs::COMPONENT_MODE | regs::COMPONENT_EXTENDED, mode | extended);
    if first & mask != expected {
        return wrong("COMPONENT_CONFIGURATION_1 (mode in bits 17:16, extended in 18)", first & !mask | expected, first);
    }
    if second & regs::COMPONENT_PREFETCHER != prefetcher {
        return wrong("COMPONENT_CONFIGURATION_2 (prefetcher in bit 17)", second & !regs::COMPONENT_PREFETCHER | prefetcher, second);
    }
    Ok(())
}

#![allow(unsafe_code, reason = "a device that may not master the bus is opened as it is")]
//! Registers of a device, by their offsets.

use crate::error::{Refusal, raised};
use contigo::{
    Error, Mmio,
    linux::vfio::{Interrupt, Vfio, VfioDevice},
};

/// The register at `offset`, where there is one.
pub(crate) fn word(registers: &impl Mmio, offset: usize) -> Result<u32, Refusal> {
    inside(registers, offset)?;
    Ok(registers.read32(offset))
}

pub(crate) fn inside(registers: &impl Mmio, offset: usize) -> Result<(), Refusal> {
    let len_bytes = registers.len_bytes();
    if !offset.is_multiple_of(4) || offset >= len_bytes {
        let text = format!(
            "no register is at {offset:#x}: they are at multiples of 4, below {len_bytes:#x}"
        );
        return Err(Refusal::Value(text));
    }
    Ok(())
}

/// The same of a device that the kernel cannot reset, while it may not master the bus.
pub(crate) fn as_it_is(vfio: &Vfio, window: u8, offset: usize) -> Result<u32, Refusal> {
    let mut read = None;
    let look = |device: &mut VfioDevice| {
        read = Some(word(device, offset));
        Err(Error::Busy)
    };
    // SAFETY: `look` never returns Ok, so the device never may master the bus.
    let refused =
        unsafe { VfioDevice::open_unreset(vfio, window, Interrupt::Polled, look) }.map(drop);
    read.unwrap_or_else(|| Err(raised(refused.err().unwrap_or(Error::Busy))))
}

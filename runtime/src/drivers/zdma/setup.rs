#![allow(unsafe_code, reason = "attributes and interrupt masks are registers")]
//! The look of a window that counts as a ZDMA's, and the registers that no job changes.

use super::{Zdma, regs};
use crate::{
    hw::Device,
    types::{Error, Result},
};

/// Is this window large enough for a ZDMA, and zero where a ZDMA is?
pub(super) fn is_zdma(device: &impl Device) -> Result<()> {
    let (need_bytes, have_bytes) = (regs::WINDOW_BYTES, device.len_bytes());
    if have_bytes < need_bytes {
        return Err(Error::RegisterWindow { device: "zdma", need_bytes, have_bytes });
    }
    for (name, register, zeroes) in regs::ZEROES {
        let found = register.read(device);
        if found & zeroes != 0 {
            return Err(Error::WrongDevice { device: "zdma", register: name, expected: found & !zeroes, found });
        }
    }
    Ok(())
}

impl<D: Device> Zdma<D> {
    /// The registers that no job changes, also after a reset from outside. The channel is stopped:
    /// while it is enabled they must not change.
    pub(super) fn configure(&self) -> Result<()> {
        let device = &self.device;
        let (data, descriptors) = match device.port().coherent {
            true => (regs::DATA_COHERENT, regs::DSCR_COHERENT),
            false => (regs::DATA_PLAIN, regs::DSCR_PLAIN),
        };
        // SAFETY: attributes, limits and interrupt masks move no data.
        unsafe {
            regs::CTRL1.write(device, regs::ISSUE_MOST);
            regs::FCI.write(device, 0);
            regs::DATA_ATTR.write(device, data);
            regs::DSCR_ATTR.write(device, descriptors);
            regs::IEN.write(device, regs::INT_DONE | regs::INT_FATAL);
        }
        match regs::DATA_ATTR.read(device) {
            holds if holds == data => Ok(()),
            found => Err(Error::WrongDevice { device: "zdma", register: "ZDMA_CH_DATA_ATTR", expected: data, found }),
        }
    }
}

#![allow(unsafe_code, reason = "an address register is tried")]
//! The look of a window that counts as an AXI CDMA's, and what a core takes.

use super::{AxiCdmaConfig, Keyhole, chain::Transfer, regs};
use crate::{
    hw::Device,
    types::{Error, Result},
};

/// No burst crosses a multiple of this (Arm IHI 0022, A3.4.1).
const BOUNDARY_BYTES: u64 = 4096;

/// Is this window large enough for an AXI CDMA, and zero where one is? Is there such a core?
pub(super) fn check(device: &impl Device, config: &AxiCdmaConfig, keyhole: Option<Keyhole>) -> Result<()> {
    config.check()?;
    if let Some(keyhole) = keyhole {
        keyhole.check(config)?;
    }
    let (need_bytes, have_bytes) = (regs::WINDOW_BYTES, device.len_bytes());
    if have_bytes < need_bytes {
        return Err(Error::RegisterWindow { device: "axi_cdma", need_bytes, have_bytes });
    }
    let looks = [("CDMASR", regs::CDMASR.read(device), regs::CDMASR_ZEROES), ("CDMACR", regs::CDMACR.read(device), regs::CDMACR_ZEROES)];
    for (register, found, zeroes) in looks {
        if found & zeroes != 0 {
            return Err(Error::WrongDevice { device: "axi_cdma", register, expected: found & !zeroes, found });
        }
    }
    Ok(())
}

/// Is scatter-gather built in?
pub(super) fn has_sg(device: &impl Device, config: &AxiCdmaConfig) -> Result<()> {
    if config.lite {
        const LITE: Error =
            Error::Unsupported { what: "an AXI CDMA of the lite kind has no scatter-gather", fix: "open it without memory of its own" };
        return Err(LITE);
    }
    if regs::CDMASR.read(device) & regs::SG_INCLUDED == 0 {
        return Err(Error::Unsupported {
            what: "this AXI CDMA was built without scatter-gather (SGIncld is 0)",
            fix: "open it without memory of its own, or tick Enable Scatter Gather in the block design",
        });
    }
    Ok(())
}

/// Has this core more than 32 address bits, whatever the settings say? Its TAILDESC is then a
/// doorbell in the upper half.
pub(super) fn is_wide(device: &impl Device) -> bool {
    // SAFETY: the core is idle after a reset, and only BTT starts a copy.
    unsafe {
        regs::SA_HIGH.write(device, 1);
        let kept = regs::SA_HIGH.read(device);
        regs::SA_HIGH.write(device, 0);
        kept == 1
    }
}

/// Is this what the core takes? Lengths and alignment were compared with the operands'
/// specifications.
pub(super) fn suits(config: &AxiCdmaConfig, keyhole: Option<Keyhole>, transfer: &Transfer) -> Result<()> {
    let value = transfer.len_bytes as u64;
    if value == 0 {
        return Err(Error::Argument { name: "bytes to copy", value, min: 1, max: config.longest() as u64, multiple_of: 1 });
    }
    let word = config.word_bytes() as u64;
    if keyhole.is_some() && !value.is_multiple_of(word) {
        let max = config.piece_bytes() as u64;
        return Err(Error::Argument { name: "bytes through a keyhole", value, min: word, max, multiple_of: word });
    }
    let sides = [
        ("bytes from operand 0 on, up to the next multiple of 4096,", transfer.from, transfer.from_moves),
        ("bytes from the last operand on, up to the next multiple of 4096,", transfer.to, transfer.to_moves),
    ];
    for (name, addr, moves) in sides {
        let max = BOUNDARY_BYTES - addr % BOUNDARY_BYTES;
        if config.lite && moves && value > max {
            return Err(Error::Argument { name, value, min: 1, max, multiple_of: 1 });
        }
    }
    Ok(())
}

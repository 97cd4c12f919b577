//! Errors, in words.

use super::{
    config::{AxiDmaConfig, Side},
    regs,
};
use crate::types::Error;

/// DMASR says Halted, and no error.
const HALTED_ALONE: &str = "the channel halted by itself; does somebody else drive this core?";
/// RS was set, and Halted stays.
pub(super) const NO_START: &str = "no start: the channel stays halted; is its clock on, and is it out of reset?";

/// A channel's error, or its sibling's: one that fails halts both, and the core holds the other's
/// RS at 0 until its reset (`axi_dma_register.vhd`, `run_stop_clr` and `error_in`). Only the
/// sibling's DMASR, `status`, then tells what it was.
pub(super) fn or_siblings(error: Error, sibling: Side, status: u32) -> Error {
    match error {
        Error::Fault { what: HALTED_ALONE | NO_START, .. } if has_failed(status) => decode(sibling, status, None, None),
        _ => error,
    }
}

/// An error's bit is set; all ones are no status.
pub(super) const fn has_failed(status: u32) -> bool {
    status & regs::ERRORS != 0 && status & regs::RESERVED == 0
}

/// An error's bits of DMASR in words, and where they are about an address: which.
pub(super) fn decode(side: Side, status: u32, buffer: Option<u64>, descriptor: Option<u64>) -> Error {
    let device = side.name();
    let plain = |what| Error::Fault { device, status, what };
    let at = |addr: Option<u64>, what| addr.map_or(plain(what), |addr| Error::FaultAt { device, status, what, addr });
    match status {
        u32::MAX => plain("all ones: the core is gone, or its clock is off"),
        _ if status & regs::SG_DECODE_ERROR != 0 => at(
            descriptor,
            "SGDecErr: the descriptor's address is not memory that the port of the descriptors reaches; wire M_AXI_SG to it, and check the address map",
        ),
        _ if status & regs::SG_SLAVE_ERROR != 0 => {
            at(descriptor, "SGSlvErr: memory answered a descriptor's fetch or its status with an error; check the port of the descriptors")
        }
        _ if status & regs::SG_INTERNAL_ERROR != 0 => at(
            descriptor,
            "SGIntErr: a descriptor was fetched that is complete already; nobody else may drive this core, nor write its descriptors",
        ),
        _ if status & regs::DECODE_ERROR != 0 => at(
            buffer,
            "DMADecErr: the buffer's address is not memory that this port reaches; check the port's offset and the block design's address map",
        ),
        _ if status & regs::SLAVE_ERROR != 0 => {
            at(buffer, "DMASlvErr: memory answered with an error; check that this address is memory, and that its port is enabled")
        }
        _ if status & regs::INTERNAL_ERROR != 0 => plain(match side {
            Side::Mm2s => "DMAIntErr: a length of 0 in the core; compare length_bits with the width of its length register",
            Side::S2mm => {
                "DMAIntErr: a packet is longer than its operand, or never ends; give a longer operand, or TLAST, or compare length_bits with the core"
            }
        }),
        _ => plain(HALTED_ALONE),
    }
}

/// The core's length register dropped bits. `given` and `found`: a length, or a descriptor's
/// control and status.
pub(super) fn cut_length(side: Side, config: &AxiDmaConfig, given: u32, found: u32) -> Error {
    let bytes = |word: u32| u64::from(word & regs::BYTES_MASK);
    Error::LengthCut { device: side.name(), length_bits: config.length_bits, need_bytes: bytes(given), done_bytes: bytes(found) }
}

/// The packet ended, and the rest of the operand's descriptors would take the next one.
pub(super) const fn early_end(status: u32) -> Error {
    let what = "a packet ended before the last descriptor of its operand, whose rest would take the next packet; give an operand of one descriptor";
    Error::Fault { device: Side::S2mm.name(), status, what }
}

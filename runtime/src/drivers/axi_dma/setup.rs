#![allow(unsafe_code, reason = "descriptors are memory that a device fetches")]
//! Memory for descriptors.

use super::{
    config::{AxiDmaConfig, DEPTH_MAX},
    regs,
};
use crate::{
    drivers::ring::{Layout, Ring},
    mem::{CpuBuf, Port},
    types::{Error, Result},
};

/// The most descriptors of a channel: an operand of 16 MiB by pieces of 16 KiB.
const DESCRIPTORS_MAX: usize = 4 * DEPTH_MAX;

const LAYOUT: Layout = Layout { len_bytes: regs::DESCRIPTOR_BYTES, align_bytes: regs::DESCRIPTOR_ALIGN_BYTES, most: DESCRIPTORS_MAX };

/// The circle of a core with scatter-gather; `None` where it has none, and the memory goes back.
pub(super) fn ring(sg: bool, memory: Option<CpuBuf>, port: &Port, config: &AxiDmaConfig) -> Result<Option<Ring>> {
    const NO_MEMORY: Error = Error::Unsupported {
        what: "this AXI DMA has scatter-gather, and needs memory for its descriptors",
        fix: "give it 64 bytes for each, 4096 for 64 of them",
    };
    if !sg {
        return Ok(None);
    }
    let memory = memory.ok_or(NO_MEMORY)?;
    let ring = Ring::new(memory, port, config.address_bits, LAYOUT, config.depth.unwrap_or(1))?;
    // SAFETY: the channel is halted, and no register of it names this memory.
    Ok(Some(unsafe { ring.cleared(regs::STATUS_AT, regs::COMPLETE)? }))
}

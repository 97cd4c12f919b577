#![allow(unsafe_code, reason = "RS and Reset are registers, and devices fetch descriptors")]
//! How a core is found and reset when it is opened, and how its channels are stopped.

use super::config::{AxiDmaConfig, DEPTH_MAX};
use super::regs::{self, Side, is_busy_beside};
use crate::checks::{has_window, reads_zero};
use crate::ring::{Layout, Ring};
use contigo_core::hw::wait::poll_every;
use contigo_core::hw::{self, Device, Mmio, Wait};
use contigo_core::job::{StopProgram, StopStep};
use contigo_core::mem::{CpuBuf, Port};
use contigo_core::types::{Error, Result};
use core::time::Duration;

/// The most descriptors of a channel: an operand of 16 MiB by pieces of 16 KiB.
const DESCRIPTORS_MAX: usize = 4 * DEPTH_MAX;

const LAYOUT: Layout = Layout {
    len_bytes: regs::DESCRIPTOR_BYTES,
    align_bytes: regs::DESCRIPTOR_ALIGN_BYTES,
    most: DESCRIPTORS_MAX,
};

/// The ring of a core with scatter-gather; `None` if it has none, and the memory goes back.
pub(super) fn ring(
    sg: bool,
    memory: Option<CpuBuf>,
    port: &Port,
    config: &AxiDmaConfig,
) -> Result<Option<Ring>> {
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

/// Checks that the core is an AXI DMA with the channels that are wanted, and resets it, whatever
/// drove it before. Returns whether it has scatter-gather.
///
/// # Errors
/// [`Error::RegisterWindow`], [`Error::WrongDevice`], [`Error::WillNotStop`], and
/// [`Error::Unsupported`] where a channel is not built in, or in a way that is not driven.
pub(super) fn found<D: Mmio + Wait>(
    device: &D,
    wanted: &[Side],
    config: &AxiDmaConfig,
) -> Result<bool> {
    config.check()?;
    let end = |side: &Side| side.base() + regs::CHANNEL_BYTES;
    has_window(device, "axi_dma", wanted.iter().map(end).max().unwrap_or(0))?;
    let mut sg = true;
    for side in wanted {
        let at = side.at(device);
        sg &= is_there(&at, *side, config)?;
        reset(&at, *side, config)?;
    }
    Ok(sg)
}

/// The same, for one channel beside another. The core is reset if its sibling has no jobs.
pub(super) fn found_beside(
    device: &impl Device,
    side: Side,
    config: &AxiDmaConfig,
) -> Result<bool> {
    config.check()?;
    let at = side.at(device);
    let sg = is_there(&at, side, config)?;
    let halted = halt(&at, config)?;
    if !halted || !is_busy_beside(device, side) {
        hw::reset_all(device, || reset(&at, side, config))?;
    }
    Ok(sg)
}

/// Returns whether the channel exists and is driven, with scatter-gather or without.
fn is_there(at: &impl Mmio, side: Side, config: &AxiDmaConfig) -> Result<bool> {
    let status = regs::DMASR.read(at);
    reads_zero("axi_dma", "DMASR", status, regs::RESERVED)?;
    // A channel that is not built in reads as 0: it is neither halted nor at work.
    if status == 0 && regs::CONTROL.read(at) == 0 {
        return Err(match side {
            Side::Mm2s => Error::Unsupported {
                what: "this AXI DMA has no MM2S channel",
                fix: "open it with the setting channel=1",
            },
            Side::S2mm => Error::Unsupported {
                what: "this AXI DMA has no S2MM channel",
                fix: "open it with the setting channel=0",
            },
        });
    }
    let sg = status & regs::SG_INCLUDED != 0;
    config.check_built(side, sg)?;
    Ok(sg)
}

/// The time between two polls of a wait: no interrupt announces a stop.
const STOP_STEP_US: u32 = 1;

/// Clears RS and waits for the transfers under way. Returns whether the channel halted without
/// error. One that waits for a packet halts when that has come, so the wait may be in vain.
///
/// # Errors
/// The interrupt's file failed: the channel had no time to halt.
pub(super) fn halt(at: &(impl Mmio + Wait), config: &AxiDmaConfig) -> Result<bool> {
    // SAFETY: a channel that does not run starts nothing.
    unsafe { regs::DMACR.write(at, 0) };
    let mut status = 0;
    let halted =
        poll_every(at, STOP_STEP_US, Duration::from_micros(config.stop_us.into()), |at| {
            status = regs::DMASR.read(at);
            regs::is_halted(status)
        })?;
    Ok(halted && status & regs::ERRORS == 0)
}

/// Resets the whole core by one channel's register, and waits until it is over. The transfers under
/// way end first: a reset is "accomplished gracefully" (PG021, DMACR.Reset).
///
/// # Errors
/// [`Error::WillNotStop`], or that of the interrupt's file.
pub(super) fn reset(at: &(impl Mmio + Wait), side: Side, config: &AxiDmaConfig) -> Result<()> {
    // SAFETY: a core that is reset starts nothing.
    unsafe { regs::DMACR.write(at, regs::RESET) };
    let mut control = 0;
    let over = poll_every(at, STOP_STEP_US, Duration::from_micros(config.stop_us.into()), |at| {
        control = regs::CONTROL.read(at);
        control & regs::RESET == 0 && regs::is_halted(regs::DMASR.read(at))
    })?;
    if over {
        Ok(())
    } else {
        Err(Error::WillNotStop {
            device: side.name(),
            status: control,
            waited_us: 2 * config.stop_us,
        })
    }
}

/// Asks the channels of `sides` to halt, and resets the core if one does not, step by step.
pub(super) fn program(sides: &[Side], config: &AxiDmaConfig) -> StopProgram {
    let (control, status, stop_us) = (regs::DMACR.offset(), regs::DMASR.offset(), config.stop_us);
    let bases = || sides.iter().map(|side| side.base());
    let halted = |base| {
        StopStep::poll_until(base + status, regs::HALTED | regs::RESERVED, regs::HALTED, stop_us)
    };
    let ask = bases().flat_map(|base| [StopStep::write(base + control, u32::MAX, 0), halted(base)]);
    let reset = bases().flat_map(|base| {
        let over = StopStep::poll_until(base + control, regs::RESET, 0, stop_us);
        [StopStep::write(base + control, u32::MAX, regs::RESET), over, halted(base)]
    });
    let program = StopProgram::of(ask).and_then(|ask| ask.or_else(&StopProgram::of(reset)?));
    program.unwrap_or_default()
}

//! AXI DMAC, the DMA controller of Analog Devices' designs: from memory to memory, from memory to a
//! stream or ADI's FIFO, or from one of these to memory.
//!
//! | kind | operand | what | direction |
//! |---|---|---|---|
//! | copy | from | the bytes to copy, all of them | to the device |
//! | | to | where they go; at least as many | from the device |
//! | send | packet | one packet, all of it | to the device |
//! | receive | packet | one packet, from its beginning; longer than the longest that comes | from the device |
//!
//! **The kind is the core's own.** `INTERFACE_DESCRIPTION_1` tells the types of its two sides, and
//! what more is built in is tried: registers that are not there hold nothing ([`DmacFound`]).
//!
//! **Two ways.** [`AxiDmac::open`] writes each job into registers. [`AxiDmac::listed`] writes lists
//! of descriptors into memory of its own, where the core has them, from version 4.5 on. They are
//! for copies and packets out that are longer than a length register holds.
//!
//! **Rows.** A job with four argument words is a 2D transfer: bytes of a row, rows, and the bytes
//! from row to row at the source and at the destination ([`DmacRows`]). Without words it is one
//! row. A receiver from a stream takes one row alone: see [`DmacRows`].
//!
//! **Several jobs in flight:** up to four, which are the core's IDs. The driver holds those back
//! that the core must not have together: see the traps.
//!
//! **Alignment.** An address is a multiple of a burst, `MAX_BYTES_PER_BURST`, so that no burst
//! crosses 4 KiB; 4.5 tells it, and before the setting `burst_bytes` does. A length is a multiple
//! of what the low bits of `X_LENGTH` say. Where a copy's source is wider than its destination it
//! is a multiple of the source's word. Any other length ends a burst before its AWLEN says, and an
//! interconnect may wait for the rest. (ADI's page, "Transfer Length Alignment", asks for the
//! widest word of both, and then relaxes it.)
//!
//! **Reach.** Vivado builds as many address bits as the segments behind the core's masters need: 29
//! where a board has 512 MiB. The core drops what is above, so the driver tries how many there are.
//!
//! **Coherency.** The masters drive AXCACHE as the core was built. A port that is said to snoop,
//! with a core that is built without `CACHE_COHERENT`, is refused.
//!
//! **Clocks.** Three at most: of the registers, of the source, of the destination. One that stands
//! leaves the core in its start or its stop, which is a timeout, then
//! [`Error::WillNotStop`](contigo_core::Error::WillNotStop).
//!
//! # The traps
//! - The DONE bit of an ID stays from four jobs ago until the new one is in the queue: SUBMIT must
//!   have read as 0 before.
//! - A received packet's length is in a report of its own, beside DONE, and reading the ID takes
//!   the report away. Four wait at most; a fifth stops the core.
//! - A packet that fills its buffer has no report. One that is longer looks the same, and its rest
//!   comes next: give buffers that are longer than the longest packet.
//! - Where a packet ends in one of the last three bursts of its buffer, the buffer that is queued
//!   behind may hang. So a buffer goes alone, unless it has three bursts more than the longest
//!   packet, which the setting `packet_bytes` says.
//! - A job of one burst that is queued behind another may get its successor's length: wrong bytes,
//!   also behind its buffer, or no end (`address_generator.v`, `bl_ready`).
//!   The driver lets it go alone, and a receiver's jobs one by one, whose packets may be so short.
//!   It cuts lists so that no last piece is one burst. `single_bursts` says that the core has been
//!   mended.
//! - The core tells four rows apart (`dmac_2d_transfer.v`, `last_req`). With more under way it
//!   tells ends too early, and then writes into buffers that were given back. So more than four
//!   rows are refused, unless they are so long that `fifo_bursts` has no room for four: see
//!   [`DmacConfig`]. A job of shorter rows is alone in the core.
//! - ENABLE at 0 does not end accesses under way, and no documented register tells their end. The
//!   debug word at 0x43C does, and a core without it (`DISABLE_DEBUG_REGISTERS`) is refused.
//! - A burst of one word, of the wider side, has an extra beat behind each ("Known Issues"): it is
//!   refused.
//! - HWDESC at 0 together with ENABLE makes the core forget the read of a descriptor under way. Its
//!   answer goes into the next list, so a stop leaves HWDESC as it is.
//! - AXI errors are not reported: a transfer to where no memory is ends well. The queue gives no
//!   such address.
//! - Cyclic transfers are not used: they never end.
//! - A stop in the middle of a packet leaves its rest in the stream, and no completion reports it.
//!   Throw the first packet after a stop away.
//! - A packet that is sent has ended when its buffer was read. The core may have its last beats.
//!
//! # References
//! Analog Devices' HDL documentation, "AXI DMAC", and `docs/regmap/adi_regmap_dmac.txt`; Linux'
//! `drivers/dma/dma-axi-dmac.c`; the Verilog in `library/axi_dmac`.

mod config;
mod driver;
mod job;
mod jobs;
pub mod regs;

pub use self::{
    config::{DmacConfig, DmacFound, DmacKind},
    driver::AxiDmac,
    job::DmacRows,
};

use contigo_core::{
    hw::Device,
    job::{AnyDriver, DriverRow, Parts},
    types::Result,
};

const SETTINGS: &[&str] = DmacConfig::SETTINGS;

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new(
        "axi_dmac",
        "Analog Devices' AXI DMAC: copies, sends a packet or receives one, as its registers tell; \
         with memory by lists, where it has them",
        open::<D>,
    )
    .settings(SETTINGS)
    // Linux `Documentation/devicetree/bindings/dma/adi,axi-dmac.yaml`.
    .compatible(&["adi,axi-dmac-1.00.a"])
    // ADI's `axi_dmac_ip.tcl` names the parameter.
    .ip(&["axi_dmac"], &[("MAX_BYTES_PER_BURST", "burst_bytes"), ("FIFO_SIZE", "fifo_bursts")])
    // Only where both of its sides are memory.
    .copies()
}

/// # Safety
/// As [`AxiDmac::open`], and where there is memory as [`AxiDmac::listed`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    let config = DmacConfig::from_settings(&parts.settings)?;
    // SAFETY: the caller's promise.
    let driver = unsafe { AxiDmac::open(parts.device, config)? };
    AnyDriver::new(match parts.memory {
        Some(memory) if driver.takes_lists() => driver.with_lists(memory)?,
        _ => driver,
    })
}

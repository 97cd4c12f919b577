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
//! **The kind is the core's own.** `INTERFACE_DESCRIPTION_1` has the types of its two sides. The
//! driver probes what else is built in: absent registers hold nothing ([`DmacFound`]).
//!
//! **Two ways.** [`AxiDmac::open`] writes each job into registers. [`AxiDmac::listed`] writes lists
//! of descriptors to its own memory, if the core supports them, from version 4.5 on. They are for
//! copies and sent packets that are too long for a length register.
//!
//! **Rows.** A job with four argument words is a 2D transfer: bytes of a row, rows, and the bytes
//! from row to row at the source and at the destination ([`DmacRows`]). Without words it is one
//! row. A receiver from a stream takes one row alone: see [`DmacRows`].
//!
//! **Several jobs in flight:** up to four, which are the core's IDs. The driver holds back jobs
//! that the core must not have together: see the traps.
//!
//! **Alignment.** An address is a multiple of a burst, `MAX_BYTES_PER_BURST`, so that no burst
//! crosses 4 KiB; 4.5 reports it; for earlier versions set `burst_bytes`. A length is a multiple of
//! what the low bits of `X_LENGTH` show. If a copy's source is wider than its destination, it is a
//! multiple of the source's word. Any other length ends a burst before its AWLEN says, and an
//! interconnect may wait for the rest. (ADI's page, "Transfer Length Alignment", asks for the
//! widest word of both, and then relaxes it.)
//!
//! **Reach.** Vivado builds as many address bits as the segments behind the core's masters need: 29
//! for a board with 512 MiB. The core drops the others, so the driver probes how many there are.
//!
//! **Coherency.** The core's parameters fix the AXCACHE of its masters. The driver refuses a
//! snooping port for a core built without `CACHE_COHERENT`.
//!
//! **Clocks.** Three at most: of the registers, of the source, of the destination. If one stops,
//! the core never finishes its start or its stop, which is a timeout, then
//! [`Error::WillNotStop`](contigo_core::Error::WillNotStop).
//!
//! # The traps
//! - The DONE bit of an ID stays from four jobs ago until the new one is in the queue: SUBMIT must
//!   have read as 0 before.
//! - A received packet's length is in a report of its own, beside DONE, and reading the ID takes
//!   the report away. At most four wait; a fifth stops the core.
//! - A packet that fills its buffer has no report. A longer one looks the same, and its rest comes
//!   next: use buffers longer than the longest packet.
//! - If a packet ends in one of the last three bursts of its buffer, the next queued buffer may
//!   hang. So a buffer goes alone, unless it is three bursts longer than the longest packet, which
//!   the setting `packet_bytes` has.
//! - A job of one burst that is queued behind another may get its successor's length: wrong bytes,
//!   also beyond its buffer, or no end (`address_generator.v`, `bl_ready`). The driver queues it
//!   alone, and a receiver's jobs one by one, because packets may be that short. It cuts lists so
//!   that no last piece is one burst. Set `single_bursts` for a core without the fault.
//! - The core distinguishes four rows (`dmac_2d_transfer.v`, `last_req`). With more under way it
//!   reports ends too early, and then writes to buffers that were returned. So the driver refuses
//!   more than four rows, unless they are so long that `fifo_bursts` has no room for four: see
//!   [`DmacConfig`]. A job of shorter rows is alone in the core.
//! - ENABLE at 0 does not end accesses under way, and no documented register shows their end. The
//!   debug word at 0x43C does; the driver refuses a core without it (`DISABLE_DEBUG_REGISTERS`).
//! - A burst of one word, of the wider side, has an extra beat after each ("Known Issues"): the
//!   driver refuses it.
//! - HWDESC at 0 together with ENABLE makes the core forget the read of a descriptor under way. Its
//!   answer goes into the next list, so a stop leaves HWDESC as it is.
//! - AXI errors are not reported: a transfer to an address without memory succeeds. The queue
//!   passes no such address.
//! - Cyclic transfers are not used: they never end.
//! - A stop in the middle of a packet leaves its rest in the stream, and no completion reports it.
//!   Discard the first packet after a stop.
//! - A sent packet completes when its buffer was read. The core may still hold its last beats.
//!
//! # References
//! Analog Devices' HDL documentation, "AXI DMAC", and `docs/regmap/adi_regmap_dmac.txt`; Linux'
//! `drivers/dma/dma-axi-dmac.c`; the Verilog in `library/axi_dmac`.

mod config;
mod driver;
mod job;
mod jobs;
mod regs;

pub use self::config::{DmacConfig, DmacFound, DmacKind};
pub use self::driver::AxiDmac;
pub use self::job::DmacRows;

use contigo_core::hw::Device;
use contigo_core::job::{AnyDriver, DriverRow, Parts};
use contigo_core::types::Result;

const SETTINGS: &[&str] = DmacConfig::SETTINGS;

/// Its driver info.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow {
        settings: Some(SETTINGS),
        // Linux `Documentation/devicetree/bindings/dma/adi,axi-dmac.yaml`.
        compatible: &["adi,axi-dmac-1.00.a"],
        // ADI's `axi_dmac_ip.tcl` names the parameter.
        ip: &["axi_dmac"],
        parameters: &[("MAX_BYTES_PER_BURST", "burst_bytes"), ("FIFO_SIZE", "fifo_bursts")],
        // Only if both of its sides are memory.
        copies: true,
        ..DriverRow::new(
            "axi_dmac",
            "Analog Devices' AXI DMAC: copies, sends a packet or receives one, as its registers \
             tell; with memory by lists, where it has them",
            open::<D>,
        )
    }
}

/// # Safety
/// As [`AxiDmac::open`], and with memory as [`AxiDmac::listed`].
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

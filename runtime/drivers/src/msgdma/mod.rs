//! mSGDMA, the Modular Scatter-Gather DMA of Altera's Platform Designer: from memory to memory,
//! from memory to a stream, or from a stream to memory.
//!
//! | mode | operand | what | direction |
//! |---|---|---|---|
//! | copy | from | the bytes to copy, all of them | to the device |
//! | | to | where they go; at least as many | from the device |
//! | send | packet | one packet, all of it | to the device |
//! | receive | packet | one packet, from its beginning; at least the longest that comes | from the device |
//!
//! **Two ways for descriptors.** [`Msgdma::open`] writes each into the descriptor port, 16 bytes of
//! a standard one or 32 of an extended one. [`Msgdma::prefetched`] puts them into memory of its
//! own, where the core's prefetcher fetches them and writes back their results.
//!
//! **The end of a job** comes from the response port, or from the descriptor that the prefetcher
//! wrote back. A core without either (Platform Designer's default for copies) only reports whether
//! it is idle, so all jobs in flight end together. A receiver needs one of the two for the packet's
//! length.
//!
//! **When the bytes are there.** A core that is built with "Enable Write Response" waits until its
//! writes are answered: set `write_responses`. Without it (Platform Designer's default) a job ends
//! when its last write is accepted, and the driver reports the end, or a stop's success,
//! `settle_us` later. The caller guarantees that this is long enough. An event loop then has no
//! file to wait for, because no interrupt announces that this time is over.
//!
//! **Where the ports lie.** CSR, descriptors, responses and prefetcher are four slave ports, and
//! Platform Designer gives each a base address. This driver has one window, and [`MsgdmaConfig`]
//! has the offset of each port in it. On a DE10-Nano all lie behind the lightweight bridge
//! (0xFF20_0000, 2 MiB): one `reg` from the lowest base to the end of the highest port serves all.
//! A device tree with a `reg` for each port (`csr`, `desc`, `resp`) needs a node with one `reg`
//! over all instead.
//!
//! **Alignment and length** follow the core's "Transfer Type", "Data Width" and "Maximum Transfer
//! Length", by default 1 KiB and 32 bits. A job is one descriptor. A longer job is refused.
//!
//! **Coherency.** The masters snoop if their port does, such as the ACP of a Cyclone V; no register
//! of the core shows it.
//!
//! **Clocks.** Only the fabric's clock. If the bridge is off or the fabric is not loaded, a read
//! kills the program, or returns ones, which is [`Error::WrongDevice`] or [`Error::Fault`].
//!
//! **No identity on older cores.** Opening checks the bits of STATUS that read as 0, and that a
//! core without descriptors reports empty. Newer cores have the registers "Component
//! Configuration"; a mode or a descriptor format that differs from the settings is
//! [`Error::WrongDevice`].
//!
//! # The traps
//! - Writing a descriptor's control word starts it, so the driver writes it last.
//! - A write to a full descriptor FIFO makes the processor wait without end. Up to eight
//!   descriptors fit into every core; beyond that, the driver reads STATUS first.
//! - Reading a response's status removes the response, so the driver reads its length first.
//! - BUSY rises two clocks after the go, so a core is idle only if two reads show it.
//! - Bits 23:16 of the control word, which enable the interrupts of errors, are, in a sending core,
//!   the error that it sends. This driver sets them only for a receiver.
//! - A packet that is longer than its buffer ends the buffer's job with "early termination"; its
//!   rest is the next packet. The job is reported as failed, and the others continue.
//! - Without write responses a job ends before its last word is in memory, and a stop before its
//!   writes. With reordering memory, half of all jobs did. See `write_responses`.
//! - STOP in the middle of a copy spoils a core with write responses: it waits for answers to
//!   writes that it never made, and no later job ends. So a stop waits up to `stop_us` for the
//!   descriptor at work. A copy that takes longer is cut, and the core will not stop
//!   ([`Error::WillNotStop`]) until an external reset. A receiver waits as long for its packet, and
//!   is then stopped. If the packet had begun and stalled, the next job may not end: reset the core
//!   externally.
//! - "Early done" is never set: a job would end before its bytes are in memory.
//! - A prefetcher uses old words of a descriptor that becomes owned while it reads it. So no
//!   descriptor becomes owned before RUN has cleared itself (`ring.rs`).
//! - Avalon masters see no memory errors: a copy from an unmapped address succeeds, with wrong
//!   bytes. The queue passes no such address.
//! - A stop in the middle of a packet leaves its rest in the stream, and no completion reports it.
//!   Discard the first packet after a stop.
//! - A sent packet completes when its buffer was read. The core may still hold its last beats.
//!
//! # References
//! Altera's Embedded Peripherals IP User Guide (683130), chapter "Modular Scatter-Gather DMA Core":
//! "Register Map of mSGDMA", "Modular SGDMA Descriptors", "Prefetcher"; Linux'
//! `drivers/dma/altera-msgdma.c`; the HAL of Altera's `altera_msgdma`.

mod config;
mod driver;
mod regs;
mod ring;
mod stop;
mod submit;

pub use self::config::{MsgdmaConfig, MsgdmaMode, MsgdmaTransfer};
pub use self::driver::Msgdma;

use contigo_core::hw::Device;
use contigo_core::job::{AnyDriver, DriverRow, Parts};
use contigo_core::types::{Error, Result};

const SETTINGS: &[&str] = MsgdmaConfig::SETTINGS;

/// Its driver info.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow {
        settings: Some(SETTINGS),
        // Linux `Documentation/devicetree/bindings/dma/altr,msgdma.yaml`.
        compatible: &["altr,socfpga-msgdma"],
        copies: true,
        ..DriverRow::new(
            "msgdma",
            "Altera's mSGDMA: copies operand 0 to operand 1, or with mode=1 \
        sends a packet, with mode=2 receives one; prefetcher_at needs memory",
            open::<D>,
        )
    }
}

/// # Safety
/// As [`Msgdma::open`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    let config = MsgdmaConfig::from_settings(&parts.settings)?;
    AnyDriver::new(match (config.prefetcher_at, parts.memory) {
        // SAFETY: the caller's promise.
        (Some(_), Some(memory)) => unsafe { Msgdma::prefetched(parts.device, config, memory)? },
        (Some(_), None) => {
            return Err(Error::Unsupported {
                what: "a prefetcher needs memory for its descriptors",
                fix: "give the driver memory of its own",
            });
        }
        // SAFETY: the caller's promise.
        (None, _) => unsafe { Msgdma::open(parts.device, config)? },
    })
}

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
//! own, from where the core's prefetcher fetches them, and where it writes back what came of them.
//!
//! **The end of a job** comes from the response port, or from the descriptor that the prefetcher
//! wrote back. A core without either (Platform Designer's default for copies) says only whether it
//! is idle: all jobs in flight end together then. A receiver needs one of the two, because the
//! packet's length comes from there.
//!
//! **When the bytes are there.** A core that is built with "Enable Write Response" waits until its
//! writes are answered: say `write_responses`. Without it (Platform Designer's default) a job ends
//! when its last write is accepted, and the driver tells the end, and that a stop succeeded,
//! `settle_us` later. That is the caller's word. An event loop has no file to wait for then,
//! because no interrupt announces that this time is over.
//!
//! **Where the ports lie.** CSR, descriptors, responses and prefetcher are four slave ports, and
//! Platform Designer gives each a base address. This driver has one window, and [`MsgdmaConfig`]
//! says where in it each port begins. On a DE10-Nano all lie behind the lightweight bridge
//! (0xFF20_0000, 2 MiB): one `reg` from the lowest base to the end of the highest port serves all.
//! A device tree with a `reg` for each port (`csr`, `desc`, `resp`) has windows of their own; they
//! need a node with one `reg` over all.
//!
//! **Alignment and length** follow the core's "Transfer Type", "Data Width" and "Maximum Transfer
//! Length", which are 1 KiB and 32 bits at first. One job is one descriptor. A longer job is
//! refused.
//!
//! **Coherency.** The masters snoop where their port does, the ACP of a Cyclone V; no register of
//! the core tells.
//!
//! **Clocks.** The fabric's clock alone. Where the bridge is off or the fabric is not loaded, a
//! read ends the program, or reads ones, which is
//! [`Error::WrongDevice`] or [`Error::Fault`].
//!
//! **No identity on older cores.** Opening compares the bits of STATUS that read as 0, and that a
//! core without descriptors is empty. Newer cores have the registers "Component Configuration"; a
//! mode or a descriptor format that differs from the settings is
//! [`Error::WrongDevice`].
//!
//! # The traps
//! - The write of a descriptor's control word is the go, so it is the last.
//! - A write to a full descriptor FIFO makes the processor wait without end. Up to eight
//!   descriptors fit into every core; beyond, STATUS is read first.
//! - Reading a response's status takes the response away, so its length is read before.
//! - BUSY rises two clocks after the go: a core is idle only when two looks say so.
//! - Bits 23:16 of the control word, which enable the interrupts of errors, are the error that goes
//!   out where the core sends. This driver sets them only where it receives.
//! - A packet that is longer than its buffer ends the buffer's job, with "early termination"; its
//!   rest is the next packet. The job is reported as failed, and the others go on.
//! - Without write responses a job ends before its last word is in memory, and a stop comes before
//!   writes. Behind memory that reorders, half of all ends did. See `write_responses`.
//! - STOP in the middle of a copy spoils a core with write responses: it waits for answers of
//!   writes that it never made, and no later job ends. So a stop waits for the descriptor at work,
//!   `stop_us` long. A copy that takes longer is cut, and the core will not stop
//!   ([`Error::WillNotStop`]) before it is reset from outside. A
//!   receiver waits for its packet so long too, and is then stopped. Where the packet had begun and
//!   stands still, the next job may not end: reset the core from outside.
//! - "Early done" is never set: a job would end before its bytes are in memory.
//! - A prefetcher takes a descriptor with old words where one becomes owned while it reads. So no
//!   descriptor gets an owner before RUN has cleared itself (`ring.rs`).
//! - Avalon's masters see no error of a memory: a copy from an address where nothing is ends well,
//!   with wrong bytes. The queue gives no such address.
//! - A stop in the middle of a packet leaves its rest in the stream, and no completion reports it.
//!   Throw the first packet after a stop away.
//! - A packet that is sent has ended when its buffer was read. The core may have its last beats.
//!
//! # References
//! Altera's Embedded Peripherals IP User Guide (683130), chapter "Modular Scatter-Gather DMA Core":
//! "Register Map of mSGDMA", "Modular SGDMA Descriptors", "Prefetcher"; Linux'
//! `drivers/dma/altera-msgdma.c`; the HAL of Altera's `altera_msgdma`.

mod config;
mod driver;
pub mod regs;
mod ring;
mod stop;
mod submit;

pub use self::{
    config::{MsgdmaConfig, MsgdmaMode, MsgdmaTransfer},
    driver::Msgdma,
};

use contigo_core::{
    hw::Device,
    job::{AnyDriver, DriverRow, Parts},
    types::{Error, Result},
};

const SETTINGS: &[&str] = MsgdmaConfig::SETTINGS;

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new(
        "msgdma",
        "Altera's mSGDMA: copies operand 0 to operand 1, or with mode=1 \
        sends a packet, with mode=2 receives one; prefetcher_at needs memory",
        open::<D>,
    )
    .settings(SETTINGS)
    // Linux `Documentation/devicetree/bindings/dma/altr,msgdma.yaml`.
    .compatible(&["altr,socfpga-msgdma"])
    .copies()
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

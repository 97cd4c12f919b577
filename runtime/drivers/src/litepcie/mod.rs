//! LitePCIe's DMA: the open PCI Express core of LiteX, on cards like the Acorn, LiteX-M2SDR, and
//! boards of many makers. A reader sends memory of the host to the card's stream, and a writer
//! fills memory from it. Each has a table of descriptors in the card, which the driver fills
//! through registers.
//!
//! [`Litepcie`] is a reader, a writer, or both with the card's own loopback between them. By name,
//! `litepcie` copies through the loopback; with `channel=0` it is the reader, with `channel=1` the
//! writer.
//!
//! | side | operand | bytes | direction |
//! |---|---|---|---|
//! | reader | any | a multiple of the data width, to 16 MiB | to the device |
//! | writer | any | as many | from the device |
//! | loopback | from, to | `n` as above; `n` or more | to, and from the device |
//!
//! The stream has no packets: a writer's job ends when its buffer is full, whatever packets the
//! design sends. (Descriptors that end with a packet do not report its length.)
//!
//! Each design has its own register addresses: put those of `csr.csv` into [`LitepcieConfig`]. On a
//! machine with VFIO the registers are BAR 0 and memory comes from the function (`vfio:ADDRESS`),
//! so an IOMMU blocks access to unmapped memory.
//!
//! # Traps, and how the driver meets them
//! - **A reader counts a descriptor when its last request has left**, and the host answers later.
//!   No register shows that it did. The driver reports the job `settle_us` after it saw the count.
//! - **A writer's count may overtake its writes** if the PHY has separate channels for requests and
//!   answers (`UltraScale` and later). The driver waits as for a reader, and has no stop program.
//!   Keep enough buffers in flight for `settle_us`. If the PHY has one channel (7 series), set
//!   `ordered`: jobs end at once.
//! - **A request must not cross a page**, and the card cuts buffers from their beginning. So an
//!   operand begins at a multiple of 512 bytes, the longest request that LitePCIe has buffers for.
//!   `C5PCIEPHY` (Cyclone V) takes longer ones if the host allows them: there MaxReadReq and
//!   MaxPayload, as `lspci -vv` shows them, must be 512 bytes at most. The other PHYs ensure it.
//! - **Loop mode overwrites buffers that the program reads.** The driver does not use it: the table
//!   runs empty, and the card waits.
//! - **The card reports no errors.** A reader whose request is refused waits for ever, and the
//!   bytes of a writer vanish. The kernel logs the IOMMU's fault. The job ends by its time limit.
//! - A stop in the middle of a job loses the stream's position: bytes that the card had taken are
//!   gone.
//! - A stopped writer discards what the stream sends (`dma.py`: `ready` without `enable`). A
//!   reader's job ends when its bytes have reached the card, which may send them later.
//! - A design whose gateware has no idle bit in `enable` (LitePCIe before it had two bits there)
//!   does not stop: [`Error::WillNotStop`](contigo_core::Error::WillNotStop) when it is opened.
//!
//! This driver was tested with a model, also behind a real kernel's VFIO and IOMMU in an emulated
//! machine (`cargo lab test virt-pcie`), and never with a card.
//!
//! MSI is edge-triggered, and needs no acknowledgement here. An interrupt that is lost costs time.
//!
//! # References
//! LitePCIe, `litepcie/frontend/dma.py`, `litepcie/core/msi.py`, `litepcie/gen.py`, and its kernel
//! driver `litepcie/software/kernel/main.c` with `config.h`. AMD PG213 (and PG156 for
//! `UltraScale`), "Transmit Transaction Ordering".

mod config;
mod descriptors;
mod driver;
mod regs;

pub use self::config::{LitepcieConfig, Side};
pub use self::driver::{Litepcie, LitepcieCore};

use contigo_core::hw::Device;
use contigo_core::job::{AnyCore, AnyDriver, Channels, DriverRow, Parts, Settings};
use contigo_core::types::Result;

const SETTINGS: &[&str] = &[
    "channel",
    "reader_at",
    "writer_at",
    "loopback_at",
    "msi_at",
    "reader_irq",
    "writer_irq",
    "address_bits",
    "data_bits",
    "depth",
    "settle_us",
    "ordered",
    "stop_us",
];

/// Its driver info.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow {
        settings: Some(SETTINGS),
        core: Some(open_core::<D>),
        ..DriverRow::new(
            "litepcie",
            "LitePCIe's DMA: copies operand 0 to operand 1 by the card's \
        loopback; with channel=0 it only sends, with channel=1 it only receives",
            open::<D>,
        )
    }
}

/// # Safety
/// As [`Litepcie::open`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let (side, config) = said(parts.settings)?;
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { Litepcie::open(parts.device, side, config)? })
}

/// The DMA that both sides share.
///
/// # Safety
/// As [`LitepcieCore::open`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
    // SAFETY: the caller's promise.
    AnyCore::new(unsafe { LitepcieCore::open(device)? })
}

#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
impl<D: Device + Send + Sync + 'static> Channels for LitepcieCore<D> {
    unsafe fn open(&self, parts: Parts<'_, ()>) -> Result<AnyDriver> {
        let (side, config) = said(parts.settings)?;
        // SAFETY: the caller's promise: the settings describe the design.
        AnyDriver::new(unsafe { self.channel(side, config)? })
    }

    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Self::reset(self, pull)
    }
}

/// The side that the settings name, and the design.
fn said(settings: Settings<'_>) -> Result<(Side, LitepcieConfig)> {
    settings.only(SETTINGS)?;
    let default = LitepcieConfig::default();
    let number = |name, default| settings.value(name, 0, u32::MAX, default);
    let byte = |name, default: u8| {
        number(name, default.into()).map(|value| u8::try_from(value).unwrap_or(u8::MAX))
    };
    let short = |name, default: u16| {
        number(name, default.into()).map(|value| u16::try_from(value).unwrap_or(u16::MAX))
    };
    let config = LitepcieConfig {
        reader_at: number("reader_at", default.reader_at)?,
        writer_at: number("writer_at", default.writer_at)?,
        loopback_at: number("loopback_at", default.loopback_at)?,
        msi_at: number("msi_at", default.msi_at)?,
        reader_irq: byte("reader_irq", default.reader_irq)?,
        writer_irq: byte("writer_irq", default.writer_irq)?,
        address_bits: byte("address_bits", default.address_bits)?,
        data_bits: short("data_bits", default.data_bits)?,
        depth: short("depth", default.depth)?,
        settle_us: number("settle_us", default.settle_us)?,
        ordered: settings.flag("ordered", default.ordered)?,
        stop_us: number("stop_us", default.stop_us)?,
    };
    let side = match settings.number("channel", 0, 1)? {
        None => Side::Loopback,
        Some(0) => Side::Reader,
        Some(_) => Side::Writer,
    };
    Ok((side, config))
}

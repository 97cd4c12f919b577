//! ZDMA, the general-purpose DMA of Zynq UltraScale+: one channel of GDMA (FPD DMA, 0xFD50_0000) or
//! ADMA (LPD DMA, 0xFFA8_0000). It copies memory to memory.
//!
//! | operand | what | direction |
//! |---|---|---|
//! | from | the bytes to copy, all of them | to the device |
//! | to | where they go; at least as many | from the device |
//!
//! **Two modes.** [`Zdma::simple`] keeps one transfer in registers: up to 1 GiB - 1 B.
//! [`Zdma::linked`] writes a list of descriptors into memory of its own and lets the channel walk
//! it: up to 4 GiB - 1 B.
//!
//! **Several jobs in flight.** In linked mode the driver takes up to eight. It never changes a list
//! that the channel walks: the channel may already have fetched its next descriptor (UG1085,
//! "Buffer Descriptor Summary"), and writes none back to show it. So jobs that come meanwhile wait,
//! chained into one list, which starts when the channel is idle. Linux does the same
//! (`zynqmp_dma_tx_submit`, `zynqmp_dma_start_transfer`). Pausing at a list's end and continuing by
//! CTRL0's CONT would save only the writes of the start addresses. The jobs of one list end
//! together: only an idle channel shows that every write was answered. Linux counts descriptors by
//! IRQ_DST_ACCT instead, but the manuals do not say that their writes are answered in order.
//!
//! **Alignment.** None: a payload may start and end anywhere (UG1085, "DMA Controller Functional
//! Description"). If a copy's end is not a multiple of the bus (16 bytes on GDMA, 8 on ADMA), the
//! channel would read to the end of the bus word. This driver turns that off, so the channel reads
//! no byte of a neighbour, and the last bytes one by one ("Over Fetch"). A length that is a
//! multiple of 16 is therefore a little faster.
//!
//! **Coherency.** GDMA's port never snoops: the FPD DMA is one of the few masters in the processing
//! system that cannot be made I/O coherent (UG1085, "I/O Coherency"). ADMA's snoops if firmware
//! routes it through the CCI and enables its snoops; no channel register shows it. The driver sets
//! the AXI attributes by the [`Device`]'s port, and a port that claims more than the board does
//! corrupts data.
//!
//! **No identity.** No register identifies a ZDMA, or GDMA or ADMA. Opening one compares the bits
//! that read as zero, and stopping it reads back one register that it wrote; another core with the
//! same gaps would pass. So opening one is unsafe: the caller guarantees what the window is.
//!
//! **Clocks.** Linux' own driver turns on the channel's `clk_main` and `clk_apb`
//! (`zynqmp_dma_runtime_resume`); `uio_pdrv_genirq` does not. Something else must turn them on
//! before the registers are touched.
//!
//! # References
//! UG1085, chapter "DMA Controller"; UG1087, module ZDMA; Linux' `drivers/dma/xilinx/zynqmp_dma.c`;
//! embeddedsw's `zdma`.

mod complete;
mod descriptors;
mod driver;
mod regs;
mod submit;

pub use self::driver::Zdma;

use contigo_core::hw::Device;
use contigo_core::job::{AnyDriver, Descriptors, DriverRow, Parts};
use contigo_core::types::Result;

const SETTINGS: &[&str] = &[Descriptors::SETTING];

/// Its driver info.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow {
        settings: Some(SETTINGS),
        // Linux `Documentation/devicetree/bindings/dma/xilinx/xlnx,zynqmp-dma-1.0.yaml`.
        compatible: &["xlnx,zynqmp-dma-1.0"],
        copies: true,
        ..DriverRow::new(
            "zdma",
            "ZynqMP's DMA channel: copies operand 0 to operand 1; with memory of \
        its own by lists of descriptors",
            open::<D>,
        )
    }
}

/// # Safety
/// As [`Zdma::simple`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    AnyDriver::new(match parts.memory {
        // SAFETY: the caller's promise.
        Some(memory) => unsafe { Zdma::linked(parts.device, memory)? },
        // SAFETY: the caller's promise.
        None => unsafe { Zdma::simple(parts.device)? },
    })
}

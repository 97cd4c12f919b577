//! AXI CDMA v4.1, AMD's central DMA: it copies memory to memory, or to and from one fixed address.
//!
//! | driver | operand | what | direction |
//! |---|---|---|---|
//! | [`AxiCdma`] | from | the bytes to copy, all of them | to the device |
//! | | to | where they go; at least as many | from the device |
//! | [`AxiCdmaKeyhole`] | bytes | all that is read from the fixed address, or written to it | one of both |
//!
//! **Three ways.** [`AxiCdma::simple`] keeps one copy in registers. [`AxiCdma::sg`] keeps many in
//! descriptors, in memory of its own. [`AxiCdmaKeyhole`] does either, with one side at a fixed
//! address.
//!
//! **Simple mode in a core with scatter-gather** works only while CDMACR's `SGMode` is 0; with it
//! set, a write of BTT does nothing, and a driver would wait for ever. The bit may change only
//! while the core is idle. This driver resets the core at open and at every stop, so it starts with
//! the bit at 0. CDMASR shows a core without scatter-gather, and [`AxiCdma::sg`] refuses it.
//!
//! **Several jobs in flight.** The driver moves TAILDESC while the core is at work, which only
//! moves the point where it pauses (PG034, "`TAILDESC_PNTR`"). Linux appends only to an idle core,
//! and has a gap after each batch. A copy that is too long for the length field has several
//! descriptors. A core with wide addresses starts on the upper half of TAILDESC; an address
//! register identifies such a core even if the settings do not. While it works the driver writes
//! only the lower half, because between two writes the core may go past its tail.
//!
//! **Lengths.** `length_bits` is 23 by default, which every version has; 26 is for v4.1. No
//! register has the width, and a core with fewer bits drops the upper ones. In simple mode the
//! driver reads BTT back if that could happen; in descriptors it would be silent. A core of the
//! lite kind moves one burst per copy, and crosses no 4 KiB; the driver checks that.
//!
//! **Alignment.** Without the realignment engine (`dre`) both addresses are multiples of a bus
//! word. The reading side fetches whole bus words, and drops the excess bytes. The writing side
//! masks them.
//!
//! **A keyhole is one address,** of a FIFO in the fabric. It is not memory: it has no owner and no
//! operand. It is a setting, and the caller guarantees that there is no memory at it. The only
//! operand is the memory's side. AXI4's fixed bursts have at most 16 beats, so `burst_beats` must
//! not be more. A length is whole bus words, since each beat is one access to the FIFO. A read of a
//! FIFO that stays empty never ends; the job's time limit ends it.
//!
//! **Errors halt the core** until it is reset, which stopping does. A register shows which
//! descriptor failed, but not which of the two addresses caused a decode error.
//!
//! **Stopping** is a reset. Started bursts end first (PG034, "CDMACR", Reset). Jobs that had ended
//! are still reported.
//!
//! **Coherency** is the port's. The descriptors' port, `m_axi_sg`, is separate: if it goes to other
//! memory or past the caches and `m_axi` does not, wire both alike.
//!
//! **Interrupts.** One line. `irq_threshold` and `irq_delay` coalesce, for a program that sleeps.
//! An unconnected line costs only time.
//!
//! **No identity.** No register identifies a CDMA. Opening one checks the bits that read as zero,
//! so all ones reveal an absent core.
//!
//! # References
//! PG034 (v4.1), "Register Space", "Scatter Gather Mode", "Scatter Gather Transfer Descriptor
//! Definition", "CDMA Lite Mode Restrictions", "User Parameters"; Linux'
//! `drivers/dma/xilinx/xilinx_dma.c`; embeddedsw's `axicdma`.

mod complete;
mod config;
mod descriptors;
mod driver;
mod keyhole;
mod regs;

pub use self::config::{AxiCdmaConfig, Keyhole};
pub use self::driver::AxiCdma;
pub use self::keyhole::AxiCdmaKeyhole;

use contigo_core::hw::Device;
use contigo_core::job::{AnyDriver, Descriptors, DriverRow, Parts};
use contigo_core::types::{Error, Result};

const SETTINGS: &[&str] = &[
    Descriptors::SETTING,
    "length_bits",
    "address_bits",
    "data_bits",
    "dre",
    "lite",
    "burst_beats",
    "depth",
    "irq_threshold",
    "irq_delay",
    "stop_us",
    "keyhole_read",
    "keyhole_write",
];

/// Its driver info.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow {
        settings: Some(SETTINGS),
        // Linux `Documentation/devicetree/bindings/dma/xilinx/xilinx_dma.txt`.
        compatible: &["xlnx,axi-cdma-1.00.a"],
        // PG034, "User Parameters".
        ip: &["axi_cdma"],
        parameters: &[
            ("C_ADDR_WIDTH", "address_bits"),
            ("C_M_AXI_DATA_WIDTH", "data_bits"),
            ("C_INCLUDE_DRE", "dre"),
            ("C_USE_DATAMOVER_LITE", "lite"),
            ("C_M_AXI_MAX_BURST_LEN", "burst_beats"),
        ],
        copies: true,
        ..DriverRow::new(
            "axi_cdma",
            "AMD's AXI CDMA: copies operand 0 to operand 1; with memory of its own by descriptors, \
         several at once; with keyhole_read or keyhole_write, an address, one operand",
            open::<D>,
        )
    }
}

/// # Safety
/// As [`AxiCdma::simple`], and with a keyhole as [`AxiCdmaKeyhole::open`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let Parts { device, memory, settings, .. } = parts;
    settings.only(SETTINGS)?;
    let config = AxiCdmaConfig::of(settings)?;
    let (reads, writes) = (
        settings.number("keyhole_read", 0, u64::MAX)?,
        settings.number("keyhole_write", 0, u64::MAX)?,
    );
    let keyhole = match (reads, writes) {
        (None, None) => None,
        (Some(addr), None) => Some(Keyhole::Reads(addr)),
        (None, Some(addr)) => Some(Keyhole::Writes(addr)),
        (Some(_), Some(_)) => {
            return Err(Error::Unsupported {
                what: "an AXI CDMA with a keyhole on both sides would move no memory",
                fix: "give keyhole_read or keyhole_write",
            });
        }
    };
    match (keyhole, memory) {
        (Some(keyhole), memory) => {
            // SAFETY: the caller's promise.
            let opened = unsafe { AxiCdmaKeyhole::open(device, config, keyhole, memory) };
            AnyDriver::new(opened.map_err(|refused| refused.error)?)
        }
        // SAFETY: the caller's promise.
        (None, Some(memory)) => AnyDriver::new(unsafe { AxiCdma::sg(device, config, memory)? }),
        // SAFETY: the caller's promise.
        (None, None) => AnyDriver::new(unsafe { AxiCdma::simple(device, config)? }),
    }
}

//! Any kernel that AMD's Vitis HLS made, described by data: its registers are a
//! [`KernelMap`](contigo_design::kernel::KernelMap).
//!
//! | what | how |
//! |---|---|
//! | operands | the kernel's pointers, in the map's order, each with a direction, an alignment and a rule for its length |
//! | argument words | its scalars in the map's order; one with more than 32 bits takes two words, low first |
//! | [`Completion::words`](contigo_core::Completion) | its results in the map's order: the return value, and outputs |
//! | jobs in flight | 1 with `ap_ctrl_hs`, 2 with `ap_ctrl_chain`; they end in their order |
//!
//! A map is a table in Rust, or what the tools write anyway: JSON, HLS' `x<name>_hw.h`, Vivado's
//! `.hwh` ([`contigo_design::kernel`]).
//!
//! **Lengths.** A kernel trusts its scalars. A rule such as `4*n` in the map refuses a job whose
//! operand is too short. Without a rule, the program claims that every job stays inside its
//! operands.
//!
//! **No errors.** A kernel does not report that a read or a write was answered with an error.
//!
//! **Stopping.** A kernel cannot be aborted. A stop waits for the end of the jobs under way, at
//! most as long as [`ApCtrl::stops_within`] allows; then only the reset line helps.
//!
//! **Auto-restart.** A kernel that a program left with bit 7 of CTRL on runs again and again. It is
//! never idle. Each write of this driver to CTRL turns it off, and stopping begins with such a
//! write. A run that the kernel had begun by itself ends before the driver opens.
//!
//! # References
//! UG1399, "S_AXILITE Control Register Map" and "Block-Level Control Protocols"; the control block
//! that HLS writes (`<kernel>_control_s_axi.v`).

mod driver;
mod regs;

pub use driver::ApCtrl;

use contigo_core::hw::Device;
use contigo_core::job::{AnyDriver, DriverRow, Parts};
use contigo_core::types::{Error, MAX_TIMEOUT, Result, timeout_us};
use contigo_design::kernel;
use core::time::Duration;

const SETTINGS: &[&str] = &["stop_us"];

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow {
        settings: Some(SETTINGS),
        ..DriverRow::new(
            "ap_ctrl",
            "any kernel of Vitis HLS, by its map: JSON, x<name>_hw.h or .hwh; \
        setting stop_us. sim:ap_ctrl is a chain, copy(from, to, n); sim:ap_ctrl_hs is none, and \
        sim:ap_ctrl_gated has a gate at 0x10000",
            open::<D>,
        )
    }
}

/// # Safety
/// As [`ApCtrl::open`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    let map = parts.map.ok_or(Error::Unsupported {
        what: "ap_ctrl needs the map of its kernel",
        fix: "give its JSON, x<name>_hw.h or .hwh",
    })?;
    // SAFETY: the caller's promise.
    let driver = unsafe { ApCtrl::open(parts.device, kernel::any(map, "")?.build()?)? };
    AnyDriver::new(match parts.settings.number("stop_us", 1, timeout_us(MAX_TIMEOUT)?.into())? {
        Some(stop_us) => driver.stops_within(Duration::from_micros(stop_us))?,
        None => driver,
    })
}

//! One driver's row in the table of drivers.

use super::{AnyCore, AnyDriver, Parts};
use crate::types::Result;
use core::fmt;

/// **A driver that every language opens by its name**: a row of the table, built in
/// or a program's own (`names::register`).
///
/// A driver in another crate has a row of its own: a program links both, registers the row, and C
/// and Python open the driver as they open a built-in one.
///
/// ```
/// use contigo::{Result, drivers::zdma::Zdma, job::{AnyDriver, Parts}};
/// use contigo::names::{AnyDevice, DriverRow, register, row};
///
/// /// # Safety
/// /// The device is a ZDMA channel, and no other code drives it.
/// unsafe fn open(parts: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
///     // SAFETY: the caller's promise.
///     AnyDriver::new(unsafe { Zdma::simple(parts.device)? })
/// }
/// static MY_COPIER: DriverRow = DriverRow::new("my-copier", "copies, one job at a time", open);
///
/// register(&MY_COPIER)?;
/// assert_eq!(row("my-copier")?.help, "copies, one job at a time");
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct DriverRow<D> {
    /// Its name.
    pub name: &'static str,
    /// One sentence: what it drives, and what its jobs are.
    pub help: &'static str,
    /// The `compatible` of its node in the device tree, for a program that looks for the device.
    pub compatible: &'static [&'static str],
    /// The names of its settings: others are refused before the device is touched. `None`: the
    /// driver checks them itself. A driver that shares its device lists `channel` too. One whose
    /// memory is a [`DriverBuf`](crate::mem::DriverBuf) lists
    /// [`Descriptors::SETTING`](super::Descriptors::SETTING), and may get coherent memory by it;
    /// if it lists `address_bits`, those that its device drives, they are 32 by default.
    pub settings: Option<&'static [&'static str]>,
    /// The core's names in Vivado's block designs, the third part of a `VLNV`: `axi_dma`.
    pub ip: &'static [&'static str],
    /// Which parameter of a block design is which setting, with the same value:
    /// `("C_SG_LENGTH_WIDTH", "length_bits")`.
    pub parameters: &'static [(&'static str, &'static str)],
    /// How many bytes of memory the driver itself needs; 0: none.
    pub memory_bytes: usize,
    /// Do its jobs copy operand 0 to operand 1, without arguments? Then `contigo selftest` proves
    /// memory, addresses and caches with it.
    pub copies: bool,
    /// Opens the driver.
    ///
    /// # Safety
    /// The device is the one that the driver is for, as it is described, and no other code drives
    /// it while the driver lives.
    pub open: Open<D>,
    /// Opens the core that several drivers of one device share; `None`: a driver has its device to
    /// itself. The setting `channel` chooses one of them (`OpenDevice::take`). The core is opened
    /// and dropped under the device's lock: neither calls the device's handle.
    ///
    /// # Safety
    /// The device is the one that the driver is for, and no other code drives any of it while the
    /// core lives.
    pub core: Option<unsafe fn(D) -> Result<AnyCore>>,
}

/// The function that opens a driver.
type Open<D> = for<'t> unsafe fn(Parts<'t, D>) -> Result<AnyDriver>;

impl<D> Clone for DriverRow<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for DriverRow<D> {}

impl<D> DriverRow<D> {
    /// A row with these, and nothing else. Further fields: `DriverRow { copies: true,
    /// ..DriverRow::new(…) }`.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, open: Open<D>) -> Self {
        Self {
            name,
            help,
            compatible: &[],
            settings: None,
            ip: &[],
            parameters: &[],
            memory_bytes: 0,
            copies: false,
            open,
            core: None,
        }
    }
}

impl<D> fmt::Debug for DriverRow<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverRow")
            .field("name", &self.name)
            .field("memory_bytes", &self.memory_bytes)
            .finish_non_exhaustive()
    }
}

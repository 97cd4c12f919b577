#![allow(unsafe_code, reason = "a caller that lets a device master the bus says that it is quiet")]
//! A PCI function's right to reach memory.

use super::config::{BUS_MASTER, Config};
use crate::types::Error;

/// Turns a PCI function's bus mastering on and off, apart from its registers, for a driver whose
/// device does not stop by itself, and stops here. It comes from
/// [`PciFunction::bus_master`](crate::linux::device::PciFunction::bus_master). It owns no memory,
/// and is part of the lock on the function.
///
/// ```no_run
/// use contigo::{Error, linux::device::{BusMaster, PciFunction}};
/// struct MyDriver {
///     master: BusMaster,
///     // device: impl Device …
/// }
/// impl MyDriver {
///     /// What `Driver::stop` does.
///     fn quiesce(&mut self) -> Result<(), Error> {
///         self.master.disable() // and then reset the device by its registers
///     }
/// }
/// let function = PciFunction::find(0x1234, 0x11E8)?;
/// let mut driver = MyDriver { master: function.bus_master()? };
/// driver.quiesce()?;
/// // SAFETY: `quiesce` has reset it.
/// unsafe { driver.master.enable()? };
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct BusMaster(Config);

impl BusMaster {
    pub(super) const fn new(config: Config) -> Self {
        Self(config)
    }

    /// Lets the function reach memory. Call it once the function's driver has stopped it
    /// ([`Queue::new`](crate::Queue::new) does), and before its first job.
    ///
    /// # Errors
    /// [`Error::Os`] with `pread(config)` or `pwrite(config)`; [`Error::Unexpected`] where
    /// the function does not answer; [`Error::Setting`] where it keeps the bit clear;
    /// [`Error::Contended`].
    ///
    /// # Safety
    /// The function was stopped or reset since any other code drove it. Nothing else stops it:
    /// `uio_pci_generic` only turns bus mastering off. A function whose last program was killed in
    /// a job still has that job's addresses, and would continue there, in memory that has another
    /// owner by now.
    ///
    /// Source: `release` in Linux `drivers/uio/uio_pci_generic.c`; PCI Local Bus Specification 3.0,
    /// 6.2.2, table 6-1, bit 2.
    pub unsafe fn enable(&self) -> Result<(), Error> {
        self.0.change(BUS_MASTER, 0)
    }

    /// Turns bus mastering off, and checks that it stayed off. The function's earlier writes have
    /// arrived, and it reaches no memory from here on, whatever it was doing. Its registers still
    /// show its own state. It may be wedged until it is reset.
    ///
    /// # Errors
    /// As [`enable`](Self::enable). After an error nothing is certain, and memory that the function
    /// may have stays leaked.
    pub fn disable(&self) -> Result<(), Error> {
        self.0.change(0, BUS_MASTER)
    }
}

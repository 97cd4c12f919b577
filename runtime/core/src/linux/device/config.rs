//! The command register in a PCI function's configuration space.
//!
//! One word says what the function may do and masks its interrupt, and it can only be changed by
//! reading it and writing it back. Two threads that did so at once could turn bus mastering on that
//! was just turned off, so one process makes its changes one after the other. The lock on the file
//! keeps other processes away. The kernel changes one bit of it too (`pci_check_and_mask_intx`): at
//! worst an interrupt that was just masked comes once more. Writing one byte would need no lock,
//! but QEMU 7.2 does not unmask an interrupt when only the register's high byte is written.

use crate::linux::os::fd::Fd;
use crate::types::{Error, lock};
use spin::Mutex;

/// Where the command register is, and its bits (PCI Local Bus Specification 3.0, 6.2.2, table 6-1).
const COMMAND: u16 = 4;
pub(super) const MEMORY_SPACE: u16 = 1 << 1;
pub(super) const BUS_MASTER: u16 = 1 << 2;
const INTX_DISABLE: u16 = 1 << 10;
/// What the register reads if the function is absent or asleep: all ones. Bits 11 to 15 of a
/// command register are 0.
const ABSENT: u16 = 0xFFFF;

/// Held from reading the register to having written it, for any function: changes are rare and take
/// a few microseconds.
static CHANGES: Mutex<()> = Mutex::new(());

/// A function's configuration space, and the lock on it.
#[derive(Debug)]
pub(super) struct Config(Fd);

impl Config {
    pub(super) const fn new(file: Fd) -> Self {
        Self(file)
    }

    /// Another descriptor of the same, which holds the same lock.
    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        self.lock().map(Self)
    }

    /// The lock: it holds as long as this descriptor lives.
    pub(super) fn lock(&self) -> Result<Fd, Error> {
        self.0.try_clone().map_err(|errno| Error::Os { call: "fcntl(config)", errno })
    }

    /// Sets and clears bits, and reads them back. When that read is answered, everything that the
    /// function wrote before has arrived: an answer may not pass a posted write (PCI Local Bus
    /// Specification 3.0, 3.2.5).
    pub(super) fn change(&self, set: u16, clear: u16) -> Result<(), Error> {
        let _one_at_a_time = lock::acquire(&CHANGES)?;
        let wanted = (self.read()? | set) & !clear;
        self.write(wanted)?;
        match self.read()? {
            found if (found ^ wanted) & (set | clear) == 0 => Ok(()),
            found => Err(Error::Setting {
                name: "config",
                value: found.into(),
                fix: "the function keeps a bit of its command register as it was: it cannot be \
                 driven from here",
            }),
        }
    }

    /// Unmasks INTx. `uio_pci_generic` masks it when it comes, and has no other way to unmask it.
    pub(super) fn unmask_intx(&self) -> Result<(), Error> {
        let _one_at_a_time = lock::acquire(&CHANGES)?;
        let command = self.read()?;
        self.write(command & !INTX_DISABLE)
    }

    fn read(&self) -> Result<u16, Error> {
        match self
            .0
            .read_u16_at(COMMAND)
            .map_err(|errno| Error::Os { call: "pread(config)", errno })?
        {
            ABSENT => Err(Error::Unexpected { name: "config", value: ABSENT.into() }),
            command => Ok(command),
        }
    }

    fn write(&self, command: u16) -> Result<(), Error> {
        self.0
            .write_u16_at(COMMAND, command)
            .map_err(|errno| Error::Os { call: "pwrite(config)", errno })
    }
}

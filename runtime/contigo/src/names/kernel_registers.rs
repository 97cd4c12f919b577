#![allow(unsafe_code, reason = "files below a root that only a caller of `open_under` can choose")]
//! The registers that the kernel gives to user space: a UIO device's, or a PCI function's.

use super::DeviceName;
use super::attachment::{AnyIrq, Attach, Attachment};
use contigo_core::linux::device::{BusMaster, PciFunction, Registers, Uio, UioIrq};
use contigo_core::mem::Port;
use contigo_core::types::{Error, PhysAddr, lock};
use spin::{Mutex, Once};

/// Registers, and the interrupt that comes with them.
pub(super) enum KernelRegisters {
    Uio(Registers, UioIrq, PhysAddr),
    Pci {
        function: Mutex<PciFunction>,
        master: BusMaster,
        /// The window that was opened first, and its registers.
        bar: Once<(u8, Registers)>,
    },
}

impl KernelRegisters {
    /// The UIO device called `name`, by its number or as [`Uio::find`] finds it.
    #[cfg_attr(feature = "audit", track_caller)]
    pub(super) fn uio(name: &DeviceName, root: &str) -> Result<Self, Error> {
        let uio = match name.number() {
            // SAFETY: the kernel's own files, or `DeviceName::open_under`'s caller promised it.
            Some(index) => unsafe { Uio::open_under(root, index) },
            // SAFETY: as above.
            None => unsafe { Uio::find_under(root, name.argument()) },
        }?;
        Ok(Self::of(uio))
    }

    fn of(uio: Uio) -> Self {
        let addr = uio.first_register();
        let (registers, irq) = uio.into_parts();
        Self::Uio(registers, irq, addr)
    }

    /// The address of its first register, as the kernel reports it.
    pub(super) const fn addr(&self) -> Option<PhysAddr> {
        match self {
            Self::Uio(_, _, addr) => Some(*addr),
            Self::Pci { .. } => None,
        }
    }

    /// The PCI function at `address`.
    pub(super) fn pci(address: &str, root: &str) -> Result<Self, Error> {
        // SAFETY: as in `uio`.
        let function = unsafe { PciFunction::open_under(root, address)? };
        let master = function.bus_master()?;
        Ok(Self::Pci { function: Mutex::new(function), master, bar: Once::new() })
    }

    /// Its registers and its interrupt, for its only driver.
    #[cfg_attr(feature = "audit", track_caller)]
    pub(super) fn attachment(&self, port: &Port, how: Attach) -> Result<Attachment, Error> {
        match self {
            Self::Uio(..) if how.window > 0 => Err(Error::Argument {
                name: "window",
                value: how.window.into(),
                min: 0,
                max: 0,
                multiple_of: 1,
            }),
            Self::Uio(registers, irq, _) => {
                let irq = how.interrupt.then(|| irq.try_clone()).transpose()?;
                // SAFETY: `OpenDevice` gives them to one driver at a time, or to a gate beside it.
                let registers = unsafe { registers.second() };
                Ok(Attachment::Plain { registers, irq: irq.map(AnyIrq::Uio) })
            }
            Self::Pci { function, bar, .. } => {
                let function = lock::acquire(function)?;
                function.refuse_translated(port)?;
                function.enable()?;
                let (window, registers) = match bar.get() {
                    Some(bar) => bar,
                    // The lock is held: no other thread is here.
                    None => {
                        let registers = function.bar(how.window.into())?;
                        bar.call_once(|| (how.window, registers))
                    }
                };
                if *window != how.window {
                    let (value, max) = (how.window.into(), (*window).into());
                    return Err(Error::Argument {
                        name: "window",
                        value,
                        min: max,
                        max,
                        multiple_of: 1,
                    });
                }
                let irq = how.interrupt.then(|| function.uio_irq()).transpose()?;
                // SAFETY: `OpenDevice` gives them to one driver at a time, or to a gate beside it.
                let registers = unsafe { registers.second() };
                Ok(Attachment::Plain { registers, irq: irq.map(AnyIrq::Uio) })
            }
        }
    }

    /// # Safety
    /// As [`BusMaster::enable`].
    pub(super) unsafe fn enable_bus_master(&self) -> Result<(), Error> {
        match self {
            Self::Uio(..) => Ok(()),
            // SAFETY: the caller's promise.
            Self::Pci { master, .. } => unsafe { master.enable() },
        }
    }
}

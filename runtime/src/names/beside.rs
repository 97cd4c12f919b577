#![allow(unsafe_code, reason = "files below a root that only a caller of `open_under` can choose")]
//! The registers that the kernel gives to user space: a UIO device's, a PCI function's, or those beside a guard.

use super::{DeviceName, any_device::Registered, files::Files, found, open_device::Attach};
use crate::{
    linux::device::{BusMaster, PciFunction, Registers, Uio, UioIrq},
    mem::Port,
    types::{Error, PhysAddr, lock},
};
use spin::{Mutex, Once};

/// Registers, and the interrupt that comes with them.
pub(super) enum Beside {
    Uio(Registers, UioIrq, PhysAddr),
    Pci {
        function: Mutex<PciFunction>,
        master: BusMaster,
        /// The window that was asked for first, and its registers.
        bar: Once<(u8, Registers)>,
    },
}

impl Beside {
    /// The UIO device that `name` names, by its number or as [`Uio::find`] finds it.
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
        let addr = uio.addr();
        let (registers, irq) = uio.into_parts();
        Self::Uio(registers, irq, addr)
    }

    /// Where the kernel says that its registers begin.
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

    /// What has the registers of the device that the kernel calls `guard`: the PCI function of that address, or the UIO device whose first
    /// register is there.
    #[cfg_attr(feature = "audit", track_caller)]
    pub(super) fn of_guard(guard: &str) -> Result<Self, Error> {
        const WHAT: &str = "UIO device or PCI function with the registers of this guard";
        let address = address(guard);
        if address.contains(':') {
            return Self::pci(address, "");
        }
        let addr = u64::from_str_radix(address, 16).map_err(|_| Error::NotFound { what: WHAT, among: 0 })?;
        let (files, mut devices, mut found) = (Files { root: "" }, 0, None);
        files.each(found::UIO, &mut |device| {
            devices += 1;
            if files.folder(&[found::UIO, device]).and_then(|folder| found::uio_addr(&folder)) == Some(addr) {
                found = device.strip_prefix("uio").and_then(|index| index.parse().ok());
            }
        });
        Ok(Self::of(Uio::open(found.ok_or(Error::NotFound { what: WHAT, among: devices })?)?))
    }

    pub(super) const fn is_pci(&self) -> bool {
        matches!(self, Self::Pci { .. })
    }

    /// Its registers and its interrupt, for a driver that is the only one.
    #[cfg_attr(feature = "audit", track_caller)]
    pub(super) fn registered(&self, port: &Port, how: Attach, guarded: bool) -> Result<Registered<'_>, Error> {
        match self {
            Self::Uio(..) if how.window > 0 => {
                Err(Error::Argument { name: "window", value: how.window.into(), min: 0, max: 0, multiple_of: 1 })
            }
            Self::Uio(registers, irq, _) => {
                let irq = how.interrupt.then(|| irq.try_clone()).transpose()?;
                Ok(Registered::Plain { registers, irq })
            }
            Self::Pci { function, bar, .. } => {
                let function = lock::acquire(function)?;
                function.refuse_translated(port)?;
                if !guarded {
                    function.enable()?;
                }
                let (window, registers) = match bar.get() {
                    Some(bar) => bar,
                    // The lock is held: nobody else is here.
                    None => {
                        let registers = function.bar(how.window.into())?;
                        bar.call_once(|| (how.window, registers))
                    }
                };
                if *window != how.window {
                    let (value, max) = (how.window.into(), (*window).into());
                    return Err(Error::Argument { name: "window", value, min: max, max, multiple_of: 1 });
                }
                let irq = how.interrupt.then(|| function.uio_irq()).transpose()?;
                Ok(Registered::Plain { registers, irq })
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

/// The address in the kernel's name of a device: `f8003000.dma-port` has one before its dot, and a PCI function's name is one.
pub(super) fn address(device: &str) -> &str {
    if device.contains(':') { device } else { device.split('.').next().unwrap_or(device) }
}

/// Is the device with the kernel's name `device` meant by `name`?
pub(super) fn is_called(device: &str, name: &str) -> bool {
    device == name || address(device) == name
}

/// The kernel's name for the guarded device that is called `name`, by its whole name or its address.
pub(super) fn guard_called(name: &str, root: &str) -> Result<heapless::String<64>, Error> {
    const WHAT: &str = "device that is bound to the kernel module contigo";
    let (mut guards, mut matches, mut found) = (0, 0, heapless::String::new());
    Files { root }.each(found::GUARDS, &mut |guard| {
        guards += 1;
        if is_called(guard, name) {
            matches += 1;
            found = guard.try_into().unwrap_or_default();
        }
    });
    match matches {
        0 => Err(Error::NotFound { what: WHAT, among: guards }),
        1 => Ok(found),
        _ => Err(Error::Ambiguous { what: WHAT, matches }),
    }
}

#![allow(unsafe_code, reason = "files below a root that only a caller of `open_under` can choose")]
//! The registers that the kernel gives to user space: a UIO device's, a PCI function's, or those
//! beside a guard.

use super::{DeviceName, any_device::Attachment, files::Files, found, grammar::is_pci, open_device::Attach};
use crate::{
    linux::device::{BusMaster, PciFunction, Registers, Uio, UioIrq},
    mem::Port,
    types::{Error, PhysAddr, lock},
};
use spin::{Mutex, Once};

/// Registers, and the interrupt that comes with them.
pub(super) enum KernelRegisters {
    Uio(Registers, UioIrq, PhysAddr),
    Pci {
        function: Mutex<PciFunction>,
        master: BusMaster,
        /// The window that was asked for first, and its registers.
        bar: Once<(u8, Registers)>,
    },
}

impl KernelRegisters {
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
        let addr = uio.first_register();
        let (registers, irq) = uio.into_parts();
        Self::Uio(registers, irq, addr)
    }

    /// Where the kernel says that its first register is.
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

    /// The holder of the registers of the device that the kernel calls `guard`: the PCI function of
    /// that address, or the UIO device whose first register is there.
    #[cfg_attr(feature = "audit", track_caller)]
    pub(super) fn of_guard(guard: &str, files: Files<'_>) -> Result<Self, Error> {
        const WHAT: &str = "UIO device or PCI function with the registers of this guard";
        if is_pci(guard) {
            return Self::pci(guard, files.root);
        }
        let addr = first_register(guard);
        let (mut devices, mut matches, mut found) = (0, 0, None);
        files.each(found::UIO, &mut |device| {
            devices += 1;
            if addr.is_some() && files.folder(&[found::UIO, device]).and_then(|folder| found::uio_addr(&folder)) == addr {
                matches += 1;
                found = device.strip_prefix("uio").and_then(|index| index.parse().ok());
            }
        });
        if matches > 1 {
            return Err(Error::Ambiguous { what: WHAT, matches });
        }
        let not_found = Error::NotFound { what: WHAT, among: devices };
        // SAFETY: as in `uio`.
        let uio = unsafe { Uio::open_under(files.root, found.ok_or(not_found)?)? };
        // Its number may be another device's by now.
        if Some(uio.first_register().0) == addr { Ok(Self::of(uio)) } else { Err(not_found) }
    }

    /// Its registers and its interrupt, for a driver that is the only one.
    #[cfg_attr(feature = "audit", track_caller)]
    pub(super) fn attachment(&self, port: &Port, how: Attach, guarded: bool) -> Result<Attachment<'_>, Error> {
        match self {
            Self::Uio(..) if how.window > 0 => {
                Err(Error::Argument { name: "window", value: how.window.into(), min: 0, max: 0, multiple_of: 1 })
            }
            Self::Uio(registers, irq, _) => {
                let irq = how.interrupt.then(|| irq.try_clone()).transpose()?;
                Ok(Attachment::Plain { registers, irq })
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
                Ok(Attachment::Plain { registers, irq })
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

/// The address in the kernel's name of a device of the device tree, `f8003000.dma-port`: the first
/// register's, and then the node's name (Linux `of_device_make_bus_id`). `adc.0` has none: its
/// number comes last.
fn address(device: &str) -> Option<&str> {
    let (address, name) = device.split_once('.')?;
    let is_address = !address.is_empty() && address.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_address && name.starts_with(|letter: char| letter.is_ascii_alphabetic())).then_some(address)
}

/// Where the first register of what the kernel calls `device` is, where that says it.
pub(super) fn first_register(device: &str) -> Option<u64> {
    u64::from_str_radix(address(device)?, 16).ok()
}

/// Is the device with the kernel's name `device` meant by `name`?
pub(super) fn is_called(device: &str, name: &str) -> bool {
    device == name || address(device) == Some(name)
}

/// The kernel's name for the guarded device that is called `name`, by its whole name or its
/// address.
pub(super) fn guard_called(name: &str, files: Files<'_>) -> Result<heapless::String<64>, Error> {
    const WHAT: &str = "device that is bound to the kernel module contigo";
    let (mut guards, mut matches, mut found) = (0, 0, heapless::String::new());
    files.each(found::GUARDS, &mut |guard| {
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

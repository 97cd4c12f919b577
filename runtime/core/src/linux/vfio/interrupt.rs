//! One interrupt of a VFIO device, as an eventfd.

use super::abi::{self, IrqInfo, IrqSet, size_of_u32};
use super::space::os;
use crate::hw::Wait;
use crate::linux::Spin;
use crate::linux::os::fd::Fd;
use crate::linux::os::{Kernel, SystemCalls, ask};
use crate::types::Error;
use nix::libc::EAGAIN;

/// Which interrupt of a device to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Interrupt {
    /// The first that the device has of MSI, MSI-X and INTx; polling where it has none. MSI comes
    /// first because only one vector is enabled here: a device then sends every MSI to it, but of
    /// MSI-X only the table's entry 0.
    Any,
    /// A message, vector 0.
    Msi,
    /// A message of the table in a BAR, entry 0.
    MsiX,
    /// The line.
    Intx,
    /// No interrupt: a pause between two polls, and no system call.
    Polled,
}

impl Interrupt {
    const fn index(self) -> Option<u32> {
        match self {
            Self::Msi => Some(abi::MSI),
            Self::MsiX => Some(abi::MSIX),
            Self::Intx => Some(abi::INTX),
            Self::Any | Self::Polled => None,
        }
    }
}

/// An interrupt that is on, and the eventfd that counts it.
#[derive(Debug)]
pub(super) struct Signal {
    pub(super) kind: Interrupt,
    /// `None` where nothing is waited for.
    event: Option<Fd>,
}

impl Signal {
    /// Turns on what `wanted` says.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the device has no such interrupt; [`Error::Os`].
    pub(super) fn enable(kernel: &Kernel, device: &Fd, wanted: Interrupt) -> Result<Self, Error> {
        let kinds: &[_] = match &wanted {
            Interrupt::Any => &[Interrupt::Msi, Interrupt::MsiX, Interrupt::Intx],
            Interrupt::Polled => &[],
            one => core::slice::from_ref(one),
        };
        for (kind, index) in kinds.iter().filter_map(|kind| Some((*kind, kind.index()?))) {
            let mut info = IrqInfo { argsz: size_of_u32::<IrqInfo>(), index, ..IrqInfo::default() };
            ask(kernel, device, &mut info)
                .map_err(|errno| os("ioctl(VFIO_DEVICE_GET_IRQ_INFO)", errno))?;
            if info.count == 0 || info.flags & IrqInfo::EVENTFD == 0 {
                continue;
            }
            let event = kernel.eventfd().map_err(|errno| os("eventfd", errno))?;
            let set = ask(kernel, device, &mut IrqSet::signal(index, event.raw()));
            set.map_err(|errno| os("ioctl(VFIO_DEVICE_SET_IRQS)", errno))?;
            return Ok(Self { kind, event: Some(event) });
        }
        match wanted {
            Interrupt::Any | Interrupt::Polled => Ok(Self { kind: Interrupt::Polled, event: None }),
            Interrupt::Msi | Interrupt::MsiX | Interrupt::Intx => {
                let fix = "take any that it has, or poll";
                Err(Error::Unsupported { what: "the device has no interrupt of this type", fix })
            }
        }
    }

    /// Turns it off: nothing is sent any more.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub(super) fn disable(&self, kernel: &Kernel, device: &Fd) -> Result<(), Error> {
        let Some(index) = self.kind.index() else { return Ok(()) };
        let off = ask(kernel, device, &mut IrqSet::off(index));
        off.map(drop).map_err(|errno| os("ioctl(VFIO_DEVICE_SET_IRQS)", errno))
    }

    /// The eventfd's number.
    pub(super) fn raw_fd(&self) -> Option<i32> {
        self.event.as_ref().map(Fd::raw)
    }

    /// Waits for the interrupt, at most `timeout_us`: ppoll, a read, and the unmasking of a line.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub(super) fn wait(&self, kernel: &Kernel, device: &Fd, timeout_us: u32) -> Result<(), Error> {
        let Some(event) = &self.event else { return Spin.wait_at_most(timeout_us) };
        self.unmask(kernel, device)?;
        let ready = kernel.wait_readable(event, timeout_us);
        if ready.map_err(|errno| os("ppoll(eventfd)", errno))? { take(event) } else { Ok(()) }
    }

    /// Takes the count, unmasks the next interrupt, and returns the eventfd's number.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub(super) fn arm(&self, kernel: &Kernel, device: &Fd) -> Result<Option<i32>, Error> {
        let Some(event) = &self.event else { return Ok(None) };
        take(event)?;
        self.unmask(kernel, device)?;
        Ok(Some(event.raw()))
    }

    /// VFIO masks the line when it comes (`vfio_intx_handler`); by now the driver has polled the
    /// device, which lowers it. A line that is still up comes again at once.
    fn unmask(&self, kernel: &Kernel, device: &Fd) -> Result<(), Error> {
        if self.kind != Interrupt::Intx {
            return Ok(());
        }
        let unmasked = ask(kernel, device, &mut IrqSet::unmask(abi::INTX));
        unmasked.map(drop).map_err(|errno| os("ioctl(VFIO_DEVICE_SET_IRQS)", errno))
    }
}

/// Takes the eventfd's count, so that the next wait lasts.
fn take(event: &Fd) -> Result<(), Error> {
    match event.take_count() {
        // EAGAIN: nothing came, or another reader of the same descriptor took it.
        Ok(_) | Err(EAGAIN) => Ok(()),
        Err(errno) => Err(os("read(eventfd)", errno)),
    }
}

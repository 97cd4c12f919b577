#![allow(unsafe_code, reason = "poll(2) and read(2) on an eventfd, by its number")]
//! One interrupt of a VFIO device, as an eventfd.

use super::abi::{self, IrqInfo, IrqSet, size_of_u32};
use super::kernel::{Ask as _, Kernel, Request, VfioKernel};
use super::space::os;
use crate::hw::Wait;
use crate::linux::Spin;
use crate::linux::os::fd::Fd;
use crate::types::Error;
use nix::errno::Errno;
use nix::libc;

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
            kernel
                .ask(device, Request::IrqInfo(&mut info))
                .map_err(|errno| os("ioctl(VFIO_DEVICE_GET_IRQ_INFO)", errno))?;
            if info.count == 0 || info.flags & IrqInfo::EVENTFD == 0 {
                continue;
            }
            let event = kernel.eventfd().map_err(|errno| os("eventfd", errno))?;
            let set = kernel.ask(device, Request::SetIrqs(&IrqSet::signal(index, event.raw())));
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
        let off = kernel.ask(device, Request::SetIrqs(&IrqSet::off(index)));
        off.map(drop).map_err(|errno| os("ioctl(VFIO_DEVICE_SET_IRQS)", errno))
    }

    /// The eventfd's number.
    pub(super) fn raw_fd(&self) -> Option<i32> {
        self.event.as_ref().map(Fd::raw)
    }

    /// Waits for the interrupt, at most `timeout_us`.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub(super) fn wait(&self, kernel: &Kernel, device: &Fd, timeout_us: u32) -> Result<(), Error> {
        let Some(event) = &self.event else { return Spin.wait_at_most(timeout_us) };
        self.unmask(kernel, device)?;
        wait_readable(event.raw(), timeout_us)
    }

    /// Takes the count, unmasks the next interrupt, and returns the eventfd's number.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub(super) fn arm(&self, kernel: &Kernel, device: &Fd) -> Result<Option<i32>, Error> {
        let Some(event) = &self.event else { return Ok(None) };
        wait_readable(event.raw(), 0)?;
        self.unmask(kernel, device)?;
        Ok(Some(event.raw()))
    }

    /// VFIO masks the line when it comes (`vfio_intx_handler`); by now the driver has polled the
    /// device, which lowers it. A line that is still up comes again at once.
    fn unmask(&self, kernel: &Kernel, device: &Fd) -> Result<(), Error> {
        if self.kind != Interrupt::Intx {
            return Ok(());
        }
        let unmasked = kernel.ask(device, Request::SetIrqs(&IrqSet::unmask(abi::INTX)));
        unmasked.map(drop).map_err(|errno| os("ioctl(VFIO_DEVICE_SET_IRQS)", errno))
    }
}

/// Waits until the eventfd `fd` counts something, at most `timeout_us`, and takes the count.
fn wait_readable(fd: i32, timeout_us: u32) -> Result<(), Error> {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let (seconds, nanoseconds) = (timeout_us / 1_000_000, timeout_us % 1_000_000 * 1_000);
    #[allow(
        clippy::cast_possible_wrap,
        clippy::useless_conversion,
        reason = "both are below 2^31, whatever the width of time_t is"
    )]
    let timeout =
        libc::timespec { tv_sec: (seconds as i32).into(), tv_nsec: (nanoseconds as i32).into() };
    // SAFETY: both structs live until the call returns, the count says one, and no signal mask is
    // given.
    let ready = unsafe { libc::ppoll(&raw mut poll, 1, &raw const timeout, core::ptr::null()) };
    if ready < 0 {
        // A signal: the caller polls the device, and waits again.
        return if Errno::last() == Errno::EINTR {
            Ok(())
        } else {
            Err(os("ppoll(eventfd)", Errno::last_raw()))
        };
    }
    if ready == 0 {
        return Ok(());
    }
    let mut count = 0_u64;
    // SAFETY: an eventfd's read writes 8 bytes, which the counter has, and it lives until the call
    // returns.
    let read = unsafe { libc::read(fd, (&raw mut count).cast(), size_of::<u64>()) };
    // EAGAIN: another reader of the same descriptor took it.
    if read >= 0 || Errno::last() == Errno::EAGAIN || Errno::last() == Errno::EINTR {
        return Ok(());
    }
    Err(os("read(eventfd)", Errno::last_raw()))
}

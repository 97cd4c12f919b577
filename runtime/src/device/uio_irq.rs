//! An interrupt that comes as something to read from `/dev/uioN`.

use crate::{Error, Irq, Spin, backend::path::Fd};
use nix::libc::{EAGAIN, EIO, ENOSYS};

/// Offset of the command register in PCI configuration space, and the bit that masks INTx (PCI Local Bus Specification 3.0,
/// 6.2.2).
pub(super) const PCI_COMMAND: u16 = 4;
const INTX_DISABLE: u16 = 1 << 10;

/// A UIO device's interrupt. The kernel masks it when it comes, because it cannot know how to silence the device; so each
/// wait unmasks it first.
///
/// It is `AsFd`: an event loop waits for it as for any file. [`arm`](Self::arm) before each wait, and look with
/// [`Running::try_wait`](crate::Running::try_wait) after it:
///
/// ```no_run
/// use contigo::{Error, Uio};
/// use std::{io::Read, os::fd::AsFd};
/// let (_registers, mut irq) = Uio::find("dma-controller@f8003000")?.into_parts();
/// irq.arm()?;
/// let fd = irq.as_fd(); // for poll(2), mio, or tokio's AsyncFd: readable when the interrupt has come
/// # let _ = fd;
/// # Ok::<(), Error>(())
/// ```
///
/// Source: `uio_pdrv_genirq_irqcontrol` in Linux `drivers/uio/uio_pdrv_genirq.c`; `uio_pci_generic.c`, which masks INTx in the
/// function's command register.
#[derive(Debug)]
pub struct UioIrq {
    file: Fd,
    /// Configuration space of the PCI function whose INTx this is.
    config: Option<Fd>,
    interrupts: u64,
}

impl UioIrq {
    pub(super) const fn new(file: Fd, config: Option<Fd>) -> Self {
        Self { file, config, interrupts: 0 }
    }

    /// Unmasks the interrupt, and forgets one that came before. Does not wait.
    ///
    /// # Errors
    /// [`Error::Unsuitable`] where the device has no interrupt: use [`Uio::polled`](crate::Uio::polled), or give its node one.
    /// [`Error::Os`] with what the file says.
    pub fn arm(&mut self) -> Result<(), Error> {
        match self.file.read_u32() {
            Ok(_) => self.interrupts += 1,
            Err(EAGAIN) => {}
            Err(EIO) => return Err(NO_INTERRUPT),
            Err(errno) => return Err(Error::Os { call: "read(/dev/uio)", errno }),
        }
        self.unmask()
    }

    /// How many waits an interrupt has ended so far: 0 after a job that should have raised one means that it gets lost.
    #[must_use]
    pub const fn interrupts(&self) -> u64 {
        self.interrupts
    }

    fn unmask(&self) -> Result<(), Error> {
        if let Some(config) = &self.config {
            let os = |errno| Error::Os { call: "pwrite(config)", errno };
            let command = config.read_u16_at(PCI_COMMAND).map_err(os)?;
            return config.write_u16_at(PCI_COMMAND, command & !INTX_DISABLE).map_err(os);
        }
        match self.file.write(&1_u32.to_ne_bytes()) {
            Ok(()) => Ok(()),
            Err(EIO | ENOSYS) => Err(NO_INTERRUPT),
            Err(errno) => Err(Error::Os { call: "write(/dev/uio)", errno }),
        }
    }

    #[cfg(all(feature = "linux", target_os = "linux"))]
    pub(super) const fn file(&self) -> &Fd {
        &self.file
    }
}

/// The kernel answers EIO for a device without an interrupt, and ENOSYS for one that user space cannot unmask.
const NO_INTERRUPT: Error = Error::Unsuitable {
    name: "/dev/uioN",
    value: 0,
    fix: "the device has no interrupt that user space can unmask: give its node in the device tree one, or wait with Uio::polled",
};

impl Irq for UioIrq {
    fn now_us(&self) -> u64 {
        Spin.now_us()
    }

    fn wait(&mut self, timeout_us: u32) -> Result<(), Error> {
        self.unmask()?;
        if self.file.wait_readable(timeout_us).map_err(|errno| Error::Os { call: "ppoll(/dev/uio)", errno })? {
            match self.file.read_u32() {
                Ok(_) => self.interrupts += 1,
                // Somebody else's read was faster: whoever calls looks at the device anyway.
                Err(EAGAIN) => {}
                Err(errno) => return Err(Error::Os { call: "read(/dev/uio)", errno }),
            }
        }
        Ok(())
    }
}

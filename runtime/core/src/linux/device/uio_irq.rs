//! An interrupt that comes as something to read from `/dev/uioN`.

use super::config::Config;
use crate::hw::Wait;
use crate::linux::Spin;
use crate::linux::os::fd::Fd;
use crate::types::Error;
use crate::types::platform::{AsFd, BorrowedFd};
use core::sync::atomic::{AtomicUsize, Ordering};
use nix::libc::{EAGAIN, EIO, ENOSYS};

/// A UIO device's interrupt. The kernel masks it when it comes, because it cannot know how to
/// silence the device; so each wait unmasks it first.
///
/// # In an event loop
/// It is `AsFd`: poll(2), `mio` and tokio's `AsyncFd` wait for it as for any file. The driver owns
/// the interrupt, so the loop uses a second handle ([`try_clone`](Self::try_clone)). The order
/// matters: [`arm`](Self::arm) **first**, then poll ([`Queue::try_next`](crate::Queue::try_next)),
/// then sleep. `arm` discards an interrupt that came before it, and the poll finds that job; an
/// interrupt after `arm` ends the sleep.
///
/// ```no_run
/// use contigo::{Align, Bus, Error, Port, Queue, Region, drivers::zdma::Zdma, hw::Wired};
/// use contigo::linux::{device::Uio, memory::UDmaBuf};
/// use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
/// use std::os::fd::AsFd;
/// const GDMA: Port = Port { name: "gdma", bus: Bus::Soc, offset: 0, addr_bits: 40, window: (0, (1 << 40) - 1), coherent: false };
/// let region = Region::new(UDmaBuf::open("udmabuf0")?)?;
/// let (from, to) = (region.alloc(4096, Align::PAGE)?, region.alloc(4096, Align::PAGE)?);
/// let (registers, irq) = Uio::find("dma@fd500000")?.into_parts();
/// let bell = irq.try_clone()?;
/// // SAFETY: GDMA's master reaches memory so, and no IOMMU is on.
/// let device = unsafe { Wired::new(registers, irq, GDMA) };
/// // SAFETY: GDMA's channel 0 is at 0xFD50_0000 (UG1087), and nothing else drives it.
/// let mut queue = Queue::new(unsafe { Zdma::simple(device)? }, 1)?;
///
/// queue.submit([from.to_device(..), to.from_device(..)], &[])?;
/// let mut sleeps_left = 8; // a bound: an accelerator that says nothing must not hang its user
/// let [_, to] = loop {
///     bell.arm()?;
///     if let Some(done) = queue.try_next()? {
///         break done.buffers;
///     }
///     if sleeps_left == 0 {
///         return queue.clear(); // stops the device
///     }
///     sleeps_left -= 1;
///     poll(&mut [PollFd::new(bell.as_fd(), PollFlags::POLLIN)], PollTimeout::from(20_u8)) // and the loop's other files
///         .map_err(|errno| Error::Os { call: "poll", errno: errno as i32 })?;
/// };
/// println!("{:?}", to.view::<i32>()?);
/// # Ok::<(), Error>(())
/// ```
///
/// Source: `uio_pdrv_genirq_irqcontrol` in Linux `drivers/uio/uio_pdrv_genirq.c`;
/// `uio_pci_generic.c`, which masks INTx in the function's command register.
#[derive(Debug)]
pub struct UioIrq {
    file: Fd,
    /// The configuration space of the PCI function whose INTx this is.
    config: Option<Config>,
    interrupts: AtomicUsize,
}

impl UioIrq {
    /// `file` is non-blocking.
    pub(super) const fn new(file: Fd, config: Option<Config>) -> Self {
        Self { file, config, interrupts: AtomicUsize::new(0) }
    }

    /// A second handle on the same interrupt, for an event loop: what one handle reads or unmasks
    /// is read and unmasked for the other too. Each keeps the device open, and so its lock.
    ///
    /// # Errors
    /// [`Error::Os`] with `fcntl(/dev/uio)`: this process has too many files.
    pub fn try_clone(&self) -> Result<Self, Error> {
        let file =
            self.file.try_clone().map_err(|errno| Error::Os { call: "fcntl(/dev/uio)", errno })?;
        Ok(Self::new(file, self.config.as_ref().map(Config::try_clone).transpose()?))
    }

    /// Discards an interrupt that came before, and unmasks. Does not wait.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the device has no interrupt: use
    /// [`Uio::polled`](crate::linux::device::Uio::polled), or give its node one. [`Error::Os`] with
    /// the file's errno; with `write(/dev/uio)` and EINVAL the device is gone.
    pub fn arm(&self) -> Result<(), Error> {
        self.take()?;
        self.unmask()
    }

    /// How many interrupts this handle took, by a wait or [`arm`](Self::arm): 0 after a job that
    /// should have raised one means that it got lost. On a processor of 32 bits it wraps at 2³².
    #[must_use]
    pub fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::Relaxed) as u64
    }

    /// Reads the count, where there is something new.
    fn take(&self) -> Result<(), Error> {
        match self.file.read_u32() {
            Ok(_) => {
                self.interrupts.fetch_add(1, Ordering::Relaxed);
            }
            // Nothing new, or the other handle's read was faster: the caller polls the device
            // anyway.
            Err(EAGAIN) => {}
            Err(EIO) => return Err(NO_INTERRUPT),
            Err(errno) => return Err(Error::Os { call: "read(/dev/uio)", errno }),
        }
        Ok(())
    }

    fn unmask(&self) -> Result<(), Error> {
        if let Some(config) = &self.config {
            return config.unmask_intx();
        }
        match self.file.write(&1_u32.to_ne_bytes()) {
            Ok(()) => Ok(()),
            Err(EIO) => Err(NO_INTERRUPT),
            Err(errno @ ENOSYS) => Err(Error::Denied {
                what: "unmasking the interrupt",
                errno,
                fix: "its driver in the kernel has no irqcontrol: use Uio::polled",
            }),
            Err(errno) => Err(Error::Os { call: "write(/dev/uio)", errno }),
        }
    }
}

/// The kernel answers EIO for a device without an interrupt, and for one that is gone while its
/// file is open.
pub(super) const NO_INTERRUPT: Error = Error::Unsupported {
    what: "/dev/uioN: the device has no interrupt",
    fix: "give its node in the device tree one, or its PCI function a line, or poll",
};

impl Wait for UioIrq {
    fn now_us(&self) -> u64 {
        Spin.now_us()
    }

    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
        self.unmask()?;
        match self.file.wait_readable(timeout_us) {
            Ok(true) => self.take(),
            Ok(false) => Ok(()),
            Err(EIO) => Err(NO_INTERRUPT),
            Err(errno) => Err(Error::Os { call: "ppoll(/dev/uio)", errno }),
        }
    }

    fn arm_irq(&self) -> Result<Option<i32>, Error> {
        self.arm()?;
        Ok(Some(self.file.raw()))
    }
}

impl AsFd for UioIrq {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
#[allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; a socket becomes an `Fd`"
)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    /// An interrupt, and the kernel's end of it.
    fn pair() -> (UioIrq, UnixStream) {
        let (ours, kernels) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        kernels.set_nonblocking(true).unwrap();
        // SAFETY: its owner has just given it up.
        (UioIrq::new(unsafe { Fd::from_raw(ours.into_raw_fd()) }, None), kernels)
    }

    /// How often the interrupt was unmasked, each time by a word that is 1.
    fn unmasked(kernels: &mut UnixStream) -> usize {
        let mut written = [0; 64];
        match kernels.read(&mut written) {
            Ok(count) => {
                assert!(
                    count.is_multiple_of(4)
                        && written[..count].chunks(4).all(|word| word == 1_u32.to_ne_bytes())
                );
                count / 4
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_wait_unmasks_and_takes_the_interrupt() {
        let (irq, mut kernels) = pair();
        let start = Instant::now();
        assert_eq!(irq.wait_at_most(20_000), Ok(()));
        let waited = start.elapsed();
        assert!(
            (Duration::from_millis(20)..Duration::from_secs(10)).contains(&waited),
            "it ends on time, and not before: {waited:?}"
        );
        assert_eq!((irq.interrupts(), unmasked(&mut kernels)), (0, 1));
        kernels.write_all(&7_u32.to_ne_bytes()).unwrap();
        let start = Instant::now();
        assert_eq!(irq.wait_at_most(60_000_000), Ok(()));
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "the interrupt ends it: {:?}",
            start.elapsed()
        );
        assert_eq!((irq.interrupts(), unmasked(&mut kernels)), (1, 1));
    }

    #[test]
    fn arm_forgets_what_came_and_does_not_wait() {
        let (irq, mut kernels) = pair();
        assert_eq!((irq.arm(), irq.interrupts(), unmasked(&mut kernels)), (Ok(()), 0, 1));
        kernels.write_all(&1_u32.to_ne_bytes()).unwrap();
        assert_eq!(irq.file.wait_readable(0), Ok(true));
        assert_eq!((irq.arm(), irq.interrupts(), unmasked(&mut kernels)), (Ok(()), 1, 1));
        assert_eq!(irq.file.wait_readable(0), Ok(false));
    }

    #[test]
    fn two_handles_have_one_interrupt() {
        let (irq, mut kernels) = pair();
        let bell = irq.try_clone().unwrap();
        kernels.write_all(&1_u32.to_ne_bytes()).unwrap();
        assert_eq!((bell.arm(), bell.interrupts()), (Ok(()), 1));
        // The other one finds nothing, which is no error.
        assert_eq!((irq.take(), irq.interrupts()), (Ok(()), 0));
        drop(irq);
        assert_eq!((bell.arm(), unmasked(&mut kernels)), (Ok(()), 2));
    }

    #[test]
    fn a_file_that_is_broken_has_no_interrupt() {
        let (irq, kernels) = pair();
        drop(kernels);
        assert_eq!(irq.take(), Err(NO_INTERRUPT), "only its end can be read");
        // man 2 poll: the write end has an error when the read end is closed; nothing to read is no
        // error.
        let (reader, writer) = std::io::pipe().unwrap();
        // SAFETY: as in `pair`.
        let [reader, writer] =
            [reader.into_raw_fd(), writer.into_raw_fd()].map(|raw| unsafe { Fd::from_raw(raw) });
        assert_eq!((reader.wait_readable(0), writer.wait_readable(0)), (Ok(false), Ok(false)));
        drop(reader);
        assert_eq!(writer.wait_readable(0), Err(EIO));
        // man 2 write: EPIPE, with a signal that Rust's runtime ignores.
        assert_eq!(
            irq.wait_at_most(0),
            Err(Error::Os { call: "write(/dev/uio)", errno: nix::libc::EPIPE })
        );
    }
}

//! An interrupt that is waited for outside of the engine, as an event loop does.

use contigo::{Error, Result, names::AnyDevice};
use core::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

/// An interrupt line that a run waits for before it looks at the engine. An engine that is done at
/// the first look, as QEMU's are that copy inside the doorbell's register access, would never be
/// waited for otherwise.
pub trait Events: fmt::Debug {
    /// Makes ready for the interrupt of the next job; earlier interrupts are forgotten.
    ///
    /// # Errors
    /// An error of the interrupt's file.
    fn arm(&self) -> Result<()>;

    /// Waits until the interrupt has come, at most for `timeout`.
    ///
    /// # Errors
    /// [`Error::Timeout`], or an error of the interrupt's file.
    fn wait(&self, timeout: Duration) -> Result<()>;
}

/// The interrupt of a UIO device, by a second descriptor of its file.
///
/// Source: Linux `Documentation/driver-api/uio-howto.rst`: a write of 1 unmasks, a read of 4 bytes
/// is the count so far.
#[derive(Debug)]
pub struct UioEvents {
    file: File,
    came: AtomicU64,
}

impl UioEvents {
    /// For the UIO file behind `fd`, which is opened not to block (`Uio` does that).
    ///
    /// # Errors
    /// [`Error::Os`] where no descriptor is left.
    pub fn new(fd: BorrowedFd<'_>) -> Result<Self> {
        let fd = fd.try_clone_to_owned().map_err(|error| os("dup(/dev/uio)", &error))?;
        Ok(Self { file: fd.into(), came: AtomicU64::new(0) })
    }

    /// Of a device that has one.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(device: &AnyDevice<'_>) -> Result<Option<Self>> {
        device.uio_irq()?.map(|irq| Self::new(irq.as_fd())).transpose()
    }

    /// How many interrupts were waited for, and came.
    pub fn came(&self) -> u64 {
        self.came.load(Ordering::Relaxed)
    }

    /// Takes the count, if there is a new one.
    fn take(&self) -> Result<bool> {
        match (&self.file).read(&mut [0; size_of::<u32>()]) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(os("read(/dev/uio)", &error)),
        }
    }
}

impl Events for UioEvents {
    fn arm(&self) -> Result<()> {
        self.take()?;
        (&self.file).write_all(&1_u32.to_ne_bytes()).map_err(|error| os("write(/dev/uio)", &error))
    }

    fn wait(&self, timeout: Duration) -> Result<()> {
        let timeout_us = contigo::timeout_us(timeout)?;
        let limit = PollTimeout::try_from(timeout_us.div_ceil(1_000)).unwrap_or(PollTimeout::MAX);
        let mut files = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        match poll(&mut files, limit) {
            Ok(0) => Err(Error::Timeout { timeout_us }),
            Ok(_) => {
                self.came.fetch_add(self.take()?.into(), Ordering::Relaxed);
                Ok(())
            }
            Err(errno) => Err(Error::Os { call: "poll(/dev/uio)", errno: errno as i32 }),
        }
    }
}

fn os(call: &'static str, error: &std::io::Error) -> Error {
    Error::Os { call, errno: error.raw_os_error().unwrap_or(Errno::EIO as i32) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io, os::unix::net::UnixStream};

    const SHORT: Duration = Duration::from_millis(20);

    /// A socket stands for the UIO file: what is written on one end is read on the other.
    #[test]
    fn an_interrupt_is_waited_for_and_an_old_one_forgotten() -> io::Result<()> {
        let (file, mut kernel) = UnixStream::pair()?;
        file.set_nonblocking(true)?;
        let events = UioEvents::new(file.as_fd()).map_err(io::Error::other)?;
        let count = |number: u32| number.to_ne_bytes();
        let mut unmasked = [0; 4];

        assert_eq!(events.arm(), Ok(()));
        kernel.read_exact(&mut unmasked)?;
        assert_eq!(u32::from_ne_bytes(unmasked), 1);
        assert_eq!(events.wait(SHORT), Err(Error::Timeout { timeout_us: 20_000 }));
        kernel.write_all(&count(1))?;
        assert_eq!((events.wait(SHORT), events.came()), (Ok(()), 1));

        // One that comes before it is armed is not the next job's.
        kernel.write_all(&count(2))?;
        assert_eq!(events.arm(), Ok(()));
        assert_eq!((events.wait(SHORT).is_err(), events.came()), (true, 1));
        Ok(())
    }
}

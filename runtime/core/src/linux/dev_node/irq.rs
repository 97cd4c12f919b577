//! A contigo device's interrupts.

use super::abi::{EventFd, MAX_INTERRUPTS, Unmask};
use super::{DevNode, calls, os};
use crate::hw::Wait;
use crate::linux::Spin;
use crate::linux::os::SystemCalls;
use crate::linux::os::fd::Fd;
use crate::types::platform::{AsFd, BorrowedFd};
use crate::types::{Error, lock};
use core::sync::atomic::{AtomicUsize, Ordering};
use nix::libc::EAGAIN;
use spin::Once;

/// The eventfds of interrupts that were asked for.
pub(super) type Events = [Once<Fd>; MAX_INTERRUPTS];

/// One interrupt of a contigo device: [`DevNode::irq`](crate::linux::dev_node::DevNode::irq). The
/// kernel masks it when it comes, so each wait unmasks it first. A wait is one system call
/// (`CONTIGO_WAIT`), where a [`UioIrq`](crate::linux::device::UioIrq) needs three.
///
/// It is `AsFd`, for poll(2) and event loops, in the same order as there: [`arm`](Self::arm) first,
/// then poll, then sleep. The descriptor is the contigo device's own where the device has one
/// interrupt, and an eventfd for each where it has several. Either wakes the waiter when the device
/// is taken away.
///
/// ```no_run
/// use contigo::{Bus, Port, Queue, drivers::zdma::Zdma, hw::Wired, linux::dev_node::DevNode};
/// /// UG1085, "I/O Coherency".
/// const GDMA: Port = Port { name: "gdma", bus: Bus::Soc, offset: 0, addr_bits: 40, window: (0, (1 << 40) - 1), coherent: false };
/// let dev_node = DevNode::open("fd500000.dma-controller")?;
/// // SAFETY: GDMA's master reaches memory so; the module says whether an IOMMU is on.
/// let device = unsafe { Wired::new(dev_node.registers(0)?, dev_node.irq(0)?, dev_node.seen_through(GDMA)) };
/// // SAFETY: GDMA's channel 0 is at 0xFD50_0000 (UG1087), and nothing else drives it.
/// let queue = Queue::new(unsafe { Zdma::simple(device)? }, 1)?;
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct DevNodeIrq {
    dev_node: DevNode,
    interrupt: u32,
    interrupts: AtomicUsize,
}

impl DevNode {
    /// Interrupt `interrupt`, from 0. Each call returns one more handle on it, for an event loop
    /// beside a driver: what one handle reads or unmasks is read and unmasked for the other too.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: the device has none; poll it. [`Error::Argument`]: it has fewer.
    /// [`Error::Os`] with `eventfd` or `ioctl(CONTIGO_SET_EVENTFD)`. [`Error::Contended`]: another
    /// thread has been asking for one for a second.
    pub fn irq(&self, interrupt: u32) -> Result<DevNodeIrq, Error> {
        const NONE: Error = Error::Unsupported {
            what: "the device has no interrupt",
            fix: "give its node in the device tree one, or poll",
        };
        let max = u64::from(self.0.info.interrupts.checked_sub(1).ok_or(NONE)?);
        let no_such = Error::Argument {
            name: "interrupt",
            value: interrupt.into(),
            min: 0,
            max,
            multiple_of: 1,
        };
        let place = self
            .0
            .events
            .get(interrupt as usize)
            .filter(|_| u64::from(interrupt) <= max)
            .ok_or(no_such)?;
        // Reading the file takes what came of every interrupt: only for a device with one.
        if max > 0 {
            self.make_event(place, interrupt)?;
        }
        Ok(DevNodeIrq { dev_node: self.clone(), interrupt, interrupts: AtomicUsize::new(0) })
    }

    /// Puts the eventfd of `interrupt` at `place`, if there is none. `Once` would spin without a
    /// bound while another thread makes it.
    fn make_event(&self, place: &Once<Fd>, interrupt: u32) -> Result<(), Error> {
        if place.get().is_none() {
            let _one = lock::acquire(&self.0.making)?;
            if place.get().is_none() {
                let event = self.signalled(interrupt)?;
                place.call_once(|| event);
            }
        }
        Ok(())
    }

    /// A new eventfd, where the kernel signals `interrupt`.
    fn signalled(&self, interrupt: u32) -> Result<Fd, Error> {
        let event = self.0.kernel.eventfd().map_err(|errno| os("eventfd", errno))?;
        self.0
            .ask(&mut EventFd { interrupt, fd: event.raw() })
            .map_err(|errno| os("ioctl(CONTIGO_SET_EVENTFD)", errno))?;
        Ok(event)
    }
}

impl DevNodeIrq {
    /// Discards an interrupt that came before, and unmasks. Does not wait.
    ///
    /// # Errors
    /// [`Error::Os`] with `ioctl(CONTIGO_WAIT)`, `read(eventfd)` or `ioctl(CONTIGO_UNMASK)`:
    /// ENODEV, the device was taken away.
    pub fn arm(&self) -> Result<(), Error> {
        self.wait(0)?;
        // A bell for what was counted now, or by an earlier wait.
        match self.event().map(Fd::take_count) {
            None | Some(Ok(_) | Err(EAGAIN)) => {}
            Some(Err(errno)) => return Err(os("read(eventfd)", errno)),
        }
        self.dev_node
            .0
            .ask(&mut Unmask { interrupts: 1 << self.interrupt, reserved: 0 })
            .map_err(|errno| os("ioctl(CONTIGO_UNMASK)", errno))
    }

    /// How many interrupts this handle took, by a wait or [`arm`](Self::arm): 0 after a job that
    /// should have raised one means that it got lost. On a processor of 32 bits it wraps at 2³².
    #[must_use]
    pub fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::Relaxed) as u64
    }

    /// Another handle on the same interrupt. Of two that wait for it at the same time, one returns
    /// it; the other sleeps on.
    pub fn second(&self) -> Self {
        Self {
            dev_node: self.dev_node.clone(),
            interrupt: self.interrupt,
            interrupts: AtomicUsize::new(0),
        }
    }

    /// The interrupt's eventfd, on a device with several interrupts.
    fn event(&self) -> Option<&Fd> {
        self.dev_node.0.events.get(self.interrupt as usize)?.get()
    }

    fn file(&self) -> &Fd {
        self.event().unwrap_or(&self.dev_node.0.file)
    }

    /// Unmasks, and waits at most for `timeout_us`; 0 takes what came, and unmasks nothing.
    fn wait(&self, timeout_us: u32) -> Result<(), Error> {
        let dev_node = &self.dev_node.0;
        let came = calls::wait(&dev_node.kernel, &dev_node.file, 1 << self.interrupt, timeout_us)
            .map_err(|errno| os("ioctl(CONTIGO_WAIT)", errno))?;
        if came != 0 {
            self.interrupts.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Wait for DevNodeIrq {
    fn now_us(&self) -> u64 {
        Spin.now_us()
    }

    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
        self.wait(timeout_us)
    }

    fn arm_irq(&self) -> Result<Option<i32>, Error> {
        self.arm()?;
        Ok(Some(self.file().raw()))
    }
}

impl AsFd for DevNodeIrq {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file().as_fd()
    }
}

#![allow(
    unsafe_code,
    reason = "a device behind a counter is the same device: its promises are passed on"
)]
//! An engine's interrupt: waited for outside of the engine, as an event loop does, or counted.

use contigo::hw::poll_until;
use contigo::names::{AnyDevice, AnyIrq};
use contigo::{Device, Error, Mmio, Result, Wait, forward};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

/// How a run waits for the end of each job.
#[derive(Clone, Copy, Debug)]
pub enum Mode<'m> {
    /// It looks again and again, a bounded number of times, and asks neither the kernel nor a
    /// clock.
    Polled,
    /// It waits as the engine's device does, by an interrupt or by its clock, at most so long for
    /// each job.
    Waiting(Duration),
    /// It waits for the interrupt first, and then as [`Waiting`](Self::Waiting), each at most so
    /// long.
    Events(&'m dyn Events, Duration),
}

/// For one job, interrupt or not: the slowest engine here takes 200 ms in an emulator on a busy
/// machine.
pub const JOB_TIMEOUT: Duration = Duration::from_secs(5);

/// The facts about an engine's interrupt.
#[derive(Clone, Copy, Debug)]
pub enum Line<'l> {
    /// It has none here, or none was asked for.
    None,
    /// It can be waited for before the engine is looked at.
    Events(&'l IrqEvents),
    /// Waits that it ended are counted.
    Counted(&'l AtomicU64),
}

impl<'l> Line<'l> {
    /// How a run waits for the end of a job: for the interrupt, or by the clock where there is
    /// none.
    #[must_use]
    pub const fn mode(self) -> Mode<'l> {
        match self {
            Self::Events(events) => Mode::Events(events, JOB_TIMEOUT),
            Self::None | Self::Counted(_) => Mode::Waiting(JOB_TIMEOUT),
        }
    }

    /// How many interrupts ended a wait so far; `None` where there is none.
    #[must_use]
    pub fn came(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Events(events) => Some(events.came()),
            Self::Counted(count) => Some(count.load(Ordering::Relaxed)),
        }
    }
}

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

/// The interrupt of a real device, by a second handle.
#[derive(Debug)]
pub struct IrqEvents(AnyIrq);

impl IrqEvents {
    /// Of a device that has one.
    ///
    /// # Errors
    /// [`Error::Os`] where no descriptor is left.
    pub fn of(device: &AnyDevice) -> Result<Option<Self>> {
        Ok(device.irq()?.map(Self))
    }

    /// How many interrupts came: by a wait, or before one.
    pub fn came(&self) -> u64 {
        self.0.interrupts()
    }
}

impl Events for IrqEvents {
    fn arm(&self) -> Result<()> {
        self.0.arm_irq().map(drop)
    }

    fn wait(&self, timeout: Duration) -> Result<()> {
        let before = self.came();
        match poll_until(&self.0, timeout, |irq| irq.interrupts() > before)? {
            true => Ok(()),
            false => Err(Error::Timeout { timeout_us: contigo::types::timeout_us(timeout)? }),
        }
    }
}

/// A device that has an interrupt, and how many of its waits that ended: those that were over
/// before their time. (One without ends every wait early.) A driver that finds its job
/// done at the first look never waits, so this is the least number of interrupts, and 0 proves
/// nothing.
#[derive(Debug)]
pub struct Counted<'c, D> {
    device: D,
    interrupts: &'c AtomicU64,
}

impl<'c, D: Device> Counted<'c, D> {
    /// `device`, whose interrupts are counted in `interrupts` from now on.
    pub const fn new(device: D, interrupts: &'c AtomicU64) -> Self {
        Self { device, interrupts }
    }
}

// SAFETY: every access is the device's own; no other code has it.
unsafe impl<D: Device> Mmio for Counted<'_, D> {
    forward!(|this| this.device => len_bytes, read32, write32);
}

impl<D: Device> Wait for Counted<'_, D> {
    forward!(|this| this.device => now_us, looks_before_clock);
    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        let end_us = self.device.now_us().saturating_add(u64::from(timeout_us));
        self.device.wait_at_most(timeout_us)?;
        if self.device.now_us() < end_us {
            self.interrupts.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

// SAFETY: the device's own port.
unsafe impl<D: Device> Device for Counted<'_, D> {
    forward!(|this| this.device => port, simulated);
}

#![allow(unsafe_code, reason = "registers are passed on")]
//! Windows for a driver that owns its device: one that a test keeps, to look at registers
//! meanwhile, and one of a program that loses the processor.

use contigo::sim::{Model, SimDevice, SimWindow};
use contigo::{Device, Error, Mmio, Result, Wait, forward};
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// The registers of `window`, for a driver that owns its device.
#[derive(Debug)]
pub struct Lent<'w, D> {
    window: &'w D,
    at: usize,
    bits: u32,
}

impl<'w, D> Lent<'w, D> {
    /// The window as it is.
    pub const fn new(window: &'w D) -> Self {
        Self::with_bits(window, 0, 0)
    }

    /// The same, where the register at byte `at` always has these bits too.
    pub const fn with_bits(window: &'w D, at: usize, bits: u32) -> Self {
        Self { window, at, bits }
    }
}

// SAFETY: the window's registers, one of which says more.
unsafe impl<D: Mmio> Mmio for Lent<'_, D> {
    forward!(|this| *this.window => len_bytes, write32);

    fn read32(&self, offset: usize) -> u32 {
        self.window.read32(offset) | if offset == self.at { self.bits } else { 0 }
    }
}

impl<D: Wait> Wait for Lent<'_, D> {
    forward!(|this| *this.window => now_us, wait_at_most, arm_irq, looks_before_clock);
}

// SAFETY: the window's port and epoch.
unsafe impl<D: Device> Device for Lent<'_, D> {
    forward!(|this| *this.window => port, siblings, simulated);
}

/// A value that the test and the driver share; the driver's core may be another thread's.
#[derive(Debug, Default)]
pub struct Said<T>(Mutex<T>);

impl<T: Copy> Said<T> {
    /// The value now.
    pub fn get(&self) -> T {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it is this.
    pub fn set(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// What a [`Watched`] window saw of its driver, and does to it.
#[derive(Debug, Default)]
pub struct Watch {
    /// How often the driver waited.
    pub waits: Said<u32>,
    /// The wait that panics, counted from 1; 0: none.
    pub panics: Said<u32>,
    /// The interrupt's file fails with this.
    pub fails: Said<Option<Error>>,
    /// The register at this byte has these bits too, up to this time.
    pub bits: Said<(usize, u32, u64)>,
    /// The interrupt's file.
    pub file: Said<Option<i32>>,
}

/// The registers of a window, for a driver that owns its device and is watched.
#[derive(Debug)]
pub struct Watched<'w, D> {
    window: &'w D,
    watch: &'w Watch,
}

impl<'w, D> Watched<'w, D> {
    /// The window, watched.
    pub const fn new(window: &'w D, watch: &'w Watch) -> Self {
        Self { window, watch }
    }
}

// SAFETY: the window's registers, one of which may say more.
unsafe impl<D: Mmio + Wait> Mmio for Watched<'_, D> {
    forward!(|this| *this.window => len_bytes, write32);

    fn read32(&self, offset: usize) -> u32 {
        let (at, bits, until_us) = self.watch.bits.get();
        self.window.read32(offset)
            | if offset == at && self.window.now_us() < until_us { bits } else { 0 }
    }
}

impl<D: Wait> Wait for Watched<'_, D> {
    forward!(|this| *this.window => now_us, looks_before_clock);

    fn arm_irq(&self) -> Result<Option<i32>> {
        Ok(self.watch.file.get())
    }

    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.watch.waits.set(self.watch.waits.get() + 1);
        assert_ne!(self.watch.waits.get(), self.watch.panics.get(), "as the test asked for");
        match self.watch.fails.get() {
            Some(error) => Err(error),
            None => self.window.wait_at_most(timeout_us),
        }
    }
}

// SAFETY: the window's port and epoch.
unsafe impl<D: Device> Device for Watched<'_, D> {
    forward!(|this| *this.window => port, siblings, simulated);
}

/// A program that loses the processor for a while after every fourth write of one register.
#[derive(Debug)]
pub struct Preempted<M: Model> {
    window: SimWindow<M>,
    device: SimDevice<M>,
    after: usize,
    for_us: u32,
    writes: Cell<u32>,
}

impl<M: Model> Preempted<M> {
    /// The window of `device`, and so many microseconds after a write at byte `after`.
    pub fn new(device: &SimDevice<M>, after: usize, for_us: u32) -> Result<Self> {
        Ok(Self {
            window: device.window()?,
            device: device.clone(),
            after,
            for_us,
            writes: Cell::new(0),
        })
    }
}

// SAFETY: the window's registers.
unsafe impl<M: Model> Mmio for Preempted<M> {
    forward!(|this| this.window => len_bytes, read32);

    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.window.write32(offset, value) };
        if offset == self.after {
            self.writes.set(self.writes.get() + 1);
            if self.writes.get().is_multiple_of(4) {
                // A device that does not advance is found by its driver.
                let _ = self.device.run_for(self.for_us);
            }
        }
    }
}

impl<M: Model> Wait for Preempted<M> {
    forward!(|this| this.window => now_us, wait_at_most);
}

// SAFETY: as the window.
unsafe impl<M: Model> Device for Preempted<M> {
    forward!(|this| this.window => port, simulated);
}

//! What the drivers of one device share, one driver for each channel, and how many there are.

use super::attachment::Attach;
use contigo_core::job::AnyCore;
use contigo_core::mem::Port;
use contigo_core::types::lock;
use core::sync::atomic::{AtomicU32, Ordering};
use spin::Mutex;

/// The most drivers of one core, forgotten ones included: 32 channels, and one for each thread that
/// opens a channel that is not free. The count never wraps to 0.
pub(super) const DRIVERS_MAX: u32 = 1 << 16;

/// The part of a device that several drivers share. The first driver makes it, and dropping the
/// last one closes it.
pub(super) struct SharedCore {
    /// It has a handle to the device that it lies in, so it is closed when it has no drivers.
    pub(super) opened: Mutex<Option<OpenedCore>>,
    /// How many drivers it has: raised only under the lock, and `DRIVERS_MAX` at most.
    pub(super) drivers: AtomicU32,
}

/// A core, and how its device was attached.
pub(super) struct OpenedCore {
    pub(super) core: AnyCore,
    /// Its row's name.
    pub(super) driver: &'static str,
    pub(super) port: Port,
    pub(super) how: Attach,
}

impl SharedCore {
    pub(super) const fn new() -> Self {
        Self { opened: Mutex::new(None), drivers: AtomicU32::new(0) }
    }

    /// Closes a core without drivers, so that a driver may have the device to itself.
    pub(super) fn close_idle(&self) {
        // A thread that has the lock opens a driver, or closes the core itself.
        let Ok(mut opened) = lock::acquire(&self.opened) else { return };
        // Acquire: what the last driver did happened before.
        if self.drivers.load(Ordering::Acquire) == 0 {
            // Under the lock, so that the next thread to open finds the device released. The caller
            // has a handle to the device, so this is not the last one, and the lock stays.
            *opened = None;
        }
    }
}

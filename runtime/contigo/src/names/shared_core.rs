//! What the drivers of one device share, one a channel, and how many have it.

use super::attachment::Attach;
use contigo_core::{job::AnyCore, mem::Port, types::lock};
use core::sync::atomic::{AtomicU32, Ordering};
use spin::Mutex;

/// How many drivers one core has at most, with those that were forgotten: 32 channels, and as
/// many threads as open one that is not free. The count never comes round to 0.
pub(super) const DRIVERS_MAX: u32 = 1 << 16;

/// The part of a device that several drivers share. The first of them makes it, and the last one's
/// end closes it.
pub(super) struct SharedCore {
    /// It has a handle to the device that this lies in, so it is closed when it has no drivers.
    pub(super) opened: Mutex<Option<OpenedCore>>,
    /// How many drivers it has: more only under the lock, and `DRIVERS_MAX` at most.
    pub(super) drivers: AtomicU32,
}

/// A core, and how its device was attached.
pub(super) struct OpenedCore {
    pub(super) core: AnyCore,
    /// Its row's name.
    pub(super) driver: &'static str,
    pub(super) port: Option<Port>,
    pub(super) how: Attach,
}

impl SharedCore {
    pub(super) const fn new() -> Self {
        Self { opened: Mutex::new(None), drivers: AtomicU32::new(0) }
    }

    /// Closes a core without drivers, so that a driver may have the device to itself.
    pub(super) fn close_idle(&self) {
        // Where another thread has the lock it opens a driver, or closes the core itself.
        let Ok(mut opened) = lock::acquire(&self.opened) else { return };
        // Acquire: what the last driver did came before.
        if self.drivers.load(Ordering::Acquire) == 0 {
            // Under the lock: the next one to open finds the device given back. The caller has a
            // handle to the device, so this is not the last one, and the lock stays.
            *opened = None;
        }
    }
}

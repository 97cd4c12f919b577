//! Drivers by their names: the same in Rust, C, Python and the tool.

use super::any_device::AnyDevice;
use contigo_core::job;
use contigo_core::types::near::Among;
use contigo_core::types::{Error, Result, lock};
use spin::Mutex;

/// A row of the table of drivers: a built-in one ([`drivers`](crate::drivers)), or one of the
/// program's own ([`register`]).
pub type DriverRow = job::DriverRow<AnyDevice>;

/// The drivers of the crate `contigo-drivers`.
static BUILT_IN: &[DriverRow] = contigo_drivers::rows();

/// The most rows that a program can register: a bitstream has a handful of cores.
pub(crate) const MAX_REGISTERED: usize = 32;

static REGISTERED: Mutex<heapless::Vec<&'static DriverRow, MAX_REGISTERED>> =
    Mutex::new(heapless::Vec::new());

/// Adds a row, until the process ends.
///
/// # Errors
/// [`Error::InUse`]: a row of that name exists. [`Error::TooMany`]: 32 were registered.
pub fn register(row: &'static DriverRow) -> Result<()> {
    let mut registered = lock::acquire(&REGISTERED)?;
    if registered.iter().copied().chain(BUILT_IN).any(|known| known.name == row.name) {
        return Err(Error::InUse { errno: 0 });
    }
    registered
        .push(row)
        .map_err(|_| Error::TooMany { what: "registered drivers", most: MAX_REGISTERED as u64 })
}

/// The row called `name`.
///
/// # Errors
/// [`Error::NotFound`], with the most similar names ([`each_row`] lists all).
pub fn row(name: &str) -> Result<&'static DriverRow> {
    let registered = lock::acquire(&REGISTERED)?;
    let found = BUILT_IN.iter().chain(registered.iter().copied()).find(|row| row.name == name);
    drop(registered);
    found.ok_or_else(|| Error::NotFound { what: "driver", among: Among::nearest(name, every_name) })
}

fn every_name(each: &mut dyn FnMut(&str)) {
    each_row(|row| each(row.name));
}

/// Shows every row to `each`, the built-in ones first.
pub fn each_row(mut each: impl FnMut(&'static DriverRow)) {
    BUILT_IN.iter().for_each(&mut each);
    // Rows that other threads register meanwhile are not shown.
    let registered =
        lock::acquire(&REGISTERED).map(|registered| registered.clone()).unwrap_or_default();
    registered.iter().copied().for_each(each);
}

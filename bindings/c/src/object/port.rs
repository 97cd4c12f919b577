//! Ports: a board's own by name, a program's own, a simulated board's, and a GPU's.

use crate::{fault::Fault, limits};
use contigo::Port;
use contigo_objects::{Kind, Table};

/// Ports. A port is a handful of numbers: each user of one has a copy, so that it can be closed at
/// any time.
pub(crate) static PORTS: Table<Port, { Kind::Port as u8 }, { limits::PORTS }> = Table::new();

/// A copy of a handle's port.
pub(crate) fn get(raw: u64) -> Result<Port, Fault> {
    Ok(*PORTS.lease(raw)?)
}

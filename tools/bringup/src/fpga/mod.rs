//! A fabric: the loaded bitstream, the users, and the load of another bitstream.
//!
//! [`Fpga::find`] inspects a machine, and chooses one of its ways. [`Fpga::load`] takes six steps,
//! and stops at the first that fails; up to the fifth the fabric is untouched:
//!
//! 1. The file matches the device ([`Target`]).
//! 2. The file fits into the kernel's free memory.
//! 3. The manager is at rest.
//! 4. No program and no driver uses the fabric ([`User`]).
//! 5. The configuration is in the kernel's folder, in the byte order of this manager.
//! 6. The kernel begins the load, and this program waits for its end.
//!
//! In each case the file is removed again, and the manager's flags are restored.
//!
//! # References
//! Linux: `drivers/fpga/fpga-mgr.c`, `zynq-fpga.c`, `zynqmp-fpga.c`, `socfpga.c`,
//! `of-fpga-region.c`; `Documentation/ABI/testing/sysfs-class-fpga-manager`. AMD's `fpga-mgr.c` has
//! the files `firmware` and `flags`, which mainline does not have.

mod daemon;
mod error;
mod load;
mod manager;
mod overlay;
mod state;
mod target;
pub(crate) mod users;

pub(crate) use error::listed;
pub use error::{FpgaError, User, Way};
pub use load::{Around, Loaded, Options, around};
pub use manager::Manager;
pub use state::{Bridge, State};
pub use target::Target;

use crate::machine::Machine;

/// A machine's fabric.
#[derive(Debug)]
pub struct Fpga<'a> {
    machine: &'a Machine,
    /// The manager in the kernel.
    pub manager: Manager,
    /// The way by which a bitstream reaches it. `None`: this kernel and its daemons have no way.
    pub way: Option<Way>,
    /// Its device.
    pub target: Target,
    /// The regions in the device tree that can take an overlay, if that is the way. If there are
    /// several, a load must name one.
    pub regions: Vec<String>,
    chosen: bool,
}

impl<'a> Fpga<'a> {
    /// Finds the fabric of a machine.
    ///
    /// # Errors
    /// [`FpgaError::NoManager`]: the kernel has none. [`FpgaError::SeveralManagers`]: `manager`
    /// selects none of them. [`FpgaError::NoSuchBoard`]: `board` is no board's name.
    /// [`FpgaError::OtherBoard`]: this machine is another board.
    pub fn find(
        machine: &'a Machine,
        manager: Option<&str>,
        board: Option<&str>,
    ) -> Result<Self, FpgaError> {
        let manager = Manager::find(machine, manager)?;
        let way = way(machine, &manager);
        let target = Target::find(machine, &manager, board)?;
        let regions = if matches!(way, Some(Way::Overlay { .. })) {
            overlay::regions(machine)
        } else {
            Vec::new()
        };
        let chosen = regions.len() < 2;
        Ok(Self { machine, manager, way, target, regions, chosen })
    }

    /// Selects the region for the overlay: by its path in the tree, or by the last name of that
    /// path.
    ///
    /// # Errors
    /// [`FpgaError::NoSuchRegion`].
    pub fn in_region(mut self, name: &str) -> Result<Self, FpgaError> {
        let found = self
            .regions
            .iter()
            .find(|path| *path == name || path.rsplit('/').next() == Some(name))
            .cloned();
        let Some(region) = found else {
            return Err(FpgaError::NoSuchRegion { name: name.to_owned(), there: self.regions });
        };
        (self.way, self.chosen) = (Some(Way::Overlay { region }), true);
        Ok(self)
    }

    /// The manager's current state.
    #[must_use]
    pub fn state(&self) -> State {
        self.manager.state(self.machine)
    }

    /// The bridges between processor and fabric that the kernel knows.
    #[must_use]
    pub fn bridges(&self) -> Vec<Bridge> {
        Bridge::all(self.machine)
    }

    /// The current users of the fabric.
    ///
    /// # Errors
    /// [`FpgaError::CannotSee`]: this program may not inspect all programs.
    pub fn users(&self) -> Result<Vec<User>, FpgaError> {
        users::of(self.machine, self.target.family)
    }
}

/// The way of a machine. A daemon comes first, because a load without it would make the daemon's
/// record of the fabric wrong.
fn way(machine: &Machine, manager: &Manager) -> Option<Way> {
    if let Some(way) = daemon::find(machine) {
        return Some(way);
    }
    if machine.has(manager.file("firmware")) {
        return Some(Way::Sysfs);
    }
    overlay::regions(machine).into_iter().next().map(|region| Way::Overlay { region })
}

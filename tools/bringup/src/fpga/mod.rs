//! A fabric: what is loaded, who uses it, and how it gets another bitstream.
//!
//! [`Fpga::find`] looks at a machine and chooses the way that is there. [`Fpga::load`] goes in six
//! steps, and stops at the first that says no; up to the fifth the fabric is untouched:
//!
//! 1. The file is compared with the device ([`Target`]).
//! 2. It fits into the memory that the kernel has left for it.
//! 3. The manager is at rest.
//! 4. No program and no driver uses the fabric ([`User`]).
//! 5. The configuration lies where the kernel looks for it, in the byte order of this manager.
//! 6. The kernel begins the load, and its end is awaited.
//!
//! In each case the file is taken away again, and the manager's flags are as they were.
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
    /// How a bitstream reaches it. `None`: this kernel and its daemons have no way.
    pub way: Option<Way>,
    /// Which device it is.
    pub target: Target,
    /// The regions in the device tree that an overlay can go to, if that is the way. A load wants
    /// to know which, where there are several.
    pub regions: Vec<String>,
    chosen: bool,
}

impl<'a> Fpga<'a> {
    /// The fabric of a machine.
    ///
    /// # Errors
    /// [`FpgaError::NoManager`]: the kernel knows none. [`FpgaError::SeveralManagers`]: `manager`
    /// does not say which one. [`FpgaError::NoSuchBoard`]: `board` is no board's name.
    /// [`FpgaError::OtherBoard`]: it is not this one's.
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

    /// The same, with the overlay going to this region: by its path in the tree, or by the last
    /// name of that.
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

    /// The manager's state now.
    #[must_use]
    pub fn state(&self) -> State {
        self.manager.state(self.machine)
    }

    /// The bridges between processor and fabric that the kernel knows.
    #[must_use]
    pub fn bridges(&self) -> Vec<Bridge> {
        Bridge::all(self.machine)
    }

    /// Who uses the fabric now.
    ///
    /// # Errors
    /// [`FpgaError::CannotSee`]: this program may not look at all programs.
    pub fn users(&self) -> Result<Vec<User>, FpgaError> {
        users::of(self.machine, self.target.family)
    }
}

/// The way of a machine. A daemon comes first, because it keeps an account of the fabric that a
/// load behind its back would make wrong.
fn way(machine: &Machine, manager: &Manager) -> Option<Way> {
    if let Some(way) = daemon::find(machine) {
        return Some(way);
    }
    if machine.has(manager.file("firmware")) {
        return Some(Way::Sysfs);
    }
    overlay::regions(machine).into_iter().next().map(|region| Way::Overlay { region })
}

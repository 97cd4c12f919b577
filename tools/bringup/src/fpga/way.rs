//! The ways from a program to a fabric, and the choice between them.

use super::{Manager, daemon, overlay};
use crate::machine::Machine;
use std::fmt;

/// A way to a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Canonical's daemon `fpgad` runs; its client asks it.
    Fpgad {
        /// The client.
        client: String,
    },
    /// AMD's daemon `dfx-mgrd` runs and keeps the fabric's account.
    DfxMgr,
    /// The manager's file `firmware`: AMD's kernels. Intel's have the classes of mainline.
    Sysfs,
    /// An overlay through configfs, onto a region of the device tree: many vendors' kernels.
    Overlay {
        /// The region's path in the device tree.
        region: String,
    },
}

impl Way {
    /// The way of a machine. A daemon comes first, because it keeps an account of the fabric that
    /// a load behind its back would make wrong.
    pub(super) fn find(machine: &Machine, manager: &Manager) -> Option<Self> {
        if let Some(way) = daemon::find(machine) {
            return Some(way);
        }
        if machine.has(manager.file("firmware")) {
            return Some(Self::Sysfs);
        }
        overlay::regions(machine).into_iter().next().map(|region| Self::Overlay { region })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fpgad { .. } => f.write_str("fpgad"),
            Self::DfxMgr => f.write_str("dfx-mgrd"),
            Self::Sysfs => f.write_str("the FPGA manager"),
            Self::Overlay { region } => write!(f, "the overlay onto {region}"),
        }
    }
}

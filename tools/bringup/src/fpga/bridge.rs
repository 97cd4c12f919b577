//! The bridges between processor and fabric that the kernel can close.

use crate::machine::Machine;

/// A bridge. The kernel closes and opens those of a region; sysfs only shows them.
///
/// # References
/// Linux, `Documentation/ABI/testing/sysfs-class-fpga-bridge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Its driver's name for it: `lwhps2fpga`.
    pub name: String,
    /// It is open. An access through a closed one hangs the processor.
    pub open: Option<bool>,
}

impl Bridge {
    pub(crate) fn all(machine: &Machine) -> Vec<Self> {
        let folder = "sys/class/fpga_bridge";
        let bridge = |id: String| Self {
            open: machine.text(format!("{folder}/{id}/state")).and_then(|state| {
                match state.as_str() {
                    "enabled" => Some(true),
                    "disabled" => Some(false),
                    _ => None,
                }
            }),
            name: machine.text(format!("{folder}/{id}/name")).unwrap_or(id),
        };
        machine.list(folder).into_iter().map(bridge).collect()
    }
}

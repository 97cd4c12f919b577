//! An overlay of the device tree onto an FPGA region, through configfs: the kernel then closes the
//! region's bridges, loads the file, and opens them.
//!
//! # References
//! Linux, `drivers/fpga/of-fpga-region.c` and `Documentation/devicetree/bindings/fpga/`. The folder
//! in configfs is not mainline's; vendors' `Documentation/devicetree/configfs-overlays.txt`.

use super::{FpgaError, Manager, Way, dtbo};
use crate::machine::Machine;

const REGIONS: &str = "sys/class/fpga_region";
const TREE: &str = "sys/firmware/devicetree/base";
const OVERLAYS: &str = "sys/kernel/config/device-tree/overlays";
/// The folder of the one overlay that is Contigo's.
const OURS: &str = "sys/kernel/config/device-tree/overlays/contigo-fpga";

/// The paths in the device tree of all regions, where the kernel takes overlays for them.
pub(super) fn regions(machine: &Machine) -> Vec<String> {
    let (true, Ok(tree)) = (machine.has(OVERLAYS), machine.real(TREE)) else { return Vec::new() };
    let path = |id: String| {
        let nodes = [format!("{REGIONS}/{id}/of_node"), format!("{REGIONS}/{id}/device/of_node")];
        let node = nodes.iter().find_map(|node| machine.real(node).ok())?;
        Some(format!("/{}", node.strip_prefix(&tree).ok()?.to_str()?))
    };
    machine.list(REGIONS).into_iter().filter_map(path).collect()
}

/// Applies the overlay that names the file. The kernel refuses the overlay when the load fails.
pub(super) fn load(
    machine: &Machine,
    manager: &Manager,
    region: &str,
    name: &str,
    partial: bool,
) -> Result<(), FpgaError> {
    if machine.has(OURS) {
        return Err(FpgaError::Applied(format!("/{OURS}").into()));
    }
    machine
        .make_dir(OURS)
        .map_err(|error| FpgaError::Told { path: format!("/{OURS}").into(), error })?;
    let told = machine.write(format!("{OURS}/dtbo"), &dtbo::region(region, name, partial));
    // Some kernels take the blob, fail, and tell it here only.
    let applied = machine.text(format!("{OURS}/status")).is_none_or(|status| status == "applied");
    let error = match told {
        Ok(()) if applied => return Ok(()),
        Ok(()) => None,
        Err(error) => Some(error),
    };
    let state = manager.state(machine);
    let way = Way::Overlay { region: region.to_owned() };
    let failed = FpgaError::Failed { way, state, words: String::new(), error };
    match machine.remove_dir(OURS) {
        Ok(()) => Err(failed),
        Err(error) => Err(FpgaError::Left {
            path: format!("/{OURS}").into(),
            error,
            failed: Box::new(failed),
        }),
    }
}

/// Whether an overlay of Contigo's is there.
pub(super) fn applied(machine: &Machine) -> bool {
    machine.has(OURS)
}

/// Takes the overlay away: the kernel ends the devices in it, and closes the region's bridges.
pub(super) fn unload(machine: &Machine) -> Result<(), FpgaError> {
    machine
        .remove_dir(OURS)
        .map_err(|error| FpgaError::Told { path: format!("/{OURS}").into(), error })
}

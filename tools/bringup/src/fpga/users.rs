//! The users of a fabric: programs that have a node of it open or mapped, and the kernel's drivers.
//!
//! # References
//! Linux, `Documentation/filesystems/proc.rst` (`/proc/PID/fd`, `/proc/PID/maps`),
//! `Documentation/ABI/testing/sysfs-class-uio`, `Documentation/driver-api/vfio.rst`; XRT,
//! `src/runtime_src/core/edge/drm/zocl/edge/zocl_drv.c` (its driver's name).

use super::{FpgaError, User};
use crate::bitstream::Family;
use crate::machine::Machine;
use crate::plain;
use crate::plain::COMM_MAX;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::process;

/// Drivers that access no register by themselves: they pass a device to a program.
const PASSIVE: [&str; 3] = ["uio_pdrv_genirq", "contigo", "vfio-platform"];
/// A program that has a core through VFIO keeps this open, even after it has closed the group.
const VFIO: &str = "anon_inode:[vfio-device]";
/// XRT's driver, which starts cores of the fabric for programs.
const ZOCL: &str = "zocl-drm";
const DRM: &str = "sys/class/drm";
const PLATFORM: &str = "sys/bus/platform/devices";
/// The most windows of a device (`MAX_UIO_MAPS` is 5).
const MAPS_MAX: usize = 5;

/// All users of a fabric of `family`. If the family is unknown, the nodes of all devices count.
pub(crate) fn of(machine: &Machine, family: Option<Family>) -> Result<Vec<User>, FpgaError> {
    let nodes = nodes(machine, family);
    let mut users = drivers(machine, family);
    for id in machine.list("proc") {
        let Ok(id) = id.parse::<u32>() else { continue };
        // This program opens no such node.
        if id == process::id() {
            continue;
        }
        let held = held(machine, id, &nodes, family)?;
        let name = || plain(&machine.text(format!("proc/{id}/comm")).unwrap_or_default(), COMM_MAX);
        users.extend(held.into_iter().map(|node| User::Program { id, name: name(), node }));
    }
    users.sort_unstable();
    Ok(users)
}

fn inside(family: Option<Family>, address: u64) -> bool {
    family.is_none_or(|family| {
        family.windows().iter().any(|&(first, last)| (first..=last).contains(&address))
    })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// The address at the beginning of a platform device's name: `40400000.axi_dma`.
fn address(device: &str) -> Option<u64> {
    device.split_once('.').and_then(|(address, _)| hex(address))
}

/// The nodes in `/dev` that lead into the fabric.
fn nodes(machine: &Machine, family: Option<Family>) -> BTreeSet<String> {
    let uio = |id: &String| {
        let windows = (0..MAPS_MAX).filter_map(|map| {
            hex(&machine.text(format!("sys/class/uio/{id}/maps/map{map}/addr"))?)
        });
        windows.into_iter().any(|address| inside(family, address))
    };
    let dev_node = |id: &String| address(id).is_some_and(|address| inside(family, address));
    let uio = machine.list("sys/class/uio").into_iter().filter(uio).map(|id| format!("/dev/{id}"));
    let dev_nodes = machine
        .list("sys/class/contigo")
        .into_iter()
        .filter(dev_node)
        .map(|id| format!("/dev/contigo/{id}"));
    // A program that holds a block of u-dma-buf may have given its address to a core.
    let node = |block: String| format!("/dev/{}", block.rsplit('/').next().unwrap_or(&block));
    let buffers = machine.blocks().into_iter().map(node);
    uio.chain(dev_nodes).chain(buffers).chain(vfio(machine, family)).chain(xrt(machine)).collect()
}

/// The nodes by which a program gets a core from VFIO: its group's, and its own since Linux 6.6.
fn vfio(machine: &Machine, family: Option<Family>) -> Vec<String> {
    let mut nodes = Vec::new();
    for device in machine
        .list(PLATFORM)
        .into_iter()
        .filter(|device| address(device).is_some_and(|address| inside(family, address)))
    {
        if let Some(group) = machine.link_name(format!("{PLATFORM}/{device}/iommu_group")) {
            nodes.extend([format!("/dev/vfio/{group}"), format!("/dev/vfio/noiommu-{group}")]);
        }
        nodes.extend(
            machine
                .list(format!("{PLATFORM}/{device}/vfio-dev"))
                .iter()
                .map(|id| format!("/dev/vfio/devices/{id}")),
        );
        if driver(machine, &device).as_deref() == Some("vfio-platform") {
            nodes.push(VFIO.to_owned());
        }
    }
    nodes
}

/// The nodes of XRT's driver. Its device is a node of the tree without an address.
fn xrt(machine: &Machine) -> impl Iterator<Item = String> {
    let of_zocl = |id: &String| {
        machine.link_name(format!("{DRM}/{id}/device/driver")).as_deref() == Some(ZOCL)
    };
    machine.list(DRM).into_iter().filter(of_zocl).map(|id| format!("/dev/dri/{id}"))
}

fn driver(machine: &Machine, device: &str) -> Option<String> {
    machine.link_name(format!("{PLATFORM}/{device}/driver"))
}

/// The devices of the fabric that are bound to a driver of the kernel.
fn drivers(machine: &Machine, family: Option<Family>) -> Vec<User> {
    let mut users = Vec::new();
    for device in machine.list(PLATFORM) {
        // Without a family, every device of the board would count as the fabric's.
        if family.is_none() || !address(&device).is_some_and(|address| inside(family, address)) {
            continue;
        }
        match driver(machine, &device) {
            Some(name) if !PASSIVE.contains(&name.as_str()) => {
                users.push(User::Driver { name, device })
            }
            _ => {}
        }
    }
    users
}

/// The nodes that a process has open or mapped. A process that has ended meanwhile has none.
fn held(
    machine: &Machine,
    id: u32,
    nodes: &BTreeSet<String>,
    family: Option<Family>,
) -> Result<BTreeSet<String>, FpgaError> {
    let mut held = BTreeSet::new();
    let folder = format!("proc/{id}/fd");
    let unseen = |path: String, error: std::io::Error| match error.kind() {
        ErrorKind::PermissionDenied => {
            Err(FpgaError::CannotSee { path: format!("/{path}").into(), error })
        }
        _ => Ok(()),
    };
    match machine.entries(&folder) {
        Ok(files) => {
            let links = files.iter().filter_map(|file| machine.link(format!("{folder}/{file}")));
            held.extend(
                links
                    .filter_map(|link| link.into_os_string().into_string().ok())
                    .filter(|link| nodes.contains(link)),
            );
        }
        Err(error) => unseen(folder, error)?,
    }
    let maps = format!("proc/{id}/maps");
    match machine.read(&maps) {
        Ok(text) => held.extend(mapped(&text, nodes, family)),
        Err(error) => unseen(maps, error)?,
    }
    Ok(held)
}

/// The nodes in the text of `/proc/PID/maps`, including a part of `/dev/mem`, whose offset is the
/// address.
fn mapped(text: &str, nodes: &BTreeSet<String>, family: Option<Family>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (offset, node) =
            (words.nth(2).and_then(hex).unwrap_or(0), words.nth(2).unwrap_or_default());
        if nodes.contains(node) || (node == "/dev/mem" && inside(family, offset)) {
            found.insert(node.to_owned());
        }
    }
    found
}

//! Which board a machine is, and what is on it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is its purpose"
)]

#[path = "common/machines.rs"]
#[allow(dead_code, reason = "each test takes what it needs")]
mod machines;

use contigo_bringup::board::Board;
use contigo_bringup::fpga::{FpgaError, State};
use contigo_bringup::known::Sure;
use contigo_bringup::machine::Machine;
use machines::{Root, TREE, de10, kv260, orin, pc, pynq};
use std::path::Path;

type Make = fn(&Path) -> Root;

#[test]
fn each_board_is_known_with_its_ports() {
    let boards: [(Make, &[&str], Sure, usize); 5] = [
        (pynq, &["pynq-z2"], Sure::ByName, 7),
        (de10, &["de10-nano"], Sure::ByName, 2),
        (kv260, &["kv260"], Sure::ByName, 6),
        (orin, &["jetson-orin"], Sure::ByName, 0),
        (pc, &[], Sure::No, 0),
    ];
    for (make, names, sure, ports) in boards {
        let folder = tempfile::tempdir().unwrap();
        let board = Board::of(&make(folder.path()).machine());
        let found: Vec<_> = board.known.boards.iter().map(|board| board.name).collect();
        assert_eq!(
            (found.as_slice(), board.known.sure, board.known.ports().len()),
            (names, sure, ports)
        );
    }
}

#[test]
fn a_tree_that_names_the_soc_only_leaves_several() {
    let folder = tempfile::tempdir().unwrap();
    let root = pynq(folder.path());
    root.put(&format!("{TREE}/compatible"), "xlnx,zynq-7000\0");
    let several = Board::of(&root.machine()).known;
    let names: Vec<_> = several.boards.iter().map(|board| board.name).collect();
    assert_eq!(
        (several.sure, names.as_slice(), several.ports().len()),
        (Sure::BySoc, &["pynq-z2", "zc702"][..], 7)
    );
    // PYNQ's image says it in the model.
    root.put(&format!("{TREE}/model"), "TUL PYNQ-Z2\0");
    let board = Board::of(&root.machine());
    assert_eq!((board.known.sure, board.model.as_deref()), (Sure::ByName, Some("TUL PYNQ-Z2")));
}

/// A maker's words for one board are in another's model: each Jetson by its module's number.
#[test]
fn a_jetson_is_no_other_jetson() {
    for (compatible, model, names, sure) in [
        (
            "nvidia,p3737-0000+p3701-0000\0nvidia,p3701-0000\0nvidia,tegra234\0",
            "NVIDIA Jetson AGX Orin Developer Kit",
            "jetson-orin",
            Sure::ByName,
        ),
        // The module alone names no carrier: another maker's has other connectors.
        (
            "maker,carrier+p3701-0000\0nvidia,p3701-0000\0nvidia,tegra234\0",
            "A maker's carrier",
            "jetson-orin",
            Sure::BySoc,
        ),
        (
            "nvidia,p3768-0000+p3767-0005\0nvidia,p3767-0005\0nvidia,tegra234\0",
            "NVIDIA Jetson Orin Nano Developer Kit",
            "jetson-orin",
            Sure::BySoc,
        ),
        (
            "nvidia,p2972-0000\0nvidia,tegra194\0",
            "NVIDIA Jetson AGX Xavier Developer Kit",
            "jetson-xavier",
            Sure::ByName,
        ),
        (
            "nvidia,p3509-0000+p3668-0000\0nvidia,tegra194\0",
            "NVIDIA Jetson Xavier NX Developer Kit",
            "jetson-xavier",
            Sure::BySoc,
        ),
        (
            "nvidia,p3450-0000\0nvidia,tegra210\0",
            "NVIDIA Jetson Nano Developer Kit",
            "jetson-nano",
            Sure::ByName,
        ),
        (
            "nvidia,p2371-2180\0nvidia,tegra210\0",
            "NVIDIA Jetson TX1 Developer Kit",
            "jetson-nano",
            Sure::BySoc,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = orin(folder.path());
        root.put(&format!("{TREE}/compatible"), compatible);
        root.put(&format!("{TREE}/model"), format!("{model}\0"));
        let known = Board::of(&root.machine()).known;
        let found: Vec<_> = known.boards.iter().map(|board| board.name).collect();
        assert_eq!((found.as_slice(), known.sure), (&[names][..], sure), "{model}");
        assert!(
            known
                .boards
                .iter()
                .all(|board| board.facts.contains("PCIe") && board.facts.contains("dtsi"))
        );
    }
}

#[test]
fn what_is_loaded_and_running_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let root = pynq(folder.path());
    let board = Board::of(&root.machine());
    let fabric = board.fabric.unwrap();
    assert_eq!(
        (fabric.manager.as_str(), fabric.state, fabric.users.unwrap()),
        ("fpga0", State::Operating, vec![])
    );
    assert_eq!(fabric.bridges.len(), 1);
    let devices: Vec<_> =
        board.devices.iter().map(|device| format!("{} {}", device.name, device.node)).collect();
    let wanted = [
        "contigo:f8003000.dmac /dev/contigo/f8003000.dmac",
        "uio:copy /dev/uio0",
        "u-dma-buf:udmabuf0 /dev/udmabuf0",
        "dma-heap:linux,cma /dev/dma_heap/linux,cma",
    ];
    assert_eq!(devices, wanted);
    let folder = tempfile::tempdir().unwrap();
    let root = pc(folder.path());
    root.put("dev/nvidia0", "");
    root.put("dev/nvidiactl", "");
    root.driver("pci", "0000:02:00.0", "vfio-pci");
    root.link("sys/bus/pci/devices/0000:02:00.0/iommu_group", "../../../kernel/iommu_groups/7");
    let board = Board::of(&root.machine());
    let devices: Vec<_> =
        board.devices.iter().map(|device| format!("{} {}", device.name, device.node)).collect();
    assert_eq!(devices, ["vfio:0000:02:00.0 /dev/vfio/7", "cuda:0 /dev/nvidia0"]);
    // Neither a PC nor a Jetson lacks a driver for a fabric.
    assert!(matches!(board.fabric, Err(FpgaError::NoManager)) && board.is_fabricless);
    let folder = tempfile::tempdir().unwrap();
    assert!(Board::of(&orin(folder.path()).machine()).is_fabricless);
    let folder = tempfile::tempdir().unwrap();
    let root = kv260(folder.path());
    assert!(!Board::of(&root.machine()).is_fabricless);
    root.put(&format!("{TREE}/compatible"), "xlnx,versal\0");
    assert!(!Board::of(&root.machine()).is_fabricless, "an unknown SoC may have a fabric");
}

#[test]
fn nonsense_is_no_board() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root(folder.path().to_owned());
    root.put(&format!("{TREE}/compatible"), [0xff; 5000]);
    root.put(&format!("{TREE}/model"), "a\u{1b}[2Jb\0");
    root.put("sys/class/uio/uio0/name", [0, 255, 10]);
    let board = Board::of(&root.machine());
    assert_eq!(
        (board.known.sure, board.model.as_deref(), board.kernel),
        (Sure::No, Some("a\\u{1b}[2Jb"), None)
    );
    assert_eq!(board.devices.first().map(|device| device.name.as_str()), Some("uio:uio0"));
    assert_eq!(Board::of(&Machine::copy("/nowhere")).devices, []);
}

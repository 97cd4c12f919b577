//! Loading on boards in folders: each way, each failure, and the board as usable as before.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

mod common;

use common::{bin, bit, rbf, swapped, words, zynq};
use contigo_bringup::bitstream::Image;
use contigo_bringup::fpga::{Fpga, FpgaError, Loaded, Options, State, User, Way};
use contigo_bringup::machine::fake::{Board, Fault};
use contigo_bringup::machine::{Kernel, Machine};
use nix::fcntl::{Flock, FlockArg};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use tempfile::TempDir;

const ZYNQ: &str = "Xilinx Zynq FPGA Manager";
const CYCLONE: &str = "Altera SOCFPGA FPGA Manager";
const FULL: Options = Options { partial: false, outside: Vec::new(), dry_run: false };

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn sysfs(folder: &TempDir) -> Board {
    Board::new(folder.path(), ZYNQ).with_sysfs()
}

fn load(board: &Board, file: Vec<u8>, options: &Options) -> Result<Loaded, FpgaError> {
    let machine = board.machine();
    Fpga::find(&machine, None, Some("pynq-z2"))?.load(&Image::new(file)?, options)
}

/// A board that refused is as before: nothing lies about, and the next good file loads.
#[track_caller]
fn as_usable_as_before(board: &Board, flags: &str) {
    assert_eq!(board.left(), (vec![], vec![]));
    let machine = board.machine();
    assert_eq!(
        machine.text("sys/class/fpga_manager/fpga0/flags").unwrap_or_else(|| flags.to_owned()),
        flags
    );
    let loaded = load(board, zynq(), &FULL).unwrap();
    assert_eq!(
        (loaded.after, board.loaded()),
        (State::Operating, Some(swapped(&words(0x0372_7093, 101))))
    );
    if loaded.bridges_after.is_empty() {
        assert_eq!(board.left(), (vec![], vec![]));
    }
}

#[test]
fn manager_gets_swapped_bin_and_old_flags() {
    let folder = folder();
    let board = sysfs(&folder);
    board.put("sys/class/fpga_manager/fpga0/flags", "20");
    let loaded = load(&board, zynq(), &FULL).unwrap();
    assert_eq!((loaded.before, loaded.after), (State::Unknown, State::Operating));
    assert_eq!(board.loaded(), Some(swapped(&words(0x0372_7093, 101))));
    assert_eq!((board.flags(), board.left().0), (vec!["0".to_owned(), "20".to_owned()], vec![]));
    // For a part of the fabric.
    let partial = bit("rp;PARTIAL=TRUE", "7z020clg400", &bin(&words(0x0372_7093, 9)));
    load(&board, partial.clone(), &Options { partial: true, ..FULL }).unwrap();
    assert_eq!(board.flags(), ["0", "20", "1", "20"]);
    assert!(matches!(
        load(&board, partial, &FULL),
        Err(FpgaError::Partial { file_is_partial: true })
    ));
    assert!(matches!(
        load(&board, zynq(), &Options { partial: true, ..FULL }),
        Err(FpgaError::Partial { file_is_partial: false })
    ));
    as_usable_as_before(&board, "20");
}

#[test]
fn the_kernels_own_folder_is_used() {
    let folder = folder();
    let board = sysfs(&folder);
    board.put("sys/module/firmware_class/parameters/path", "/run/firmware");
    assert!(matches!(
        load(&board, zynq(), &FULL),
        Err(FpgaError::Place { path, .. }) if path.ends_with("run/firmware")
    ));
    fs::create_dir_all(folder.path().join("run/firmware")).unwrap();
    load(&board, zynq(), &FULL).unwrap();
    assert_eq!(fs::read_dir(folder.path().join("run/firmware")).unwrap().count(), 0);
    as_usable_as_before(&board, "0");
}

#[test]
fn a_region_gets_an_overlay_and_its_bridges_open() {
    let folder = folder();
    let board = Board::new(folder.path(), ZYNQ).with_overlays();
    let machine = board.machine();
    let fpga = Fpga::find(&machine, None, None).unwrap();
    assert_eq!(fpga.way, Some(Way::Overlay { region: "/fpga-region".to_owned() }));
    assert!(matches!(fpga.unload(), Err(FpgaError::NothingToUnload(_))));
    for (errno, state) in [(Some(22), "write init error"), (None, "write error")] {
        board.fail(Fault { errno, state, status: "" });
        let failed = load(&board, zynq(), &FULL);
        assert!(
            matches!(failed, Err(FpgaError::Failed { way: Way::Overlay { .. }, .. })),
            "{failed:?}"
        );
        assert_eq!(board.left(), (vec![], vec![]));
    }
    // Another user of configfs keeps the folder: the error has that, and the load's own failure.
    board.put("etc/overlays/stuck", "");
    board.fail(Fault { errno: Some(22), state: "write init error", status: "" });
    let left = load(&board, zynq(), &FULL).unwrap_err();
    let said = left.to_string();
    assert!(matches!(left, FpgaError::Left { .. }), "{said}");
    assert!(
        said.contains("in state \"write init error\"")
            && said.ends_with("rmdir /sys/kernel/config/device-tree/overlays/contigo-fpga"),
        "{said}"
    );
    fs::remove_file(folder.path().join("etc/overlays/stuck")).unwrap();
    fpga.unload().unwrap();
    let loaded = load(&board, zynq(), &FULL).unwrap();
    let open = |bridges: &[contigo_bringup::fpga::Bridge]| {
        bridges.iter().map(|bridge| (bridge.name.clone(), bridge.open)).collect::<Vec<_>>()
    };
    assert_eq!(open(&loaded.bridges_before), [("lwhps2fpga".to_owned(), Some(false))]);
    assert_eq!(open(&loaded.bridges_after), [("lwhps2fpga".to_owned(), Some(true))]);
    assert_eq!(board.left(), (vec![], vec!["contigo-fpga".to_owned()]));
    assert!(matches!(load(&board, zynq(), &FULL), Err(FpgaError::Applied(_))));
    fpga.unload().unwrap();
    assert_eq!(open(&fpga.bridges()), [("lwhps2fpga".to_owned(), Some(false))]);
    as_usable_as_before(&board, "0");
}

#[test]
fn one_of_several_regions_is_chosen_by_its_user() {
    let folder = folder();
    let board = Board::new(folder.path(), ZYNQ).with_overlays().with_region("fpga-region/pr@1");
    let regions = ["/fpga-region", "/fpga-region/pr@1"];
    let refused = load(&board, zynq(), &FULL).unwrap_err();
    assert!(matches!(&refused, FpgaError::SeveralRegions(there) if *there == regions), "{refused}");
    assert!(refused.to_string().contains("--region: /fpga-region, /fpga-region/pr@1"), "{refused}");
    let machine = board.machine();
    let at = |name| Fpga::find(&machine, None, None).unwrap().in_region(name);
    assert!(matches!(at("pr@2"), Err(FpgaError::NoSuchRegion { there, .. }) if there == regions));
    for (name, region) in
        [("pr@1", regions[1]), (regions[1], regions[1]), ("fpga-region", regions[0])]
    {
        let fpga = at(name).unwrap();
        assert_eq!(fpga.way, Some(Way::Overlay { region: region.to_owned() }), "{name}");
        fpga.load(&Image::new(zynq()).unwrap(), &FULL).unwrap();
        fpga.unload().unwrap();
    }
    // Where no overlay is needed, a region would be left out without a word.
    let board = sysfs(&folder);
    let machine = board.machine();
    assert!(matches!(
        Fpga::find(&machine, None, None).unwrap().in_region("pr@1"),
        Err(FpgaError::NoSuchRegion { there, .. }) if there.is_empty()
    ));
}

#[test]
fn board_is_known_by_its_tree_alone() {
    let zynqmp = "Xilinx ZynqMP FPGA Manager";
    let rows = [
        (
            zynqmp,
            "xlnx,zynqmp-sk-kv260-revA\0xlnx,zynqmp\0",
            "k26 (by the device tree, which names kv260)",
        ),
        (
            CYCLONE,
            "terasic,de10-nano\0altr,socfpga-cyclone5\0altr,socfpga\0",
            "5cseba6 (by the device tree, which names de10-nano)",
        ),
        // The name is another family's: the kernel's driver knows better.
        (
            CYCLONE,
            "xlnx,zynqmp-sk-kv260-revA\0xlnx,zynqmp\0",
            "a Cyclone V SoC (by Altera SOCFPGA FPGA Manager)",
        ),
        (zynqmp, "acme,board\0xlnx,zynqmp\0", "a Zynq UltraScale+ (by Xilinx ZynqMP FPGA Manager)"),
    ];
    for (manager, compatible, device) in rows {
        let folder = folder();
        let board = Board::new(folder.path(), manager).with_sysfs();
        board.put("sys/firmware/devicetree/base/compatible", compatible);
        assert_eq!(Fpga::find(&board.machine(), None, None).unwrap().target.to_string(), device);
    }
    let folder = folder();
    let board = sysfs(&folder);
    board.put("sys/devices/soc0/family", "Xilinx Zynq");
    board.put("sys/devices/soc0/soc_id", "0x2");
    let machine = board.machine();
    let said = |board| Fpga::find(&machine, None, Some(board)).unwrap_err().to_string();
    assert_eq!(
        said("pynq-z2"),
        "this board is 7z010 (by /sys/devices/soc0/soc_id), and not 7z020 (by --board pynq-z2): \
         leave --board out, or name this board"
    );
    assert!(
        said("kv260").starts_with("this board is 7z010 (by /sys/devices/soc0/soc_id), and not k26"),
        "{}",
        said("kv260")
    );
    board.put("sys/devices/soc0/soc_id", "0x0");
    assert!(
        said("kv260").starts_with("this board is a Zynq-7000 (by Xilinx Zynq FPGA Manager)"),
        "{}",
        said("kv260")
    );
    assert_eq!(
        Fpga::find(&machine, None, Some("zc702")).unwrap().target.part.map(|part| part.name),
        Some("7z020")
    );
}

#[test]
fn a_daemon_is_asked_where_it_runs() {
    let folder = folder();
    let board = sysfs(&folder).with_process(77, "fpgad", "/dev/null", "");
    // Without its client, the manager is the way.
    let machine = board.machine();
    assert_eq!(Fpga::find(&machine, None, None).unwrap().way, Some(Way::Sysfs));
    board.put("usr/bin/fpgad_cli", "");
    board.fail(Fault { errno: Some(22), state: "write error", status: "" });
    let failed = load(&board, zynq(), &FULL).unwrap_err();
    assert!(
        failed
            .to_string()
            .starts_with("fpgad failed in state \"write error\", and says: Invalid argument"),
        "{failed}"
    );
    load(&board, zynq(), &FULL).unwrap();
    let ran = board.ran();
    assert!(
        ran[1].starts_with(
            "usr/bin/fpgad_cli --device fpga0 load bitstream /lib/firmware/contigo-fpga."
        ),
        "{ran:?}"
    );
    Fpga::find(&machine, None, None).unwrap().unload().unwrap();
    assert!(board.ran()[2].ends_with("fpga0 remove bitstream"));
    as_usable_as_before(&board, "0");
}

#[test]
fn dfx_mgr_is_believed_by_words_not_status() {
    let folder = folder();
    let board = sysfs(&folder).with_process(78, "dfx-mgrd", "/dev/null", "");
    let file = "/lib/firmware/contigo-fpga.bin";
    load(&board, zynq(), &FULL).unwrap();
    let partial = bit("rp;PARTIAL=TRUE", "7z020clg400", &bin(&words(0x0372_7093, 9)));
    load(&board, partial, &Options { partial: true, ..FULL }).unwrap();
    let machine = board.machine();
    let fpga = Fpga::find(&machine, None, None).unwrap();
    fpga.unload().unwrap();
    let client = "usr/bin/dfx-mgr-client";
    // It takes no whole design while it has one.
    let words = [
        "-unloadByName contigo-fpga.bin".to_owned(),
        format!("-b {file} -f Full"),
        format!("-b {file} -f Partial"),
    ];
    let asked = [&words[..], &words[..1]].concat();
    assert_eq!(
        board.ran(),
        asked.iter().map(|words| format!("{client} {words}")).collect::<Vec<_>>()
    );
    board.fail(Fault { errno: Some(22), state: "write error", status: "" });
    let failed = load(&board, zynq(), &FULL).unwrap_err();
    assert!(
        failed
            .to_string()
            .starts_with("dfx-mgrd failed in state \"write error\", and says: Load Error"),
        "{failed}"
    );
    assert_eq!(board.left(), (vec![], vec![]));
    // One before 2025.2 takes packages only.
    board.put("etc/dfx-mgrd/old", "");
    for refused in [load(&board, zynq(), &FULL).map(|_| ()), fpga.unload()] {
        assert!(matches!(refused, Err(FpgaError::Owned { daemon: "dfx-mgrd" })), "{refused:?}");
    }
    assert_eq!(board.left(), (vec![], vec![]));
}

#[test]
fn file_for_other_device_is_refused() {
    let folder = folder();
    let board = sysfs(&folder);
    let image = |idcode, part: &str| bit("top", part, &bin(&words(idcode, 9)));
    let z7045 = load(&board, image(0x0373_1093, "7z045ffg900"), &FULL).unwrap_err();
    assert_eq!(
        z7045.to_string(),
        "it is for 7z045 (IDCODE 0x03731093), and this is 7z020 (by --board pynq-z2): build the \
         design for this device"
    );
    for other in [
        image(0x04a4_9093, "xck26-sfvc784"),
        bin(&words(0x1373_1093, 9)),
        rbf(4000),
        image(0x1234_5093, "7z020"),
    ] {
        assert!(matches!(load(&board, other, &FULL), Err(FpgaError::OtherDevice { .. })));
    }
    // Frames for more than the device has.
    let most = 32_364_512 / 32 + 1;
    assert!(matches!(
        load(&board, bin(&words(0x0372_7093, most)), &FULL),
        Err(FpgaError::TooLarge { bytes: 4_045_568, most: 4_045_564, part: "7z020" })
    ));
    // The processor says which device it is, where the caller names no board.
    board.put("sys/devices/soc0/family", "Xilinx Zynq");
    board.put("sys/devices/soc0/soc_id", "0x7");
    let machine = board.machine();
    let fpga = Fpga::find(&machine, None, None).unwrap();
    assert_eq!(fpga.target.to_string(), "7z020 (by /sys/devices/soc0/soc_id)");
    let refused = fpga.load(&Image::new(image(0x0373_1093, "7z045")).unwrap(), &FULL);
    assert!(matches!(refused, Err(FpgaError::OtherDevice { .. })));
    assert_eq!(board.loaded(), None);
    as_usable_as_before(&board, "0");
}

#[test]
fn a_cyclone_takes_an_rbf_as_it_is() {
    let folder = folder();
    let board = Board::new(folder.path(), CYCLONE).with_sysfs();
    let machine = board.machine();
    let fpga = Fpga::find(&machine, None, Some("de10-nano")).unwrap();
    fpga.load(&Image::new(rbf(4001)).unwrap(), &FULL).unwrap();
    assert_eq!(board.loaded(), Some(rbf(4001)));
    let refused =
        |file, options: &Options| fpga.load(&Image::new(file).unwrap(), options).unwrap_err();
    assert!(matches!(
        refused(rbf(4001), &Options { partial: true, ..FULL }),
        FpgaError::NoPartial(_)
    ));
    assert!(matches!(refused(rbf(7_007_204), &FULL), FpgaError::TooLarge { part: "5cseba6", .. }));
    assert!(matches!(refused(zynq(), &FULL), FpgaError::OtherDevice { .. }));
}

#[test]
fn fabric_in_use_is_refused_naming_users() {
    let program = |id, name: &str, node: &str| User::Program {
        id,
        name: name.to_owned(),
        node: node.to_owned(),
    };
    let folder = folder();
    let board = sysfs(&folder)
        .with_process(11, "a\u{1b}[Jp", "/dev/uio0", "")
        .with_process(
            12,
            "idle",
            "/dev/null",
            "76f0a000-76f0b000 r--p 00000000 00:00 0  /lib/libc.so",
        )
        .with_process(
            13,
            "mapper",
            "/dev/null",
            "76f0a000-76f0b000 rw-s 40000000 00:05 7  /dev/mem",
        )
        .with_process(14, "contigo_device", "/dev/contigo/40000000.copy", "")
        .with_process(15, "buffered", "/dev/udmabuf0", "")
        .with_process(
            16,
            "elsewhere",
            "/dev/uio1",
            "76f0a000-76f0b000 rw-s f8003000 00:05 7  /dev/mem",
        );
    board.put("sys/class/uio/uio0/maps/map0/addr", "0x40400000");
    board.put("sys/class/uio/uio1/maps/map0/addr", "0xf8003000");
    board.put("sys/class/contigo/40000000.copy/reset", "");
    board.put("sys/class/u-dma-buf/udmabuf0/size", "4096");
    let devices = "sys/bus/platform/devices";
    board.root.link(&format!("{devices}/40410000.dma/driver"), "../../drivers/xilinx-vdma");
    board.root.link(&format!("{devices}/40400000.axi_dma/driver"), "../../drivers/uio_pdrv_genirq");
    board.root.link(&format!("{devices}/f8003000.dma/driver"), "../../drivers/dma-pl330");
    let Err(FpgaError::InUse(users)) = load(&board, zynq(), &FULL) else { panic!("it is in use") };
    let driver = User::Driver { name: "xilinx-vdma".to_owned(), device: "40410000.dma".to_owned() };
    let programs = [
        program(11, "a\\u{1b}[Jp", "/dev/uio0"),
        program(13, "mapper", "/dev/mem"),
        program(14, "contigo_device", "/dev/contigo/40000000.copy"),
        program(15, "buffered", "/dev/udmabuf0"),
    ];
    assert_eq!(users, [&programs[..], &[driver]].concat());
    assert!(
        FpgaError::InUse(users).to_string().contains("a\\u{1b}[Jp (process 11) has /dev/uio0;")
    );
    // A part: what its caller says is outside may be open, and all else may not.
    let partial = || bit("rp;PARTIAL=TRUE", "7z020clg400", &bin(&words(0x0372_7093, 9)));
    let outside = |nodes: &[&str]| Options {
        partial: true,
        outside: nodes.iter().map(ToString::to_string).collect(),
        dry_run: false,
    };
    let three = ["/dev/mem", "/dev/contigo/40000000.copy", "/dev/udmabuf0"];
    assert!(matches!(
        load(&board, partial(), &outside(&three)),
        Err(FpgaError::InUse(users)) if users == programs[..1]
    ));
    load(&board, partial(), &outside(&[&three[..], &["/dev/uio0"]].concat())).unwrap();
    for id in [11, 13, 14, 15] {
        fs::remove_dir_all(folder.path().join(format!("proc/{id}"))).unwrap();
    }
    assert!(
        matches!(load(&board, zynq(), &FULL), Err(FpgaError::InUse(users)) if users.len() == 1)
    );
    fs::remove_file(folder.path().join(devices).join("40410000.dma/driver")).unwrap();
    as_usable_as_before(&board, "0");
}

/// Programs that have no node of the core itself: VFIO's group, and XRT's driver.
#[test]
fn a_core_behind_vfio_or_xrt_is_in_use() {
    let folder = folder();
    let board = sysfs(&folder)
        .with_process(21, "grouped", "/dev/vfio/7", "")
        .with_process(22, "unsafely", "/dev/vfio/noiommu-7", "")
        .with_process(23, "alone", "/dev/vfio/devices/vfio3", "")
        .with_process(24, "device", "anon_inode:[vfio-device]", "")
        .with_process(25, "xrt", "/dev/dri/renderD129", "")
        .with_process(
            26,
            "screen",
            "/dev/dri/renderD128",
            "76f0a000-76f0b000 rw-s 00000000 00:05 7  /dev/dri/card0",
        )
        .with_process(27, "card", "/dev/vfio/8", "");
    let links = [
        ("sys/bus/platform/devices/40420000.fir/iommu_group", "../../../kernel/iommu_groups/7"),
        ("sys/bus/platform/devices/40420000.fir/driver", "../../drivers/vfio-platform"),
        ("sys/bus/platform/devices/f8003000.dma/iommu_group", "../../../kernel/iommu_groups/8"),
        ("sys/class/drm/renderD129/device/driver", "../../../bus/platform/drivers/zocl-drm"),
        ("sys/class/drm/renderD128/device/driver", "../../../bus/platform/drivers/lima"),
        ("sys/class/drm/card0/device/driver", "../../../bus/platform/drivers/lima"),
    ];
    links.into_iter().for_each(|(link, to)| board.root.link(link, to));
    board.put("sys/bus/platform/devices/40420000.fir/vfio-dev/vfio3/dev", "511:0");
    let Err(FpgaError::InUse(users)) = load(&board, zynq(), &FULL) else { panic!("it is in use") };
    let who: Vec<_> = users.iter().map(ToString::to_string).collect();
    let expected = [
        "grouped (process 21) has /dev/vfio/7",
        "unsafely (process 22) has /dev/vfio/noiommu-7",
        "alone (process 23) has /dev/vfio/devices/vfio3",
        "device (process 24) has anon_inode:[vfio-device]",
        "xrt (process 25) has /dev/dri/renderD129",
    ];
    assert_eq!(who, expected);
    for id in 21..=25 {
        fs::remove_dir_all(folder.path().join(format!("proc/{id}"))).unwrap();
    }
    as_usable_as_before(&board, "0");
}

#[test]
fn busy_or_failed_manager_tells_its_state() {
    let folder = folder();
    let board = sysfs(&folder);
    for (busy, words) in [
        (State::PowerUp, "power up"),
        (State::FirmwareRequest, "firmware request"),
        (State::WriteInit, "write init"),
        (State::Write, "write"),
        (State::WriteComplete, "write complete"),
    ] {
        board.put("sys/class/fpga_manager/fpga0/state", words);
        let refused = load(&board, zynq(), &FULL);
        assert!(matches!(refused, Err(FpgaError::Busy(state)) if state == busy), "{words}");
    }
    board.put("sys/class/fpga_manager/fpga0/state", "operating");
    board.fail(Fault { errno: Some(16), state: "operating", status: "" });
    assert!(matches!(load(&board, zynq(), &FULL), Err(FpgaError::Busy(State::Operating))));
    let failures = [
        (Some(5), "write error", "the transfer broke off"),
        (Some(110), "write complete error", "took all, did not start"),
        (Some(22), "write init error", "MSEL"),
    ];
    for (errno, state, cure) in failures {
        board.fail(Fault { errno, state, status: "reconfig CRC error" });
        let failed = load(&board, zynq(), &FULL).unwrap_err();
        let said = failed.to_string();
        assert!(matches!(failed, FpgaError::Failed { .. }), "{said}");
        assert!(
            said.contains(&format!("in state \"{state}\""))
                && said.contains("and says: reconfig CRC error")
                && said.contains(cure),
            "{said}"
        );
        as_usable_as_before(&board, "0");
    }
    // A kernel that does not report the failure.
    for (rests, words) in [
        (State::Unknown, "unknown"),
        (State::PowerOff, "power off"),
        (State::Reset, "reset"),
        (State::FirmwareRequestError, "firmware request error"),
    ] {
        board.fail(Fault { errno: None, state: words, status: "" });
        let failed = load(&board, zynq(), &FULL);
        assert!(
            matches!(failed, Err(FpgaError::NotOperating { state, .. }) if state == rests),
            "{words}"
        );
        as_usable_as_before(&board, "0");
    }
}

#[test]
fn one_load_at_a_time() {
    let folder = folder();
    let board = sysfs(&folder);
    let firmware = fs::File::open(folder.path().join("lib/firmware")).unwrap();
    let other = Flock::lock(firmware, FlockArg::LockExclusiveNonblock).unwrap();
    assert!(matches!(load(&board, zynq(), &FULL), Err(FpgaError::Loading)));
    assert_eq!((board.loaded(), board.flags()), (None, vec![]));
    drop(other);
    as_usable_as_before(&board, "0");
}

#[test]
fn low_memory_and_late_sync_are_refused() {
    let folder = folder();
    let board = sysfs(&folder);
    board.put("proc/meminfo", "MemAvailable: 1 kB");
    assert!(matches!(
        load(&board, zynq(), &FULL),
        Err(FpgaError::NoMemory { needs: 1200, available: 1024 })
    ));
    board.put("proc/meminfo", "MemAvailable: 100 kB");
    let late = [vec![0xffff_ffff; 24], words(0x0372_7093, 9)].concat();
    assert!(matches!(
        load(&board, bin(&late), &FULL),
        Err(FpgaError::LateSync { offset: 144, header: 128 })
    ));
    let mut encrypted = words(0x0372_7093, 0);
    encrypted.truncate(20);
    encrypted.extend([0x3001_6004, 1, 2, 3, 4]);
    assert!(matches!(load(&board, bin(&encrypted), &FULL), Err(FpgaError::Encrypted)));
    let dry = Options { dry_run: true, ..FULL };
    let loaded = load(&board, zynq(), &dry).unwrap();
    assert_eq!((loaded.after, board.loaded(), board.flags()), (State::Unknown, None, vec![]));
    as_usable_as_before(&board, "0");
}

/// A kernel whose files are the folder's.
#[derive(Debug)]
struct Writes;

impl Kernel for Writes {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        fs::OpenOptions::new().write(true).open(path)?.write_all(bytes)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
}

#[test]
fn wayless_or_nonsense_machine_says_so() {
    let folder = folder();
    let board = Board::new(folder.path(), ZYNQ);
    assert!(matches!(load(&board, zynq(), &FULL), Err(FpgaError::NoWay)));
    let machine = board.machine();
    let find = |manager, board| Fpga::find(&machine, manager, board);
    assert!(matches!(find(None, Some("acme")), Err(FpgaError::NoSuchBoard(_))));
    assert!(matches!(find(Some("fpga7"), None), Err(FpgaError::NoSuchManager { .. })));
    board.put("sys/class/fpga_manager/fpga1/state", "\u{fffd}nonsense");
    assert!(matches!(
        find(None, None),
        Err(FpgaError::SeveralManagers(names)) if names == ["fpga0", "fpga1"]
    ));
    for file in [
        "sys/class/uio/uio0/maps/map0/addr",
        "sys/class/fpga_bridge/x/state",
        "sys/devices/soc0/soc_id",
        "proc/9/maps",
        "proc/9/fd",
    ] {
        board.put(file, "0xzz\u{0} -1");
    }
    board.put("sys/devices/soc0/family", "Xilinx Zynq");
    board.put("proc/meminfo", "MemAvailable: -1 kB");
    fs::write(folder.path().join("proc/9/comm"), [0xff, 0xfe]).unwrap();
    fs::create_dir_all(folder.path().join("sys/class/fpga_manager/fpga0/firmware")).unwrap();
    assert_eq!(find(Some("fpga1"), None).unwrap().state(), State::Unreadable);
    // The real kernel's answer to a write into a folder.
    let machine = Machine::below(folder.path(), Writes);
    let fpga = Fpga::find(&machine, Some("fpga0"), None).unwrap();
    assert_eq!((fpga.target.part, fpga.users().unwrap().len()), (None, 0));
    assert!(matches!(
        fpga.load(&Image::new(zynq()).unwrap(), &FULL),
        Err(FpgaError::Failed { state: State::Unknown, .. })
    ));
    assert_eq!(board.left(), (vec![], vec![]));
    let copy = Machine::copy(folder.path());
    let error = Fpga::find(&copy, Some("fpga0"), None)
        .unwrap()
        .load(&Image::new(zynq()).unwrap(), &FULL)
        .unwrap_err();
    assert!(
        matches!(&error, FpgaError::Place { .. })
            && error.to_string().contains("nothing is written to a copied machine"),
        "{error}"
    );
    assert!(matches!(
        Fpga::find(&Machine::copy("/nowhere"), None, None),
        Err(FpgaError::NoManager)
    ));
}

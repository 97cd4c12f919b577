//! `contigo board --registers`, `contigo board prepare` and `contigo power` as programs, on a
//! board in a folder. Its `/dev/mem` is a file with holes.

use super::{Outcome, Run, overlay::ZYNQ};
use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
};

/// A design for ZynqMP. HPC0 has 128 bits, HPC1 64, HP2 128, LPD 32, HPM0 128, and HPM1 64.
const DESIGN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tests/design/zynqmp.hwh");
const SHIFTERS: u64 = 0xf800_0900;

/// A board in a folder, all of whose registers are 0.
fn board(folder: &Path, compatible: &str) -> std::io::Result<File> {
    let tree = folder.join("sys/firmware/devicetree/base");
    let manager = folder.join("sys/class/fpga_manager/fpga0");
    for folder in [&tree, &manager, &folder.join("dev"), &folder.join("proc")] {
        fs::create_dir_all(folder)?;
    }
    fs::write(tree.join("compatible"), compatible)?;
    fs::write(manager.join("name"), "Xilinx FPGA Manager\n")?;
    fs::write(manager.join("state"), "operating\n")?;
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).open(folder.join("dev/mem"))?;
    file.set_len(0x1_0000_0000)?;
    Ok(file)
}

fn word(file: &File, addr: u64) -> std::io::Result<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, addr)?;
    Ok(u32::from_ne_bytes(bytes))
}

#[test]
fn a_zynqs_level_shifters_are_shown() -> Outcome {
    let folder = tempfile::tempdir()?;
    let memory = board(folder.path(), "xlnx,zynq-7000\0")?;
    let place = folder.path().to_str().ok_or("a path that is not text")?;
    let run = Run::of(&["board", "--registers", "--machine", place])?;
    assert_eq!(run.status(), Some(1), "{}", run.stderr());
    let shifters = run
        .stdout()
        .lines()
        .find(|line| line.contains("level shifters"))
        .map(str::to_owned)
        .unwrap_or_default();
    assert!(
        shifters.contains(" off ") && shifters.contains("wrong: prepare sets it"),
        "{}",
        run.stdout()
    );
    let run = Run::of(&["board", "prepare", "--machine", place])?;
    assert!(
        run.status() == Some(0) && run.stdout().contains("nothing was written: --yes writes"),
        "{}{}",
        run.stdout(),
        run.stderr()
    );
    assert_eq!(word(&memory, SHIFTERS)?, 0);
    let json = Run::of(&["board", "prepare", "--machine", place, "--json"])?.json()?;
    assert_eq!(
        (json["written"].as_bool(), json["writes"][0]["addr"].as_str()),
        (Some(false), Some("0xf8000900"))
    );
    let run = Run::of(&["board", "prepare", "--machine", place, "--yes"])?;
    assert!(
        run.status() == Some(2) && run.stderr().contains("cannot be used with '--yes'"),
        "{}",
        run.stderr()
    );
    assert_eq!(word(&memory, SHIFTERS)?, 0, "nothing is written to a copy");
    memory.write_all_at(&0xf_u32.to_ne_bytes(), SHIFTERS)?;
    let run = Run::of(&["board", "prepare", "--machine", place])?;
    assert!(
        run.status() == Some(0) && run.stdout().starts_with("nothing to set; --design"),
        "{}",
        run.stdout()
    );
    let run = Run::of(&["board", "--registers", "--machine", place])?;
    assert_eq!(run.status(), Some(0), "{}", run.stderr());
    let run = Run::of(&["board", "prepare", "--machine", place, "--design", DESIGN])?;
    assert_eq!(
        run.stderr(),
        "contigo: the design is for a Zynq UltraScale+, and this machine is a Zynq-7000\n"
    );
    Ok(())
}

/// The design has HP0 with 64 bits, and gives its fabric the first reset. The port is touched only
/// while the level shifters are on.
#[test]
fn zynq_port_is_told_behind_its_shifters() -> Outcome {
    let folder = tempfile::tempdir()?;
    let memory = board(folder.path(), "xlnx,zynq-7000\0")?;
    let place = folder.path().to_str().ok_or("a path that is not text")?;
    for (value, addr) in [(1_u32, 0xf800_8000), (1, 0xf800_8014), (0xf, 0xf800_0240)] {
        memory.write_all_at(&value.to_ne_bytes(), addr)?;
    }
    let run = Run::of(&["board", "prepare", "--machine", place, "--design", ZYNQ, "--json"])?;
    let json: serde_json::Value = serde_json::from_str(&run.stdout())?;
    // They are not in `left`: --yes sets them, too.
    assert_eq!((run.status(), json["left"].as_array().map(Vec::len)), (Some(0), Some(0)), "{json}");
    assert_eq!(json["behind"], serde_json::json!(["HP0 read width", "HP0 write width"]));
    let run = Run::of(&["board", "prepare", "--machine", place, "--design", ZYNQ])?;
    assert!(
        run.stdout().contains("sets those that are wrong: HP0 read width, HP0 write width\n"),
        "{}",
        run.stdout()
    );
    // As the tool leaves them, with --yes: src/ports/tests.rs.
    for (value, addr) in
        [(0_u32, 0xf800_8000), (0, 0xf800_8014), (0xe, 0xf800_0240), (0xf, SHIFTERS)]
    {
        memory.write_all_at(&value.to_ne_bytes(), addr)?;
    }
    assert_eq!(
        Run::of(&["board", "--registers", "--machine", place, "--design", ZYNQ])?.status(),
        Some(0)
    );
    fs::write(folder.path().join("sys/class/fpga_manager/fpga0/state"), "unknown\n")?;
    let run = Run::of(&["board", "--registers", "--machine", place, "--design", ZYNQ])?;
    assert_eq!(run.status(), Some(1), "{}", run.stdout());
    assert!(
        run.stderr().starts_with("contigo: wrong or unread: HP0 read width, HP0 write width;"),
        "{}",
        run.stderr()
    );
    assert!(run.stdout().contains("closed: no bitstream"), "{}", run.stdout());
    Ok(())
}

/// A hang of a board that was never set up for its design: the bridge to the core is in reset. The
/// ports to the SDRAM are listed and never wrong, as a block may be for a core behind the ACP.
#[test]
fn a_cyclones_closed_bridge_is_status_1() -> Outcome {
    let folder = tempfile::tempdir()?;
    let memory = board(folder.path(), "altr,socfpga-cyclone5\0altr,socfpga\0")?;
    let place = folder.path().to_str().ok_or("a path that is not text")?;
    let tree = folder.path().join("sys/firmware/devicetree/base");
    for (node, compatible) in
        [("copy@ff200000", "generic-uio\0"), ("udmabuf0", "ikwzm,u-dma-buf\0")]
    {
        fs::create_dir_all(tree.join(node))?;
        fs::write(tree.join(node).join("compatible"), compatible)?;
    }
    memory.write_all_at(&7_u32.to_ne_bytes(), 0xffd0_501c)?;
    let run = Run::of(&["board", "--registers", "--machine", place])?;
    let words = "contigo: wrong or unread: bridge to its registers (LW);";
    assert!(run.status() == Some(1) && run.stderr().starts_with(words), "{}", run.stderr());
    assert!(run.stdout().contains("wrong: bridge enable in"), "{}", run.stdout());
    memory.write_all_at(&5_u32.to_ne_bytes(), 0xffd0_501c)?;
    assert_eq!(Run::of(&["board", "--registers", "--machine", place])?.status(), Some(0));
    Ok(())
}

#[test]
fn another_machine_and_wrong_usage_are_refused() -> Outcome {
    let folder = tempfile::tempdir()?;
    let place = folder.path().to_str().ok_or("a path that is not text")?;
    let run = Run::of(&["board", "--registers", "--machine", place])?;
    assert_eq!(run.status(), Some(1));
    assert!(
        run.stderr()
            .starts_with("contigo: the device tree names no SoC whose registers are known here"),
        "{}",
        run.stderr()
    );
    let memory = board(folder.path(), "altr,socfpga-cyclone5\0altr,socfpga\0")?;
    memory.set_len(0x1000)?;
    let run = Run::of(&["board", "--registers", "--machine", place])?;
    assert!(
        run.status() == Some(1)
            && run.stdout().contains("bus error at")
            && run.stderr().contains("no register could be read"),
        "{}{}",
        run.stdout(),
        run.stderr()
    );
    for args in [
        &["board", "--design", DESIGN][..],
        &["board", "--json", "prepare"],
        &["board", "prepare", "--force"],
    ] {
        assert_eq!(Run::of(args)?.status(), Some(2), "{args:?}");
    }
    Ok(())
}

#[test]
fn rails_of_copy_are_read_buses_unopened() -> Outcome {
    let folder = tempfile::tempdir()?;
    let place = folder.path().to_str().ok_or("a path that is not text")?;
    let monitor = folder.path().join("sys/class/hwmon/hwmon3");
    fs::create_dir_all(&monitor)?;
    for (file, text) in [
        ("name", "ina3221"),
        ("in1_label", "VDD_IN"),
        ("in1_input", "19000"),
        ("curr1_input", "210"),
    ] {
        fs::write(monitor.join(file), text)?;
    }
    // Not as the table, which breaks a line where the folder's name is long.
    let run = Run::of(&["power", "--json", "--machine", place, "--monitor", "ina260@7:0x40"])?;
    assert_eq!(run.status(), Some(0));
    assert!(
        run.stdout().contains("VDD_IN")
            && run.stdout().contains("i2c-7: no device of a copied machine is opened"),
        "{}",
        run.stdout()
    );
    assert!(Run::of(&["power", "--machine", place])?.stdout().contains("3.990 W"));
    let run = Run::of(&["power", "--monitor", "ina226@1:0x40"])?;
    assert!(
        run.status() == Some(2) && run.stderr().contains("is no monitor: write ina260@BUS:ADDR"),
        "{}",
        run.stderr()
    );
    assert_eq!(Run::of(&["demo", "--monitor", "ina260@1:0x40"])?.status(), Some(2));
    Ok(())
}

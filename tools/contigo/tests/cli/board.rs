//! `contigo board --registers`, `contigo board prepare` and `contigo power` as programs, on a
//! board in a folder. Its `/dev/mem` is a file with holes.

use super::overlay::{ZYNQ, ZYNQMP};
use super::{Answer, Copied, Outcome, Run};
use serde_json::json;
use std::fs::File;
use std::os::unix::fs::FileExt;

const SHIFTERS: u64 = 0xf800_0900;
const REGISTERS: [&str; 2] = ["board", "--registers"];
const PREPARE: [&str; 2] = ["board", "prepare"];

/// A board in a folder, all of whose registers are 0.
fn board(compatible: &str) -> Answer<Copied> {
    let board = Copied::new()?;
    board.root.put("sys/firmware/devicetree/base/compatible", compatible);
    board.root.put("sys/class/fpga_manager/fpga0/name", "Xilinx FPGA Manager\n");
    board.root.put("sys/class/fpga_manager/fpga0/state", "operating\n");
    board.root.folder("proc");
    board.root.put("dev/mem", "");
    board.root.register(SHIFTERS, 0);
    Ok(board)
}

fn shifters(board: &Copied) -> Answer<u32> {
    let mut bytes = [0; 4];
    File::open(board.root.0.join("dev/mem"))?.read_exact_at(&mut bytes, SHIFTERS)?;
    Ok(u32::from_ne_bytes(bytes))
}

#[test]
fn a_zynqs_level_shifters_are_shown() -> Outcome {
    let board = board("xlnx,zynq-7000\0")?;
    let text = board.run(&REGISTERS)?.ends(1).stdout();
    let row = text.lines().find(|line| line.contains("level shifters")).unwrap_or_default();
    assert!(row.contains(" off ") && row.contains("wrong: prepare sets it"), "{text}");
    board.run(&PREPARE)?.ends(0).says(&["nothing was written: --yes writes"]);
    let json = board.run(&["board", "prepare", "--json"])?.json()?;
    assert_eq!(
        (&json["written"], &json["writes"][0]["addr"]),
        (&json!(false), &json!("0xf8000900"))
    );
    board
        .run(&["board", "prepare", "--yes"])?
        .ends(2)
        .complains(&["cannot be used with '--machine"]);
    assert_eq!(shifters(&board)?, 0, "nothing is written to a copy");
    board.root.register(SHIFTERS, 0xf);
    assert!(board.run(&PREPARE)?.ends(0).stdout().starts_with("nothing to set; --design"));
    board.run(&REGISTERS)?.ends(0);
    board
        .run(&["board", "prepare", "--design", ZYNQMP])?
        .refuses("the design is for a Zynq UltraScale+, and this machine is a Zynq-7000");
    Ok(())
}

/// The design has HP0 with 64 bits, and gives its fabric the first reset. The port is touched only
/// while the level shifters are on.
#[test]
fn zynq_port_is_told_behind_its_shifters() -> Outcome {
    let board = board("xlnx,zynq-7000\0")?;
    let set = |values: &[(u64, u32)]| {
        values.iter().for_each(|&(addr, value)| board.root.register(addr, value));
    };
    set(&[(0xf800_8000, 1), (0xf800_8014, 1), (0xf800_0240, 0xf)]);
    let run = board.run(&["board", "prepare", "--design", ZYNQ, "--json"])?.ends(0);
    let json = run.any_json()?;
    // They are not in `left`: --yes sets them, too.
    assert_eq!(json["left"], json!([]));
    assert_eq!(json["behind"], json!(["HP0 read width", "HP0 write width"]));
    board
        .run(&["board", "prepare", "--design", ZYNQ])?
        .says(&["sets those that are wrong: HP0 read width, HP0 write width\n"]);
    // As the tool leaves them, with --yes: src/ports/tests.rs.
    set(&[(0xf800_8000, 0), (0xf800_8014, 0), (0xf800_0240, 0xe), (SHIFTERS, 0xf)]);
    let compare = ["board", "--registers", "--design", ZYNQ];
    board.run(&compare)?.ends(0);
    board.root.put("sys/class/fpga_manager/fpga0/state", "unknown\n");
    board
        .run(&compare)?
        .ends(1)
        .says(&["closed: no bitstream"])
        .complains(&["contigo: wrong or unread: HP0 read width, HP0 write width;"]);
    Ok(())
}

/// A hang of a board that was never set up for its design: the bridge to the core is in reset. The
/// ports to the SDRAM are listed and never wrong, as a block may be for a core behind the ACP.
#[test]
fn a_cyclones_closed_bridge_is_status_1() -> Outcome {
    let board = board("altr,socfpga-cyclone5\0altr,socfpga\0")?;
    board.root.node("copy@ff200000", "generic-uio");
    board.root.node("udmabuf0", "ikwzm,u-dma-buf");
    board.root.register(0xffd0_501c, 7);
    board
        .run(&REGISTERS)?
        .ends(1)
        .says(&["wrong: bridge enable in"])
        .complains(&["contigo: wrong or unread: bridge to its registers (LW);"]);
    board.root.register(0xffd0_501c, 5);
    board.run(&REGISTERS)?.ends(0);
    Ok(())
}

#[test]
fn another_machine_and_wrong_usage_are_refused() -> Outcome {
    let none = "the device tree names no SoC whose registers are known here";
    Copied::new()?.run(&REGISTERS)?.refuses(none);
    let board = board("altr,socfpga-cyclone5\0altr,socfpga\0")?;
    File::options().write(true).open(board.root.0.join("dev/mem"))?.set_len(0x1000)?;
    board
        .run(&REGISTERS)?
        .ends(1)
        .says(&["bus error at"])
        .complains(&["no register could be read"]);
    for args in [
        &["board", "--design", ZYNQ][..],
        &["board", "--json", "prepare"],
        &["board", "prepare", "--force"],
    ] {
        Run::of(args)?.ends(2);
    }
    Ok(())
}

#[test]
fn rails_of_copy_are_read_buses_unopened() -> Outcome {
    let copy = Copied::new()?;
    for (file, text) in [
        ("name", "ina3221"),
        ("in1_label", "VDD_IN"),
        ("in1_input", "19000"),
        ("curr1_input", "210"),
    ] {
        copy.root.put(&format!("sys/class/hwmon/hwmon3/{file}"), text);
    }
    // Not as the table, which breaks a line where the folder's name is long.
    copy.run(&["power", "--json", "--monitor", "ina260@7:0x40"])?
        .ends(0)
        .says(&["VDD_IN", "i2c-7: no device of a copied machine is opened"]);
    copy.run(&["power"])?.says(&["3.990 W"]);
    Run::of(&["power", "--monitor", "ina226@1:0x40"])?
        .ends(2)
        .complains(&["is no monitor: write ina260@BUS:ADDR"]);
    Run::of(&["demo", "--monitor", "ina260@1:0x40"])?.ends(2);
    Ok(())
}

//! `contigo board prepare --yes` on a board in a folder. Its `/dev/mem` is a file with holes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

use super::*;
use contigo_bringup::machine::fake::Board;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

/// HP0 with 64 bits, and the fabric's first reset.
const ZYNQ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tests/design/zynq.hwh");
/// HPC0 has 128 bits, HPC1 64, HP2 128, LPD 32, HPM0 128, and HPM1 64.
const ZYNQMP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tests/design/zynqmp.hwh");
const SHIFTERS: u64 = 0xf800_0900;

/// A board in a folder, with these registers and the rest 0.
struct Registers {
    folder: TempDir,
    machine: Machine,
}

impl Registers {
    fn new(compatible: &str, values: &[(u64, u32)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let board = Board::new(folder.path(), "Xilinx FPGA Manager");
        board.put("sys/class/fpga_manager/fpga0/state", "operating");
        board.put("sys/firmware/devicetree/base/compatible", &format!("{compatible}\0"));
        board.put("dev/mem", "");
        let memory = File::options().write(true).open(folder.path().join("dev/mem")).unwrap();
        memory.set_len(1 << 32).unwrap();
        // The file begins with `put`'s line break, which is no register: 0 overwrites it.
        for (addr, value) in values.iter().chain(&[(0, 0)]) {
            memory.write_all_at(&value.to_ne_bytes(), *addr).unwrap();
        }
        Self { machine: board.machine(), folder }
    }

    fn word(&self, addr: u64) -> u32 {
        let mut bytes = [0; 4];
        let file = File::open(self.folder.path().join("dev/mem")).unwrap();
        file.read_exact_at(&mut bytes, addr).unwrap();
        u32::from_ne_bytes(bytes)
    }

    /// The report as JSON and as text, and the fields that stay wrong.
    fn prepared(
        &self,
        design: Option<&str>,
        yes: bool,
    ) -> (serde_json::Value, String, Result<(), Failure>) {
        let options = Prepare {
            design: design.map(PathBuf::from),
            loaded: false,
            yes,
            machine: None,
            json: false,
        };
        let (prepared, facts) = prepared(&self.machine, &options).ok().unwrap();
        (serde_json::to_value(&prepared).unwrap(), prepared.listed(design.is_some()), wrong(&facts))
    }
}

fn fields(json: &serde_json::Value) -> Vec<&str> {
    json["writes"].as_array().unwrap().iter().filter_map(|write| write["field"].as_str()).collect()
}

/// The port is accessed only while the level shifters are on.
#[test]
fn a_zynqs_port_is_set_after_its_level_shifters() {
    let board =
        Registers::new("xlnx,zynq-7000", &[(0xf800_8000, 1), (0xf800_8014, 1), (0xf800_0240, 0xf)]);
    let (json, text, left) = board.prepared(Some(ZYNQ), true);
    assert!(left.is_ok() && text.contains("set, and read back"), "{text}");
    assert!(json["written"] == true && json["writes"][0]["addr"] == "0xf8000900", "{json}");
    assert_eq!(
        fields(&json),
        ["level shifters", "reset 0 of the fabric", "HP0 read width", "HP0 write width"]
    );
    assert_eq!((board.word(SHIFTERS), board.word(0xf800_0240)), (0xf, 0xe));
    assert_eq!((board.word(0xf800_8000), board.word(0xf800_8014)), (0, 0));
    let (_, text, _) = board.prepared(Some(ZYNQ), true);
    assert!(text.starts_with("nothing to set"), "{text}");
}

#[test]
fn widths_are_set_and_held_block_is_left() {
    // AFI_FM6, the block of LPD, is held in reset.
    let board = Registers::new("xlnx,zynqmp", &[(0xff5e_023c, 0x8_0000)]);
    let (json, text, left) = board.prepared(Some(ZYNQMP), true);
    assert!(
        left.unwrap_err()
            .to_string()
            .starts_with("wrong or unread: LPD read width, LPD write width; start no job")
    );
    assert_eq!(fields(&json), ["HPC1 read width", "HPC1 write width", "HPM0 width", "HPM1 width"]);
    assert_eq!(board.word(0xfd61_5000), 0x600, "128 bits, and 64");
    assert_eq!((board.word(0xfd37_0000), board.word(0xfd37_0014)), (1, 1));
    assert_eq!(
        (json["left"][0]["field"].as_str(), json["left"][0]["verdict"].as_str()),
        (Some("LPD read width"), Some("not read"))
    );
    assert_eq!((board.word(0xff9b_0000), json["left"].as_array().map(Vec::len)), (0, Some(2)));
    assert!(text.contains("not to be set here:\n"), "{text}");
}

//! The four commands, on a board in a folder.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

use super::*;
use contigo_bringup::machine::fake::Board;
use std::fs;
use tempfile::TempDir;

const NONE: LoadOptions = LoadOptions { partial: false, outside: Vec::new(), dry_run: false };

fn which(board: Option<&str>) -> Which {
    Which { board: board.map(str::to_owned), manager: None, region: None, json: false }
}

fn sysfs(folder: &TempDir) -> Board {
    Board::new(folder.path(), "Xilinx Zynq FPGA Manager").with_sysfs()
}

/// A `.bin` for a 7-series device: sync word, IDCODE, DESYNC.
fn file(folder: &TempDir, idcode: u32) -> PathBuf {
    let path = folder.path().join("top.bin");
    let words = [0xffff_ffff, 0xaa99_5566, 0x3001_8001, idcode, 0x3000_8001, 0x0000_000d];
    fs::write(&path, words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect::<Vec<_>>())
        .unwrap();
    path
}

#[test]
fn a_load_is_told_with_its_states_and_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let board = sysfs(&folder);
    let (machine, path) = (board.machine(), file(&folder, 0x0372_7093));
    let dry =
        load(&machine, &path, &LoadOptions { dry_run: true, ..NONE }, &which(Some("pynq-z2")))
            .ok()
            .unwrap();
    assert!(
        dry.listed().ends_with("checked: nothing was written; without --dry-run it is loaded")
            && board.loaded().is_none()
    );
    let done = load(&machine, &path, &NONE, &which(Some("pynq-z2"))).ok().unwrap();
    let json = serde_json::to_value(&done).unwrap();
    assert!(json["state_before"] == "unknown" && json["state_after"] == "operating", "{json}");
    assert!(json["loaded"] == true && json["bitstream"]["idcode"] == "0x03727093", "{json}");
    let said = done.listed();
    for word in [
        "7z020 (by --board pynq-z2)",
        "the FPGA manager",
        "operating",
        "level shifters",
        "loaded: the fabric runs",
    ] {
        assert!(said.contains(word), "{word}:\n{said}");
    }
    let state = status(&machine, &which(None)).ok().unwrap();
    assert_eq!(
        (state.state.as_str(), state.users.len(), state.unseen.as_deref()),
        ("operating", 0, None)
    );
    assert!(state.listed().contains("a Zynq-7000 (by Xilinx Zynq FPGA Manager)"));
}

#[test]
fn an_overlay_is_taken_away_again() {
    let folder = tempfile::tempdir().unwrap();
    let board = Board::new(folder.path(), "Xilinx Zynq FPGA Manager").with_overlays();
    let (machine, path) = (board.machine(), file(&folder, 0x0372_7093));
    let done = load(&machine, &path, &NONE, &which(None)).ok().unwrap();
    assert!(done.listed().contains("lwhps2fpga: open"));
    let gone = unload(&machine, &which(None)).ok().unwrap();
    assert!(gone.listed().contains("lwhps2fpga: closed") && board.left().1.is_empty());
}

#[test]
fn each_refusal_names_its_file_or_its_fabric() {
    let folder = tempfile::tempdir().unwrap();
    let board = sysfs(&folder);
    let (machine, path) = (board.machine(), file(&folder, 0x0373_1093));
    let said = |failure: Option<Failure>| failure.unwrap().to_string();
    let other = said(load(&machine, &path, &NONE, &which(Some("pynq-z2"))).err());
    assert!(other.starts_with(&format!("{}: it is for 7z045", path.display())), "{other}");
    let unload = said(unload(&machine, &which(None)).err());
    assert!(unload.starts_with("nothing here can be unloaded by the FPGA manager"), "{unload}");
    let absent = said(open(&machine, Path::new("/nowhere/x.bit")).err());
    assert!(absent.starts_with("/nowhere/x.bit: it cannot be read"), "{absent}");
}

/// Reading a pipe would block, and a file larger than the memory would end other programs.
#[test]
fn unreadable_file_is_refused_unopened() {
    let folder = tempfile::tempdir().unwrap();
    let board = sysfs(&folder);
    let machine = board.machine();
    let said = |path: &Path| open(&machine, path).err().unwrap().to_string();
    let pipe = folder.path().join("top.fifo");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for path in [pipe.as_path(), folder.path(), Path::new("/dev/null")] {
        assert!(
            said(path).ends_with(
                "it is a folder, a pipe or a device: give a .bit, .bin, .xclbin or .rbf"
            ),
            "{}",
            said(path)
        );
    }
    let large = folder.path().join("large.bin");
    fs::File::create(&large).unwrap().set_len(100 << 20).unwrap();
    board.put("proc/meminfo", "MemAvailable: 1024 kB");
    assert!(
        said(&large).contains("it has 104857600 bytes, and 1048576 of memory are left"),
        "{}",
        said(&large)
    );
    board.put("proc/meminfo", "MemAvailable: 400000 kB");
    assert!(said(&large).contains("it is no bitstream"), "{}", said(&large));
    fs::File::create(&large).unwrap().set_len(129 << 20).unwrap();
    assert!(said(&large).contains("no bitstream has more than 134217728"), "{}", said(&large));
}

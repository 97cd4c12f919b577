//! `contigo fpga` as a program: a file is read on any machine.

use super::{Outcome, Run};
use std::fs;

/// A `.bin` for 7Z020: sync word, IDCODE, DESYNC.
const WORDS: [u32; 6] =
    [0xffff_ffff, 0xaa99_5566, 0x3001_8001, 0x0372_7093, 0x3000_8001, 0x0000_000d];

#[test]
fn a_file_is_described_and_a_bad_one_is_status_1() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("top.bin");
    let bytes = WORDS.map(u32::to_be_bytes).concat();
    fs::write(&path, &bytes)?;
    let file = path.to_str().ok_or("a path that is not text")?;
    let run = Run::of(&["fpga", "info", file])?.ends(0).says(&["0x03727093", "7z020, Zynq-7000"]);
    assert_eq!(run.stderr(), "");
    let json = Run::of(&["fpga", "info", file, "--json"])?.json()?;
    assert!(
        json["device"] == "7z020" && json["bytes"] == 24 && json["partial"].is_null(),
        "{json}"
    );
    fs::write(&path, &bytes[..20])?;
    Run::of(&["fpga", "info", file])?.refuses(&format!("contigo: {file}: it is cut: "));
    Ok(())
}

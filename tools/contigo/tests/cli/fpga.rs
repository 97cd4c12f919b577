//! `contigo fpga` as a program: a file is read on any machine, and wrong usage is refused.

use super::{Outcome, Run};
use std::fs;

/// A `.bin` for 7Z020: sync word, IDCODE, DESYNC.
const WORDS: [u32; 6] =
    [0xffff_ffff, 0xaa99_5566, 0x3001_8001, 0x0372_7093, 0x3000_8001, 0x0000_000d];

#[test]
fn a_file_is_described_and_a_bad_one_is_status_1() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("top.bin");
    let bytes: Vec<_> = WORDS.iter().flat_map(|word| word.to_be_bytes()).collect();
    fs::write(&path, &bytes)?;
    let file = path.to_str().ok_or("a path that is not text")?;
    let run = Run::of(&["fpga", "info", file])?;
    assert_eq!((run.status(), run.stderr().as_str()), (Some(0), ""));
    assert!(
        run.stdout().contains("0x03727093") && run.stdout().contains("7z020, Zynq-7000"),
        "{}",
        run.stdout()
    );
    let json = Run::of(&["fpga", "info", file, "--json"])?.json()?;
    assert_eq!(
        (json["device"].as_str(), json["bytes"].as_u64(), json["partial"].is_null()),
        (Some("7z020"), Some(24), true)
    );
    fs::write(&path, bytes.get(..20).unwrap_or_default())?;
    let run = Run::of(&["fpga", "info", file])?;
    assert_eq!((run.status(), run.stdout().as_str()), (Some(1), ""));
    assert!(run.stderr().starts_with(&format!("contigo: {file}: it is cut: ")), "{}", run.stderr());
    Ok(())
}

#[test]
fn wrong_usage_is_status_2() -> Outcome {
    for args in [
        &["fpga"][..],
        &["fpga", "load"],
        &["fpga", "load", "a.bit", "--outside", "/dev/uio0"],
        &["fpga", "load", "a.bit", "--force"],
    ] {
        let run = Run::of(args)?;
        assert_eq!(run.status(), Some(2), "{args:?}");
    }
    Ok(())
}

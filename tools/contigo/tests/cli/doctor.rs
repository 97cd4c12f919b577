//! `contigo doctor` as a program: its exit status, its table and its JSON.

use super::{Outcome, Run, overlay::ZYNQ};
use std::fs;

#[test]
fn the_status_says_whether_there_is_a_fault() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = folder.path().to_str().ok_or("a path that is not text")?;
    let run = Run::of(&["doctor", "--machine", root])?;
    assert_eq!((run.status(), run.stdout().as_str()), (Some(2), ""));
    assert!(run.stderr().contains("proc/meminfo cannot be read: mount /proc"), "{}", run.stderr());
    fs::create_dir(folder.path().join("proc"))?;
    fs::write(folder.path().join("proc/meminfo"), [7, 255, 0])?;
    let run = Run::of(&["doctor", "--machine", root])?;
    assert_eq!(run.status(), Some(2));
    assert!(run.stderr().contains("has no line MemTotal: copy the machine's"), "{}", run.stderr());

    fs::write(folder.path().join("proc/meminfo"), "MemTotal: 500000 kB\n")?;
    let run = Run::of(&["doctor", "--machine", root])?;
    assert_eq!((run.status(), run.stderr().as_str()), (Some(0), ""));
    assert!(run.stdout().starts_with("faults: 0, notes: 0, looked at: "), "{}", run.stdout());
    assert!(Run::of(&["doctor", "--all", "--machine", root])?.stdout().contains("cma-missing"));

    fs::write(folder.path().join("proc/cmdline"), "swiotlb=force\n")?;
    let run = Run::of(&["doctor", "--machine", root])?;
    assert_eq!(run.status(), Some(1));
    for said in [
        "swiotlb-forced",
        "  found  swiotlb=force\n",
        "  cure   take swiotlb=force from",
        "  from   Linux, ",
        "\nfaults: 1, ",
    ] {
        assert!(run.stdout().contains(said), "{said}: {}", run.stdout());
    }
    let run = Run::of(&["doctor", "--json", "--machine", root])?;
    assert_eq!(run.status(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&run.output.stdout)?;
    let checks = json["checks"].as_array().ok_or("no checks")?;
    assert!(json["version"] == 1 && json["faults"] == 1 && checks.len() >= 40, "{json}");
    let bad: Vec<_> = checks
        .iter()
        .filter(|check| check["verdict"] == "fault")
        .map(|check| &check["id"])
        .collect();
    assert_eq!(bad, ["swiotlb-forced"]);
    Ok(())
}

/// Here it finds what there is, and ends.
#[test]
fn this_machine_is_looked_at() -> Outcome {
    let run = Run::of(&["doctor", "--all"])?;
    assert!(
        matches!(run.status(), Some(0 | 1)) && run.stdout().contains("config-vfio"),
        "{}{}",
        run.stdout(),
        run.stderr()
    );
    // A build machine has no engine of a SoC; a board measures one.
    let json = Run::of(&["doctor", "--probe", "--json"])?.json()?;
    let probed = json["checks"]
        .as_array()
        .and_then(|checks| checks.iter().find(|check| check["id"] == "port-measured"))
        .ok_or("no checks")?;
    let (verdict, found) = (
        probed["verdict"].as_str().unwrap_or_default(),
        probed["found"].as_str().unwrap_or_default(),
    );
    assert!(
        verdict == "fine" || verdict == "skipped" && found.starts_with("not measurable: "),
        "{probed}"
    );
    assert_eq!(Run::of(&["doctor", "--probe", "--machine", "."])?.status(), Some(2));
    // A design that is none is said. Another machine's, or no right to its registers, is a row.
    let run = Run::of(&["doctor", "--probe", "--design", "/nowhere/top.hwh"])?;
    assert!(
        run.stdout().is_empty() && run.stderr().contains("/nowhere/top.hwh: "),
        "{}{}",
        run.stdout(),
        run.stderr()
    );
    let json: serde_json::Value = serde_json::from_str(
        &Run::of(&["doctor", "--probe", "--design", ZYNQ, "--json"])?.stdout(),
    )?;
    let mut checks = json["checks"].as_array().ok_or("no checks")?.iter();
    let width = checks.find(|check| check["id"] == "port-width").ok_or("no port-width")?;
    assert_eq!(width["verdict"], "skipped", "{width}");
    Ok(())
}

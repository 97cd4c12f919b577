//! `contigo doctor` as a program: its exit status, its table and its JSON.

use super::overlay::ZYNQ;
use super::{Answer, Copied, Outcome, Run};
use serde_json::Value;

/// The row of a check.
fn check(report: &Value, id: &str) -> Answer<Value> {
    let checks = report["checks"].as_array().ok_or("no checks")?;
    Ok(checks.iter().find(|check| check["id"] == id).ok_or("no such check")?.clone())
}

#[test]
fn the_status_says_whether_there_is_a_fault() -> Outcome {
    let copy = Copied::new()?;
    let run =
        copy.run(&["doctor"])?.ends(2).complains(&["proc/meminfo cannot be read: mount /proc"]);
    assert_eq!(run.stdout(), "");
    copy.root.put("proc/meminfo", [7, 255, 0]);
    copy.run(&["doctor"])?.ends(2).complains(&["has no line MemTotal: copy the machine's"]);

    copy.root.put("proc/meminfo", "MemTotal: 500000 kB\n");
    let run = copy.run(&["doctor"])?.ends(0);
    assert_eq!(run.stderr(), "");
    assert!(run.stdout().starts_with("faults: 0, notes: 0, looked at: "), "{}", run.stdout());
    copy.run(&["doctor", "--all"])?.says(&["cma-missing"]);

    copy.root.put("proc/cmdline", "swiotlb=force\n");
    copy.run(&["doctor"])?.ends(1).says(&[
        "swiotlb-forced",
        "  found  swiotlb=force\n",
        "  cure   take swiotlb=force from",
        "  from   Linux, ",
        "\nfaults: 1, ",
    ]);
    let json = copy.run(&["doctor", "--json"])?.ends(1).any_json()?;
    let checks = json["checks"].as_array().ok_or("no checks")?;
    assert!(json["version"] == 1 && json["faults"] == 1 && checks.len() >= 40, "{json}");
    let bad: Vec<_> = checks.iter().filter(|check| check["verdict"] == "fault").collect();
    assert!(bad.len() == 1 && bad[0]["id"] == "swiotlb-forced", "{bad:?}");
    Ok(())
}

/// Here it finds what there is, and ends.
#[test]
fn this_machine_is_looked_at() -> Outcome {
    let run = Run::of(&["doctor", "--all"])?.says(&["config-vfio"]);
    assert!(matches!(run.status(), Some(0 | 1)), "{}", run.stderr());
    // A build machine has no engine of a SoC; a board measures one.
    let json = Run::of(&["doctor", "--probe", "--json"])?.json()?;
    let probed = check(&json, "port-measured")?;
    let found = probed["found"].as_str().unwrap_or_default();
    assert!(
        probed["verdict"] == "fine"
            || probed["verdict"] == "skipped" && found.starts_with("not measurable: "),
        "{probed}"
    );
    Run::of(&["doctor", "--probe", "--machine", "."])?.ends(2);
    // A file that is no design is an error. Another machine's design, or no right to its
    // registers, is a row.
    Run::of(&["doctor", "--probe", "--design", "/nowhere/top.hwh"])?.refuses("/nowhere/top.hwh: ");
    let json = Run::of(&["doctor", "--probe", "--design", ZYNQ, "--json"])?.any_json()?;
    assert_eq!(check(&json, "port-width")?["verdict"], "skipped");
    Ok(())
}

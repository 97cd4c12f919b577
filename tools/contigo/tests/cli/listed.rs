//! The lists of memory and of boards, and what they say of huge pages.

use super::{Outcome, Run};
use serde_json::{Value, json};

#[test]
fn info_lists_every_kind_of_memory() -> Outcome {
    let info = Run::of(&["info", "--json"])?.json()?;
    let offers = info["memory"].as_array().ok_or("no list")?;
    for kind in ["contigo", "sim", "hugetlb", "u-dma-buf", "dma-heap", "vfio"] {
        let is_kind = |name: &Value| name.as_str().is_some_and(|name| name.starts_with(kind));
        assert!(offers.iter().any(|offer| is_kind(&offer["name"])), "{kind}");
    }
    for offer in offers {
        let state = offer["state"].as_str().unwrap_or_default();
        assert!(["ready", "blocked", "absent"].contains(&state), "{offer}");
        assert!(offer["note"].as_str().is_some_and(|note| !note.is_empty()), "{offer}");
        for field in ["size_bytes", "addr_bits", "coherent"] {
            assert!(offer.get(field).is_some(), "{field} in {offer}");
        }
    }
    Run::of(&["info"])?.ends(0).says(&["hugetlb", "state"]);
    Ok(())
}

#[test]
fn boards_are_listed() -> Outcome {
    let boards = Run::of(&["boards", "--json"])?.json()?;
    let boards = boards.as_array().ok_or("no list")?;
    assert_eq!(boards.len(), contigo_boards::ALL.len());
    let de10 = boards.iter().find(|board| board["name"] == "de10-nano").ok_or("no DE10-Nano")?;
    let ports = de10["ports"].as_array().ok_or("no ports")?;
    let acp = ports.iter().find(|port| port["coherent"] == true).ok_or("no ACP")?;
    assert!(acp["offset"] == "0x80000000" && acp["window_last"] == "0xbfffffff", "{acp}");
    Run::of(&["boards"])?.says(&["zynq-hp0"]);
    Ok(())
}

/// Real memory where this machine has some and shows its addresses; elsewhere a failure that says
/// what is missing.
#[test]
fn huge_pages_work_or_say_what_is_missing() -> Outcome {
    let run = Run::of(&["demo", "--memory", "hugetlb", "--images", "10", "--json"])?;
    if run.status() != Some(0) {
        let why = format!("hugetlb: {}", run.stderr().trim_end());
        contigo_testkit::skipped("cli::listed::huge_pages_work_or_say_what_is_missing", &why);
        run.refuses("contigo: --memory hugetlb: ");
        return Ok(());
    }
    let report = run.json()?;
    assert_eq!(report["memory"]["backend"], "hugetlb");
    assert_eq!((&report["mismatches"], &report["bytes_copied"]), (&json!(0), &json!(0)));
    if cfg!(target_arch = "x86_64") {
        let found = (&report["memory"]["coherent"], &report["sync_calls"]);
        assert_eq!(found, (&json!(true), &json!(0)));
    }
    Ok(())
}

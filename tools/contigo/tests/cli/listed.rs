//! The lists of memory and of boards, and what they say of huge pages.

use super::{Outcome, Run};
use contigo_testkit::emulated;

#[test]
fn info_lists_every_kind_of_memory() -> Outcome {
    let info = Run::of(&["info", "--json"])?.json()?;
    let offers = info["memory"].as_array().ok_or("no list")?;
    for kind in ["contigo", "sim", "hugetlb", "u-dma-buf", "dma-heap", "vfio"] {
        let found: Vec<_> = offers
            .iter()
            .filter(|offer| offer["name"].as_str().is_some_and(|name| name.starts_with(kind)))
            .collect();
        assert!(!found.is_empty(), "{kind}");
        for offer in found {
            assert!(
                ["ready", "blocked", "absent"].iter().any(|state| offer["state"] == *state),
                "{offer}"
            );
            assert!(offer["note"].as_str().is_some_and(|note| !note.is_empty()), "{offer}");
            for field in ["size_bytes", "addr_bits", "coherent"] {
                assert!(offer.get(field).is_some(), "{field} in {offer}");
            }
        }
    }
    let table = Run::of(&["info"])?;
    assert_eq!(table.status(), Some(0));
    assert!(table.stdout().contains("hugetlb") && table.stdout().contains("state"));
    Ok(())
}

#[test]
fn boards_are_listed() -> Outcome {
    let boards = Run::of(&["boards", "--json"])?.json()?;
    let boards = boards.as_array().ok_or("no list")?;
    assert_eq!(boards.len(), contigo_boards::ALL.len());
    let de10 = boards.iter().find(|board| board["name"] == "de10-nano").ok_or("no DE10-Nano")?;
    let acp = de10["ports"]
        .as_array()
        .and_then(|ports| ports.iter().find(|port| port["coherent"] == true))
        .ok_or("no ACP")?;
    assert_eq!((&acp["offset"], &acp["window_last"]), (&"0x80000000".into(), &"0xbfffffff".into()));
    assert!(Run::of(&["boards"])?.stdout().contains("zynq-hp0"));
    Ok(())
}

/// Real memory where this machine has some and shows its addresses; elsewhere a failure that says
/// what is missing.
#[test]
fn huge_pages_work_or_say_what_is_missing() -> Outcome {
    let info = Run::of(&["info", "--json"])?.json()?;
    let offers = info["memory"].as_array().ok_or("no list")?;
    let huge = offers
        .iter()
        .find(|offer| offer["name"] == "hugetlb")
        .ok_or("no huge pages in the list")?;
    let run = Run::of(&["demo", "--memory", "hugetlb", "--images", "10", "--json"])?;
    if run.status() == Some(0) {
        let report = run.json()?;
        assert_eq!(report["memory"]["backend"], "hugetlb");
        assert_eq!((&report["mismatches"], &report["bytes_copied"]), (&0.into(), &0.into()));
        if cfg!(target_arch = "x86_64") {
            assert_eq!(
                (&report["memory"]["coherent"], &report["sync_calls"]),
                (&true.into(), &0.into())
            );
        }
    } else {
        // Another program may take the last page between the two runs, so "ready" is no promise.
        let why = format!("hugetlb is {} here: {}", huge["state"], run.stderr().trim_end());
        emulated::skipped("cli::listed::huge_pages_work_or_say_what_is_missing", &why);
        assert_eq!(run.status(), Some(1));
        assert!(
            run.stderr().starts_with("contigo: --memory hugetlb: ")
                && run.stderr().lines().count() == 1,
            "{}",
            run.stderr()
        );
    }
    Ok(())
}

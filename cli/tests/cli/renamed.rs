//! Options of 0.1: they work for this release, and say what to write.

use super::{Outcome, Run};

#[test]
fn an_old_option_works_and_says_its_new_name() -> Outcome {
    let cases: &[(&[&str], i32, &str)] = &[
        (&["demo", "--images", "5", "--heap", "sim"], 0, "--heap is an old name, for this release: write --memory sim"),
        (&["selftest", "--jobs", "9", "--heap", "sim:7"], 0, "--heap is an old name, for this release: write --memory sim:7"),
        (&["selftest", "--jobs", "9", "--engine", "sim"], 0, "--engine is an old name, for this release: write --device sim:zdma"),
        (&["selftest", "--jobs", "9", "--engine", "sim-pl330"], 0, "write --device sim:pl330"),
        (&["selftest", "--engine", "pl330@no-such-node"], 1, "write --driver pl330 --device uio:no-such-node"),
        (&["selftest", "--engine", "zdma"], 1, "write --driver zdma"),
    ];
    for (args, status, said) in cases {
        let run = Run::of(args)?;
        assert_eq!(run.status(), Some(*status), "{args:?}: {}", run.stderr());
        let mut lines = run.stderr().lines().map(ToOwned::to_owned).collect::<Vec<_>>();
        assert!(lines.remove(0).ends_with(said), "{args:?}: {}", run.stderr());
        assert_eq!(lines.len(), usize::try_from(*status)?, "one line, beside a refusal: {}", run.stderr());
    }
    Ok(())
}

#[test]
fn no_help_shows_an_old_option() -> Outcome {
    for args in [["demo", "--help"], ["selftest", "--help"]] {
        let help = Run::of(&args)?.stdout();
        assert!(help.contains("--memory <NAME>") && !help.contains("--heap") && !help.contains("--engine"), "{help}");
    }
    Ok(())
}

/// The key of 0.1 is beside the new one.
#[test]
fn an_old_key_of_json_has_the_new_one_s_value() -> Outcome {
    let info = Run::of(&["info", "--json"])?.json()?;
    let offers = [&info["memory"], &info["devices"]].into_iter().flat_map(|offers| offers.as_array().into_iter().flatten());
    assert!(offers.clone().count() > 5 && offers.into_iter().all(|offer| offer["name"].is_string() && offer["name"] == offer["heap"]));
    let tested = Run::of(&["selftest", "--memory", "sim:7", "--jobs", "9", "--json"])?.json()?;
    assert!(tested["memory"]["name"] == "sim:7" && tested["memory"]["heap"] == "sim:7");
    let shown = Run::of(&["demo", "--memory", "sim:7", "--images", "1", "--json"])?.json()?;
    assert!(shown["memory"]["name"] == "sim:7" && shown["heap"] == "sim:7");
    Ok(())
}

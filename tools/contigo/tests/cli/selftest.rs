//! The self-test on simulated engines: its text, its figures and its time limit.

use super::{Outcome, Run};
use contigo::names::each_row;
use serde_json::Value;

/// Each driver whose jobs are copies, on its model. The others say which drivers copy.
#[test]
fn self_test_passes_on_each_sim_engine() -> Outcome {
    let mut rows = Vec::new();
    each_row(|row| rows.push(row));
    let copiers: Vec<_> = rows.iter().filter(|row| row.copies).map(|row| row.name).collect();
    assert!(copiers.len() > 5 && copiers.len() < rows.len(), "{copiers:?}");
    for row in rows {
        let run = Run::of(&["selftest", "--device", &format!("sim:{}", row.name), "--jobs", "60"])?;
        if !row.copies {
            let told = format!("say with --driver what it is: {}\n", copiers.join(", "));
            assert!(run.status() != Some(0) && run.stderr().ends_with(&told), "{}", run.stderr());
            continue;
        }
        assert_eq!(run.status(), Some(0), "{}: {}", row.name, run.stderr());
        let text = run.stdout();
        for part in [
            "simulated ",
            "sim-hp0",
            "not coherent",
            "mismatches",
            "canary hits",
            "interrupt",
            "across 4 KiB",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        assert_eq!(
            text.lines().last(),
            Some("passed: 120 jobs, by a simulated engine, every byte where it should be")
        );
        assert!(run.stderr().is_empty(), "{}", run.stderr());
    }
    Ok(())
}

/// An interrupt that stays high while an end settles would end thousands of waits.
#[test]
fn a_job_s_end_that_settles_costs_few_interrupts() -> Outcome {
    let report = Run::of(&["selftest", "--device", "sim:msgdma", "--jobs", "100", "--json"])?;
    let interrupts = report.json()?["rows"][1]["interrupts"].as_u64().ok_or("no interrupts")?;
    assert!((100..=300).contains(&interrupts), "{interrupts} interrupts for 100 jobs");
    Ok(())
}

#[test]
fn the_self_test_s_json_has_every_number() -> Outcome {
    let report =
        Run::of(&["selftest", "--memory", "sim", "--jobs", "300", "--seed", "5", "--json"])?
            .json()?;
    assert_eq!(
        (&report["verdict"], &report["reasons"], &report["seed"]),
        (&"passed".into(), &Value::Array(vec![]), &5.into())
    );
    assert_eq!(
        (&report["memory"]["name"], &report["memory"]["backend"]),
        (&"sim".into(), &"sim".into())
    );
    assert_eq!(
        (&report["engine"]["simulated"], &report["engine"]["interrupt"]),
        (&true.into(), &true.into())
    );
    assert_eq!(
        (&report["port"]["coherent"], &report["port"]["lab_port"]),
        (&false.into(), &false.into())
    );
    let rows = report["rows"].as_array().ok_or("no rows")?;
    assert_eq!(rows.iter().map(|row| &row["mode"]).collect::<Vec<_>>(), ["polled", "interrupt"]);
    for row in rows {
        assert_eq!(
            (&row["jobs"], &row["mismatches"], &row["canary_hits"]),
            (&300.into(), &0.into(), &0.into())
        );
        assert!(
            row["bytes"].as_u64() > Some(100_000) && row["mb_per_s"].as_f64() > Some(0.0),
            "{row}"
        );
    }
    assert_eq!((&rows[0]["interrupts"], &rows[1]["interrupts"]), (&Value::Null, &300.into()));
    assert_eq!(rows[0]["bytes"], rows[1]["bytes"], "both modes run the same jobs");
    let tried = report["tried"].as_array().ok_or("no cases")?;
    assert!(
        tried.len() == 12 && tried.iter().all(|case| case["jobs"].as_u64() > Some(0)),
        "{tried:?}"
    );
    Ok(())
}

#[test]
fn a_self_test_with_a_time_limit_ends() -> Outcome {
    let begun = std::time::Instant::now();
    let report =
        Run::of(&["selftest", "--device", "sim:zdma", "--seconds", "1", "--json"])?.json()?;
    assert!(
        begun.elapsed().as_secs() < 30 && report["rows"][1]["jobs"].as_u64() > Some(0),
        "{report}"
    );
    Ok(())
}

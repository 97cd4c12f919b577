//! The self-test on simulated engines: its text, its figures and its time limit.

use super::{Outcome, Run};
use contigo::names::each_row;
use serde_json::{Value, json};

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
            run.refuses(&format!("say with --driver what it is: {}\n", copiers.join(", ")));
            continue;
        }
        let run = run.ends(0).says(&[
            "simulated ",
            "sim-hp0",
            "not coherent",
            "mismatches",
            "canary hits",
            "interrupt",
            "across 4 KiB",
            "passed: 120 jobs, by a simulated engine, every byte where it should be",
        ]);
        assert_eq!(run.stderr(), "", "{}", row.name);
    }
    Ok(())
}

/// One line tells which memory a driver has for its descriptors, and none of a driver without it.
#[test]
fn self_test_tells_which_descriptors() -> Outcome {
    for (device, settings, descriptors) in [
        ("sim:axi_dma", "", json!("synced")),
        ("sim:axi_dma", "coherent_memory=1", json!("coherent")),
        ("sim:axi_cdma", "", json!(null)),
        ("sim:axi_cdma", "coherent_memory=1", json!("coherent")),
    ] {
        let ask = ["selftest", "--device", device, "--jobs", "20", "--settings", settings];
        let report = Run::of(&[&ask[..], &["--json"]].concat())?.json()?;
        assert_eq!((&report["descriptors"], &report["verdict"]), (&descriptors, &json!("passed")));
        let run = Run::of(&ask)?.ends(0);
        if let Some(descriptors) = descriptors.as_str() {
            let _ = run.says(&[&format!("driver: descriptors: {descriptors}\n")]);
        }
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
    for (pointer, value) in [
        ("/verdict", json!("passed")),
        ("/reasons", json!([])),
        ("/seed", json!(5)),
        ("/memory/name", json!("sim")),
        ("/memory/backend", json!("sim")),
        ("/engine/simulated", json!(true)),
        ("/engine/interrupt", json!(true)),
        ("/port/coherent", json!(false)),
        ("/port/lab_port", json!(false)),
        ("/rows/0/mode", json!("polled")),
        ("/rows/1/mode", json!("interrupt")),
        ("/rows/0/interrupts", Value::Null),
        ("/rows/1/interrupts", json!(300)),
    ] {
        assert_eq!(report.pointer(pointer), Some(&value), "{pointer}");
    }
    let rows = report["rows"].as_array().ok_or("no rows")?;
    for row in rows {
        assert!(row["jobs"] == 300 && row["mismatches"] == 0 && row["canary_hits"] == 0, "{row}");
        assert!(row["bytes"].as_u64() > Some(100_000) && row["mb_per_s"].as_f64() > Some(0.0));
    }
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["bytes"], rows[1]["bytes"], "both modes run the same jobs");
    let tried = report["tried"].as_array().ok_or("no cases")?;
    assert!(tried.len() == 12 && tried.iter().all(|case| case["jobs"].as_u64() > Some(0)));
    Ok(())
}

#[test]
fn a_self_test_with_a_time_limit_ends() -> Outcome {
    let begun = std::time::Instant::now();
    let report =
        Run::of(&["selftest", "--device", "sim:zdma", "--seconds", "1", "--json"])?.json()?;
    assert!(report["rows"][1]["jobs"].as_u64() > Some(0), "{report}");
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    Ok(())
}

//! The demo's trace: every step, in a file and in the text, and its figures are the report's.

use super::{Outcome, REGION_BYTES, Run};
use serde_json::Value;
use std::{fs::File, io::BufReader};

#[test]
fn trace_has_every_step_and_fits_report() -> Outcome {
    let images = 20;
    let run = Run::of(&["demo", "--images", "20", "--json", "--trace", "run.json"])?;
    let report = run.json()?;
    let trace: Value = serde_json::from_reader(BufReader::new(File::open(run.file("run.json"))?))?;
    assert_eq!(trace["otherData"]["events_lost"], 0);
    let events = trace["traceEvents"].as_array().ok_or("no events")?;
    let named =
        |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let audit = report["audit"].as_array().ok_or("no audit")?;
    // The runtime's own count, the table and the timeline are three ways to the same figures.
    for (name, calls, bytes) in [
        ("map", 1, REGION_BYTES),
        ("unmap", 1, REGION_BYTES),
        ("carve", 1, 256), // slots
        ("copy", 0, 0),
        // Hidden values, and each layer's weights and bias; then slots.
        ("take", 5 + 2 * images, 2816 + 2 * images * 64),
        ("release", 5 + 2 * images, 0),
        ("submit", 2 * images, 0),
        ("complete", 2 * images, 0),
        ("stop", 0, 0),
        (
            "sync for device",
            1 + 5 + 2 * images,
            report["bytes_synced_for_device"].as_u64().ok_or("no count")?,
        ),
        // Of the hidden values as well, when they are dropped.
        (
            "sync for cpu",
            1 + images + 1,
            report["bytes_synced_for_cpu"].as_u64().ok_or("no count")? + 64,
        ),
    ] {
        let sum = |list: &[&Value], key: &str| {
            list.iter().filter_map(|item| item[key].as_u64()).sum::<u64>()
        };
        let rows: Vec<_> = audit.iter().filter(|row| row["what"] == name).collect();
        assert_eq!((sum(&rows, "calls"), sum(&rows, "bytes")), (calls, bytes), "{name}: {rows:?}");
        let of_kind = named(name);
        let arguments: Vec<_> = of_kind.iter().map(|event| &event["args"]).collect();
        assert_eq!((of_kind.len() as u64, sum(&arguments, "bytes")), (calls, bytes), "{name}");
    }
    let bars: Vec<_> = events.iter().filter(|event| event["cat"] == "job").collect();
    assert_eq!(bars.len() as u64, 2 * images);
    for bar in bars {
        assert!(bar["ph"] == "X" && bar["dur"].as_f64().is_some_and(|dur| dur > 0.0), "{bar}");
        assert!(
            bar["args"]["submitted"].as_str().is_some_and(|site| site.contains("run.rs:")),
            "{bar}"
        );
    }
    for sync in named("sync for device") {
        assert!(
            sync["args"]["site"].as_str().is_some_and(|site| site.contains("run.rs:")),
            "{sync}"
        );
    }
    let times: Vec<_> = named("submit").iter().filter_map(|event| event["ts"].as_f64()).collect();
    assert!(times.is_sorted(), "{times:?}");
    Ok(())
}

#[test]
fn a_trace_s_table_is_in_the_text() -> Outcome {
    let run = Run::of(&["demo", "--images", "5", "--trace", "run.json"])?;
    assert_eq!(run.status(), Some(0), "{}", run.stderr());
    let text = run.stdout();
    for part in ["sync for device", "(when dropped)", "run.rs:", "copies: 0, of 0 bytes"] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    let run = Run::of(&["demo", "--images", "5", "--trace", "no/such/folder/run.json"])?;
    assert_eq!(run.status(), Some(1));
    assert!(
        run.stdout().contains("accuracy: ")
            && run.stderr().contains("choose another place with --trace PATH"),
        "{}",
        run.stderr()
    );
    Ok(())
}

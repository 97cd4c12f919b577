//! The demo: its figures, its seed, its trace, its text and its contact sheet.

use super::{Answer, HELD_OUT, Outcome, REGION_BYTES, Run, promised};
use serde_json::Value;
use std::fs::File;
use std::io::BufReader;

/// Weights and biases of both layers, and one line of hidden values: handed to the device once.
const NETWORK_BYTES: u64 = (64 * 32 + 4 * 32) + (32 * 16 + 4 * 16) + 64;
const IMAGE_BYTES: u64 = 64;
const SCORE_BYTES: u64 = 64;

#[test]
fn demo_counts_images_as_training_did() -> Outcome {
    let report = Run::of(&["demo", "--json"])?.json()?;
    assert_eq!(report["images"], HELD_OUT);
    assert_eq!(report["correct"], promised("# held-out-correct:")?);
    assert_eq!(report["mismatches"], 0);
    assert_eq!(report["scores_checked"], 16 * HELD_OUT);
    assert_eq!(report["bytes_copied"], 0);
    assert_eq!(report["jobs"], 2 * HELD_OUT, "two jobs for each image");
    Ok(())
}

#[test]
fn only_what_must_be_synchronised_is() -> Outcome {
    let images = 20;
    let report = Run::of(&["demo", "--images", "20", "--json"])?.json()?;
    assert_eq!(report["memory"]["coherent"], false);
    // The image is cleaned, the scores' line is invalidated before and after. The network is the
    // device's from its first job on, and so is what the layers hand to each other.
    assert_eq!(
        report["bytes_synced_for_device"],
        REGION_BYTES + NETWORK_BYTES + images * (IMAGE_BYTES + SCORE_BYTES)
    );
    assert_eq!(report["bytes_synced_for_cpu"], REGION_BYTES + images * SCORE_BYTES);
    assert_eq!(report["sync_calls"], 2 + 5 + images * 3);
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    assert!((85.0..=100.0).contains(&number(&report["accuracy_percent"])), "{report}");
    let latency = &report["latency_us"];
    assert!(number(&latency["p50"]) > 0.0 && number(&latency["p50"]) <= number(&latency["p99"]));
    Ok(())
}

#[test]
fn one_seed_gives_one_run() -> Outcome {
    let figures = |options: &[&str]| -> Answer<Value> {
        let mut report =
            Run::of(&[&["demo", "--images", "30", "--json"], options].concat())?.json()?;
        report["latency_us"].take();
        Ok(report)
    };
    let seven = figures(&["--seed", "7"])?;
    assert_eq!(seven, figures(&["--seed", "7"])?);
    let other = figures(&["--seed", "8"])?;
    assert_eq!((&other["seed"], &other["mismatches"]), (&Value::from(8), &Value::from(0)));
    assert_eq!(figures(&["--memory", "sim:7"])?["seed"], 7, "the memory's name has the seed");
    Run::of(&["demo", "--seed", "x"])?
        .ends(2)
        .complains(&["a seed is a number from 0 to 18446744073709551615"]);
    Ok(())
}

#[test]
fn the_text_has_the_figures() -> Outcome {
    let run = Run::of(&["demo", "--images", "5"])?.ends(0).says(&[
        "  bytes copied: 0\n",
        "  jobs: 10\n",
        "accuracy: ",
        "mismatches: 0 ",
        "latency p50: ",
        "seed: 1",
        "not coherent",
        "contact sheet: contigo-demo.png",
    ]);
    assert_eq!(run.stderr(), "", "no progress bar where standard error is no terminal");
    Ok(())
}

#[test]
fn the_contact_sheet_is_a_picture() -> Outcome {
    let run = Run::of(&["demo", "--images", "3", "--png", "sheet.png", "--json"])?;
    assert_eq!(run.any_json()?["sheet"], "sheet.png");
    let mut reader =
        png::Decoder::new(BufReader::new(File::open(run.file("sheet.png"))?)).read_info()?;
    let mut dots = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let frame = reader.next_frame(&mut dots)?;
    assert!(frame.width >= 400 && frame.height >= 100, "{}x{}", frame.width, frame.height);
    assert!(dots.iter().any(|&dot| dot < 64) && dots.contains(&255), "ink on paper");
    Ok(())
}

#[test]
fn unwritable_file_fails_after_report() -> Outcome {
    for (option, report, why) in [
        ("--png", "contact sheet: not written", "cannot write no/such/file: "),
        ("--trace", "accuracy: ", "choose another place with --trace PATH"),
    ] {
        let run = Run::of(&["demo", "--images", "1", option, "no/such/file"])?
            .ends(1)
            .says(&["mismatches: 0", report])
            .complains(&["contigo: ", why]);
        assert_eq!(run.stderr().lines().count(), 1, "{}", run.stderr());
    }
    Ok(())
}

#[test]
fn trace_has_every_step_and_fits_report() -> Outcome {
    let images = 20;
    let run = Run::of(&["demo", "--images", "20", "--json", "--trace", "run.json"])?.ends(0);
    let report = run.any_json()?;
    let trace: Value = serde_json::from_reader(BufReader::new(File::open(run.file("run.json"))?))?;
    assert_eq!(trace["otherData"]["events_lost"], 0);
    let events = trace["traceEvents"].as_array().ok_or("no events")?;
    let named =
        |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let audit = report["audit"].as_array().ok_or("no audit")?;
    let synced = |which: &str| report[which].as_u64().ok_or("no count");
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
        ("sync for device", 1 + 5 + 2 * images, synced("bytes_synced_for_device")?),
        // Of the hidden values as well, when they are dropped.
        ("sync for cpu", 1 + images + 1, synced("bytes_synced_for_cpu")? + 64),
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
    let is_in_run = |site: &Value| site.as_str().is_some_and(|site| site.contains("run.rs:"));
    for bar in bars {
        assert!(bar["ph"] == "X" && bar["dur"].as_f64() > Some(0.0), "{bar}");
        assert!(is_in_run(&bar["args"]["submitted"]), "{bar}");
    }
    for sync in named("sync for device") {
        assert!(is_in_run(&sync["args"]["site"]), "{sync}");
    }
    let times: Vec<_> = named("submit").iter().filter_map(|event| event["ts"].as_f64()).collect();
    assert!(times.is_sorted(), "{times:?}");
    Run::of(&["demo", "--images", "5", "--trace", "run.json"])?.ends(0).says(&[
        "sync for device",
        "(when dropped)",
        "run.rs:",
        "copies: 0, of 0 bytes",
    ]);
    Ok(())
}

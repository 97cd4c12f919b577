//! The demo: its figures, its seed, its text and its contact sheet.

use super::{HELD_OUT, Outcome, REGION_BYTES, Run, promised};
use serde_json::Value;
use std::{error::Error, fs::File, io::BufReader};

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
    assert!(
        report["accuracy_percent"]
            .as_f64()
            .is_some_and(|percent| (85.0..=100.0).contains(&percent))
    );
    let (p50, p99) = (&report["latency_us"]["p50"], &report["latency_us"]["p99"]);
    assert!(0.0 < p50.as_f64().unwrap_or(0.0) && p50.as_f64() <= p99.as_f64(), "{p50} {p99}");
    Ok(())
}

#[test]
fn report_says_the_seed_of_its_run() -> Outcome {
    let report = Run::of(&["demo", "--memory", "sim:7", "--images", "3", "--json"])?.json()?;
    assert_eq!(report["seed"], 7);
    let refused = Run::of(&["selftest", "--port", "nowhere"])?;
    assert_eq!(refused.status(), Some(1), "{}", refused.stderr());
    Ok(())
}

#[test]
fn one_seed_gives_one_run() -> Outcome {
    let figures = |seed: &str| -> Result<Value, Box<dyn Error>> {
        let mut report = Run::of(&["demo", "--images", "30", "--seed", seed, "--json"])?.json()?;
        report
            .as_object_mut()
            .and_then(|fields| fields.remove("latency_us"))
            .ok_or("no latency")?;
        Ok(report)
    };
    assert_eq!(figures("7")?, figures("7")?);
    let other = figures("8")?;
    assert_eq!((&other["seed"], &other["mismatches"]), (&Value::from(8), &Value::from(0)));
    Ok(())
}

#[test]
fn the_text_says_what_was_promised() -> Outcome {
    let run = Run::of(&["demo", "--images", "5"])?;
    assert_eq!(run.status(), Some(0), "{}", run.stderr());
    let text = run.stdout();
    for line in [
        "bytes copied: 0",
        "jobs: 10",
        "engine: simulated gemm8",
        "contact sheet: contigo-demo.png",
    ] {
        assert!(
            text.lines().any(|found| found.trim_start() == line),
            "{line:?} is not in:\n{text}"
        );
    }
    for part in [
        "accuracy: ",
        "mismatches: 0 ",
        "latency p50: ",
        "latency p99: ",
        "seed: 1",
        "sim-hp0",
        "not coherent",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(
        run.stderr().is_empty(),
        "no progress bar where standard error is no terminal: {}",
        run.stderr()
    );
    Ok(())
}

#[test]
fn a_seed_that_is_no_number_is_told_what_one_is() -> Outcome {
    let run = Run::of(&["demo", "--seed", "x"])?;
    assert_eq!(run.status(), Some(2));
    assert!(
        run.stderr().contains("a seed is a number from 0 to 18446744073709551615"),
        "{}",
        run.stderr()
    );
    Ok(())
}

#[test]
fn the_contact_sheet_is_a_picture() -> Outcome {
    let run = Run::of(&["demo", "--images", "3", "--png", "sheet.png", "--json"])?;
    assert_eq!(run.json()?["sheet"], "sheet.png");
    let mut reader =
        png::Decoder::new(BufReader::new(File::open(run.file("sheet.png"))?)).read_info()?;
    let mut dots = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let frame = reader.next_frame(&mut dots)?;
    assert!(frame.width >= 400 && frame.height >= 100, "{}x{}", frame.width, frame.height);
    assert!(dots.iter().any(|&dot| dot < 64) && dots.contains(&255), "ink on paper");
    Ok(())
}

#[test]
fn unwritable_sheet_fails_after_report() -> Outcome {
    let run = Run::of(&["demo", "--images", "1", "--png", "no/such/folder.png"])?;
    assert_eq!(run.status(), Some(1));
    let text = run.stdout();
    assert!(
        text.contains("mismatches: 0") && text.contains("contact sheet: not written"),
        "{text}"
    );
    assert!(
        run.stderr().starts_with("contigo: cannot write no/such/folder.png: ")
            && run.stderr().lines().count() == 1,
        "{}",
        run.stderr()
    );
    Ok(())
}

//! The command-line tool as its users run it.
#![allow(clippy::indexing_slicing, reason = "a JSON value answers an absent key with null, and an assertion then says so")]

use contigo_testkit::emulated;
use serde_json::Value;
use std::{
    error::Error,
    fs::{self, File},
    io::BufReader,
    path::PathBuf,
    process::{Output, Stdio},
};
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn Error>>;

/// Held-out images, in a folder of the package that the program is built from.
const HELD_OUT: u64 = 897;
/// Of the demo's memory: what `Region` cleans and invalidates at first touch.
const REGION_BYTES: u64 = 8192;
/// Weights and biases of both layers, and one line of hidden values: handed to the device once.
const NETWORK_BYTES: u64 = (64 * 32 + 4 * 32) + (32 * 16 + 4 * 16) + 64;
const IMAGE_BYTES: u64 = 64;
const SCORE_BYTES: u64 = 64;

/// One run of the program in a folder of its own.
struct Run {
    folder: TempDir,
    output: Output,
}

impl Run {
    fn of(args: &[&str]) -> Result<Self, Box<dyn Error>> {
        let folder = TempDir::new()?;
        let output = emulated::command(env!("CARGO_BIN_EXE_contigo")).args(args).current_dir(folder.path()).output()?;
        Ok(Self { folder, output })
    }

    fn status(&self) -> Option<i32> {
        self.output.status.code()
    }

    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Standard output as JSON, after success.
    fn json(&self) -> Result<Value, Box<dyn Error>> {
        assert_eq!(self.status(), Some(0), "{}", self.stderr());
        Ok(serde_json::from_slice(&self.output.stdout)?)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The number that a header line of the weights file gives.
fn promised(key: &str) -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/gemm8/data/digits-mlp.txt"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
    Ok(line.split_whitespace().next().ok_or("no number")?.parse()?)
}

#[test]
fn every_held_out_image_as_the_training_script_counted() -> Outcome {
    let report = Run::of(&["demo", "--json"])?.json()?;
    assert_eq!(report["images"], HELD_OUT);
    assert_eq!(report["correct"], promised("# held-out-correct:")?);
    assert_eq!(report["mismatches"], 0);
    assert_eq!(report["scores_checked"], 16 * HELD_OUT);
    assert_eq!(report["heap_allocations"], 0);
    assert_eq!(report["bytes_copied"], 0);
    assert_eq!(report["jobs"], 2 * HELD_OUT, "two jobs for each image");
    Ok(())
}

#[test]
fn only_what_must_be_synchronised_is() -> Outcome {
    let images = 20;
    let report = Run::of(&["demo", "--images", "20", "--json"])?.json()?;
    assert_eq!(report["memory"]["coherent"], false);
    // The image is cleaned, the scores' line is invalidated before and after. The network is the device's from its first
    // job on, and so is what the layers hand to each other.
    assert_eq!(report["bytes_synced_for_device"], REGION_BYTES + NETWORK_BYTES + images * (IMAGE_BYTES + SCORE_BYTES));
    assert_eq!(report["bytes_synced_for_cpu"], REGION_BYTES + images * SCORE_BYTES);
    assert_eq!(report["sync_calls"], 2 + 5 + images * 3);
    assert!(report["accuracy_percent"].as_f64().is_some_and(|percent| (85.0..=100.0).contains(&percent)));
    let (p50, p99) = (&report["latency_us"]["p50"], &report["latency_us"]["p99"]);
    assert!(0.0 < p50.as_f64().unwrap_or(0.0) && p50.as_f64() <= p99.as_f64(), "{p50} {p99}");
    Ok(())
}

#[test]
fn a_report_says_the_seed_that_gives_its_run_again() -> Outcome {
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
        report.as_object_mut().and_then(|fields| fields.remove("latency_us")).ok_or("no latency")?;
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
    for line in ["heap allocations: 0", "bytes copied: 0", "jobs: 10", "engine: simulated gemm8", "contact sheet: contigo-demo.png"] {
        assert!(text.lines().any(|found| found.trim_start() == line), "{line:?} is not in:\n{text}");
    }
    for part in ["accuracy: ", "mismatches: 0 ", "latency p50: ", "latency p99: ", "seed: 1", "sim-hp0", "not coherent"] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(run.stderr().is_empty(), "no progress bar where standard error is no terminal: {}", run.stderr());
    Ok(())
}

#[test]
fn the_contact_sheet_is_a_picture() -> Outcome {
    let run = Run::of(&["demo", "--images", "3", "--png", "sheet.png", "--json"])?;
    assert_eq!(run.json()?["sheet"], "sheet.png");
    let mut reader = png::Decoder::new(BufReader::new(File::open(run.file("sheet.png"))?)).read_info()?;
    let mut dots = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let frame = reader.next_frame(&mut dots)?;
    assert!(frame.width >= 400 && frame.height >= 100, "{}x{}", frame.width, frame.height);
    assert!(dots.iter().any(|&dot| dot < 64) && dots.contains(&255), "ink on paper");
    Ok(())
}

#[test]
fn a_sheet_that_cannot_be_written_is_a_failure_after_the_report() -> Outcome {
    let run = Run::of(&["demo", "--images", "1", "--png", "no/such/folder.png"])?;
    assert_eq!(run.status(), Some(1));
    assert!(run.stdout().contains("mismatches: 0"));
    assert!(
        run.stderr().starts_with("contigo: cannot write no/such/folder.png: ") && run.stderr().lines().count() == 1,
        "{}",
        run.stderr()
    );
    Ok(())
}

#[test]
fn a_trace_has_every_step_and_agrees_with_the_report() -> Outcome {
    let images = 20;
    let run = Run::of(&["demo", "--images", "20", "--json", "--trace", "run.json"])?;
    let report = run.json()?;
    assert_eq!(report["heap_allocations"], 0, "to record an event allocates nothing");
    let trace: Value = serde_json::from_reader(BufReader::new(File::open(run.file("run.json"))?))?;
    assert_eq!(trace["otherData"]["events_lost"], 0);
    let events = trace["traceEvents"].as_array().ok_or("no events")?;
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let audit = report["audit"].as_array().ok_or("no audit")?;
    // The runtime's own count, the table and the timeline are three ways to the same figures.
    for (name, calls, bytes) in [
        ("map", 1, REGION_BYTES),
        ("unmap", 1, REGION_BYTES),
        ("carve", 6, 3072), // slots, hidden values, and each layer's weights and bias
        ("copy", 0, 0),
        ("take", 2 * images, 2 * images * 64),
        ("release", 2 * images, 0),
        ("submit", 2 * images, 0),
        ("complete", 2 * images, 0),
        ("stop", 0, 0),
        ("sync for device", 1 + 5 + 2 * images, report["bytes_synced_for_device"].as_u64().ok_or("no count")?),
        // Of the hidden values as well, when they are dropped.
        ("sync for cpu", 1 + images + 1, report["bytes_synced_for_cpu"].as_u64().ok_or("no count")? + 64),
    ] {
        let sum = |list: &[&Value], key: &str| list.iter().filter_map(|item| item[key].as_u64()).sum::<u64>();
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
        assert!(bar["args"]["submitted"].as_str().is_some_and(|site| site.contains("run.rs:")), "{bar}");
    }
    for sync in named("sync for device") {
        assert!(sync["args"]["site"].as_str().is_some_and(|site| site.contains("run.rs:")), "{sync}");
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
    assert!(run.stdout().contains("accuracy: ") && run.stderr().contains("choose another place with --trace PATH"), "{}", run.stderr());
    Ok(())
}

/// A run with a driver that stands in for NVIDIA's, found as that one is: by its name.
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
fn with_gpu(args: &[&str]) -> Result<Run, Box<dyn Error>> {
    let folder = TempDir::new()?;
    std::os::unix::fs::symlink(fake_cuda::library(), folder.path().join("libcuda.so.1"))?;
    let mut command = emulated::command(env!("CARGO_BIN_EXE_contigo"));
    let output = command.args(args).current_dir(folder.path()).env("LD_LIBRARY_PATH", folder.path()).output()?;
    Ok(Run { folder, output })
}

#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
#[test]
fn a_gpu_reads_the_same_digits_from_memory_that_cuda_pinned() -> Outcome {
    let report = with_gpu(&["demo", "--memory", "cuda", "--json", "--trace", "run.json"])?.json()?;
    assert_eq!((&report["images"], &report["jobs"]), (&Value::from(HELD_OUT), &Value::from(2 * HELD_OUT)));
    assert_eq!(report["correct"], promised("# held-out-correct:")?);
    assert_eq!((&report["mismatches"], &report["heap_allocations"]), (&Value::from(0), &Value::from(0)));
    assert_eq!((&report["bytes_copied"], &report["sync_calls"]), (&Value::from(0), &Value::from(0)));
    assert_eq!((&report["memory"]["backend"], &report["engine"]), (&Value::from("cuda-host"), &Value::from("gemm8 as a CUDA kernel")));
    assert_eq!(report["device_time_us_per_image"], Value::Null, "nothing virtual is claimed");
    let audit = report["audit"].as_array().ok_or("no audit")?;
    assert!(audit.iter().any(|row| row["what"] == "map for device"), "{audit:?}");
    Ok(())
}

#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
#[test]
fn gpus_are_listed_and_what_is_missing_is_said() -> Outcome {
    let report = with_gpu(&["info", "--json"])?.json()?;
    let memory = report["memory"].as_array().ok_or("no memory")?;
    let gpu = memory.iter().find(|offer| offer["heap"] == "cuda:0").ok_or("no GPU")?;
    assert_eq!((&gpu["state"], &gpu["coherent"]), (&Value::from("ready"), &Value::from(true)));
    assert!(gpu["note"].as_str().is_some_and(|note| note.contains("compute capability 8.7")), "{gpu}");
    for (heap, part) in [("cuda:1", "the GPU's ordinal"), ("cuda:x", "a number from 0 to 4294967295")] {
        let run = with_gpu(&["demo", "--memory", heap])?;
        assert!(run.status() != Some(0) && run.stderr().contains(part), "{heap}: {}", run.stderr());
    }
    let run = with_gpu(&["selftest", "--memory", "cuda"])?;
    assert!(run.status() == Some(1) && run.stderr().contains("contigo demo --memory cuda"), "{}", run.stderr());
    Ok(())
}

/// NVIDIA's own driver, where `tests/cuda/get` has put it into the cache.
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
#[test]
fn nvidia_s_driver_without_a_gpu_is_said_to_be_that() -> Outcome {
    use contigo_testkit::nvidia::{self, NoNode};
    let drivers = nvidia::drivers();
    let newest = drivers.iter().take(1).map(|driver| (driver, "cuInit: CUDA_ERROR_NO_DEVICE (100)"));
    let too_old = drivers.iter().rfind(|driver| driver.too_old()).map(|driver| (driver, "CUDA 10.2 (10020) is the oldest driver"));
    if let Some(why) = nvidia::may_have_a_gpu().or_else(|| drivers.is_empty().then(|| nvidia::NOT_HERE.into())) {
        emulated::skipped("cli::nvidia_s_driver_without_a_gpu_is_said_to_be_that", &why);
        return Ok(());
    }
    let _node = NoNode::new();
    for (driver, part) in newest.chain(too_old) {
        let run = |args: &[&str]| -> Result<Run, Box<dyn Error>> {
            let folder = TempDir::new()?;
            let output = driver.command(env!("CARGO_BIN_EXE_contigo")).args(args).current_dir(folder.path()).output()?;
            Ok(Run { folder, output })
        };
        let report = run(&["info", "--json"])?.json()?;
        let memory = report["memory"].as_array().ok_or("no memory")?;
        let gpu = memory.iter().find(|offer| offer["heap"] == "cuda").ok_or("nothing of CUDA")?;
        assert_eq!(gpu["state"], "blocked", "{driver:?}: {gpu}");
        assert!(gpu["note"].as_str().is_some_and(|note| note.contains(part)), "{driver:?}: {gpu}");
        let demo = run(&["demo", "--memory", "cuda"])?;
        assert!(demo.status() == Some(1) && demo.stderr().contains(part), "{driver:?}: {}", demo.stderr());
    }
    Ok(())
}

#[test]
fn the_self_test_passes_on_a_simulated_engine_and_says_so() -> Outcome {
    for args in [["--engine", "sim"], ["--engine", "sim-pl330"], ["--device", "sim:pl330"]] {
        let run = Run::of(&["selftest", args[0], args[1], "--jobs", "60"])?;
        assert_eq!(run.status(), Some(0), "{}", run.stderr());
        let text = run.stdout();
        for part in ["simulated ", "sim-hp0", "not coherent", "mismatches", "canary hits", "interrupt", "across 4 KiB"] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        assert_eq!(text.lines().last(), Some("passed: 120 jobs, by a simulated engine, every byte where it should be"));
        assert!(run.stderr().is_empty(), "{}", run.stderr());
    }
    Ok(())
}

#[test]
fn the_self_test_s_json_has_every_number() -> Outcome {
    let report = Run::of(&["selftest", "--memory", "sim", "--jobs", "300", "--seed", "5", "--json"])?.json()?;
    assert_eq!((&report["verdict"], &report["reasons"], &report["seed"]), (&"passed".into(), &Value::Array(vec![]), &5.into()));
    assert_eq!((&report["memory"]["heap"], &report["memory"]["backend"]), (&"sim".into(), &"sim".into()));
    assert_eq!((&report["engine"]["simulated"], &report["engine"]["interrupt"]), (&true.into(), &true.into()));
    assert_eq!((&report["port"]["coherent"], &report["port"]["lab_port"]), (&false.into(), &false.into()));
    let rows = report["rows"].as_array().ok_or("no rows")?;
    assert_eq!(rows.iter().map(|row| &row["mode"]).collect::<Vec<_>>(), ["polled", "interrupt"]);
    for row in rows {
        assert_eq!(
            (&row["jobs"], &row["mismatches"], &row["canary_hits"], &row["allocations"]),
            (&300.into(), &0.into(), &0.into(), &0.into())
        );
        assert!(row["bytes"].as_u64() > Some(100_000) && row["mb_per_s"].as_f64() > Some(0.0), "{row}");
    }
    assert_eq!((&rows[0]["interrupts"], &rows[1]["interrupts"]), (&Value::Null, &300.into()));
    assert_eq!(rows[0]["bytes"], rows[1]["bytes"], "both modes run the same jobs");
    let tried = report["tried"].as_array().ok_or("no cases")?;
    assert!(tried.len() == 12 && tried.iter().all(|case| case["jobs"].as_u64() > Some(0)), "{tried:?}");
    Ok(())
}

#[test]
fn a_self_test_with_a_time_limit_ends() -> Outcome {
    let begun = std::time::Instant::now();
    let report = Run::of(&["selftest", "--engine", "sim", "--seconds", "1", "--json"])?.json()?;
    assert!(begun.elapsed().as_secs() < 30 && report["rows"][1]["jobs"].as_u64() > Some(0), "{report}");
    Ok(())
}

#[test]
fn an_engine_that_is_not_there_is_answered_with_what_is() -> Outcome {
    for args in [["--engine", "pl330@no-such-node"], ["--device", "uio:no-such-node"]] {
        let run = Run::of(&["selftest", args[0], args[1]])?;
        assert_eq!(run.status(), Some(1), "{args:?}");
        let message = run.stderr();
        assert!(message.starts_with("contigo: --device uio:no-such-node: ") && message.lines().count() == 1, "{message}");
        assert!(message.contains("no such UIO device") && message.ends_with("sim:board; sim:pl330; sim:zdma\n"), "{message}");
    }
    let cases: &[(&[&str], &str)] = &[
        (&["selftest", "--dev-mem", "0xf8003000"], "--dev-mem ADDR needs --driver NAME, and no device"),
        (&["selftest", "--driver", "pl330", "--dev-mem", "0x12345000"], "name its port with --port"),
        (&["selftest", "--engine", "pl330", "--dev-mem", "0xf8003000", "--port", "hp9"], "there are cyclone-v-acp, "),
        (&["selftest", "--engine", "pl330", "--dev-mem", "0xf8003000", "--memory", "sim"], "does not see --memory sim"),
        (&["selftest", "--memory", "dma-heap:no-such-heap"], "open(/dev/dma_heap/) failed: errno 2; this machine has "),
        (&["selftest", "--engine", "zdma"], "no device here is known to be one"),
        (&["selftest", "--memory", "vfio:ffff:1f:1f.7"], "--device vfio:ffff:1f:1f.7: "),
        (&["selftest", "--device", "sim:board"], "say with --driver what it is: pl330, zdma"),
    ];
    for (args, said) in cases {
        let run = Run::of(args)?;
        assert_eq!(run.status(), Some(1), "{args:?}");
        assert!(run.stderr().contains(said) && run.stderr().lines().count() == 1, "{args:?}: {}", run.stderr());
        assert!(run.stdout().is_empty(), "{args:?}");
    }
    Ok(())
}

#[test]
fn unknown_memory_is_answered_with_what_exists() -> Outcome {
    for heap in ["u-dma-buf:no-such-device", "dma-heap:no-such-heap", "vfio:ffff:1f:1f.7"] {
        let run = Run::of(&["demo", "--memory", heap])?;
        assert_eq!(run.status(), Some(1), "{heap}");
        let message = run.stderr();
        assert!(message.starts_with(&format!("contigo: --memory {heap}: ")) && message.lines().count() == 1, "{message}");
        assert!(message.contains("; this machine has ") && message.contains("; sim"), "{message}");
        assert!(run.stdout().is_empty() && !run.file("contigo-demo.png").exists());
    }
    Ok(())
}

#[test]
fn wrong_usage_is_status_2_and_says_what_is_right() -> Outcome {
    let cases: &[(&[&str], &str)] = &[
        (&["demo", "--memory", "udmabuf0"], "there is no such kind; write u-dma-buf:NAME or "),
        (
            &["demo", "--heap", "u-dma-buf:../../etc/passwd"],
            "at byte 12: a name is of ASCII, without spaces and without /; write u-dma-buf:NAME;",
        ),
        (&["selftest", "--device", "vfio:1"], "a PCI function is written as 0000:01:00.0"),
        (&["demo", "--images", "898"], "a number from 1 to 897"),
        (&["demo", "--images", "0"], "a number from 1 to 897"),
        (&["demo", "--images", "many"], "a number from 1 to 897"),
        (&["demo", "--seed", "-1"], "for '--seed <S>'"),
        (&["selftest", "--engine", "gpu"], "pl330@NODE name both (pl330, zdma)"),
        (&["selftest", "--engine", "pl330@"], "pl330@NODE"),
        (&["selftest", "--dev-mem", "f8003000"], "write an address as 0xf8003000"),
        (&["selftest", "--seconds", "0"], "1..=86400"),
        (&["selftest", "--jobs", "10", "--seconds", "1"], "cannot be used with"),
        (&["demmo"], "demo"),
        (&[], "Usage:"),
    ];
    for (args, said) in cases {
        let run = Run::of(args)?;
        assert_eq!(run.status(), Some(2), "{args:?}");
        assert!(run.stderr().contains(said), "{args:?}: {}", run.stderr());
    }
    Ok(())
}

#[test]
fn help_is_help() -> Outcome {
    for args in [&["--help"] as &[_], &["demo", "--help"], &["selftest", "--help"], &["info", "--help"], &["boards", "--help"]] {
        let run = Run::of(args)?;
        assert_eq!(run.status(), Some(0), "{args:?}");
        assert!(run.stdout().contains("Usage: contigo"), "{args:?}");
    }
    Ok(())
}

/// Real memory where this machine has some and shows its addresses; elsewhere a failure that says what is missing.
#[test]
fn huge_pages_work_or_say_what_is_missing() -> Outcome {
    let info = Run::of(&["info", "--json"])?.json()?;
    let offers = info["memory"].as_array().ok_or("no list")?;
    let huge = offers.iter().find(|offer| offer["heap"] == "hugetlb").ok_or("no huge pages in the list")?;
    let run = Run::of(&["demo", "--memory", "hugetlb", "--images", "10", "--json"])?;
    if run.status() == Some(0) {
        let report = run.json()?;
        assert_eq!(report["memory"]["backend"], "hugetlb");
        assert_eq!((&report["mismatches"], &report["heap_allocations"], &report["bytes_copied"]), (&0.into(), &0.into(), &0.into()));
        if cfg!(target_arch = "x86_64") {
            assert_eq!((&report["memory"]["coherent"], &report["sync_calls"]), (&true.into(), &0.into()));
        }
    } else {
        // Another program may take the last page between the two runs, so "ready" is no promise.
        let why = format!("hugetlb is {} here: {}", huge["state"], run.stderr().trim_end());
        emulated::skipped("cli::huge_pages_work_or_say_what_is_missing", &why);
        assert_eq!(run.status(), Some(1));
        assert!(run.stderr().starts_with("contigo: --memory hugetlb: ") && run.stderr().lines().count() == 1, "{}", run.stderr());
    }
    Ok(())
}

#[test]
fn info_lists_every_kind_of_memory() -> Outcome {
    let info = Run::of(&["info", "--json"])?.json()?;
    let offers = info["memory"].as_array().ok_or("no list")?;
    for kind in ["sim", "hugetlb", "u-dma-buf", "dma-heap", "vfio"] {
        let found: Vec<_> = offers.iter().filter(|offer| offer["heap"].as_str().is_some_and(|heap| heap.starts_with(kind))).collect();
        assert!(!found.is_empty(), "{kind}");
        for offer in found {
            assert!(["ready", "blocked", "absent"].iter().any(|state| offer["state"] == *state), "{offer}");
            assert!(offer["note"].as_str().is_some_and(|note| !note.is_empty()), "{offer}");
            for field in ["size_bytes", "addr_bits", "coherent"] {
                assert!(offer.get(field).is_some(), "{field} in {offer}");
            }
        }
    }
    let table = Run::of(&["info"])?;
    assert_eq!(table.status(), Some(0));
    assert!(table.stdout().contains("hugetlb") && table.stdout().contains("coherent"));
    Ok(())
}

#[test]
fn boards_are_listed() -> Outcome {
    let boards = Run::of(&["boards", "--json"])?.json()?;
    let boards = boards.as_array().ok_or("no list")?;
    assert_eq!(boards.len(), contigo_boards::ALL.len());
    let de10 = boards.iter().find(|board| board["name"] == "de10-nano").ok_or("no DE10-Nano")?;
    let acp = de10["ports"].as_array().and_then(|ports| ports.iter().find(|port| port["coherent"] == true)).ok_or("no ACP")?;
    assert_eq!((&acp["offset"], &acp["window_last"]), (&"0x80000000".into(), &"0xbfffffff".into()));
    assert!(Run::of(&["boards"])?.stdout().contains("zynq-hp0"));
    Ok(())
}

#[test]
fn a_reader_that_has_gone_is_no_panic() -> Outcome {
    let mut child = emulated::command(env!("CARGO_BIN_EXE_contigo")).arg("boards").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    Ok(())
}

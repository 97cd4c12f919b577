//! A tool for NVTX hears the demo, with a trace beside it and without.

use super::{Answer, Outcome, Run};
use contigo_testkit::emulated;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

const VARIABLE: &str = if cfg!(target_pointer_width = "64") {
    "NVTX_INJECTION64_PATH"
} else {
    "NVTX_INJECTION32_PATH"
};

/// The tool that writes lines. `cargo test --workspace` has built it; a narrower run builds it
/// here.
fn tool() -> Answer<&'static PathBuf> {
    static TOOL: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || -> Answer<PathBuf> {
        let own = std::env::current_exe()?;
        let folder = own.parent().and_then(|deps| deps.parent()).ok_or("no folder of Cargo's")?;
        let built = folder.join("examples/libnvtx_lines.so");
        if !built.exists() {
            let example =
                ["build", "--quiet", "--locked", "-p", "contigo-nvtx", "--example", "nvtx_lines"];
            assert!(
                Command::new(env!("CARGO")).args(example).status()?.success(),
                "the example was not built"
            );
        }
        Ok(built)
    };
    TOOL.get_or_init(|| build().map_err(|error| error.to_string()))
        .as_ref()
        .map_err(|error| error.clone().into())
}

/// A run under the tool, and its lines.
fn heard(args: &[&str]) -> Answer<(Run, Vec<String>)> {
    let tool = tool()?.to_str().ok_or("a path that is not text")?;
    let run = Run::with(args, &[(VARIABLE, tool), ("NVTX_LINES", "lines")])?;
    let lines = fs::read_to_string(run.file("lines")).unwrap_or_default();
    Ok((run, lines.lines().map(str::to_owned).collect()))
}

/// How many lines have the verb, which may have a number behind it, and the name.
fn count(lines: &[String], verb: &str, name: &str) -> usize {
    let is = |line: &&String| {
        let mut words = line.split(' ').skip(1);
        words.next().and_then(|word| word.split(':').next()) == Some(verb)
            && words.nth(1) == Some(name)
    };
    lines.iter().filter(is).count()
}

#[test]
fn a_tool_hears_each_job_of_the_demo() -> Outcome {
    if let Some(why) = emulated::why() {
        contigo_testkit::skipped("cli nvtx", &why);
        return Ok(());
    }
    let images = 20;
    for more in [&[][..], &["--trace", "run.json"]] {
        let (run, lines) = heard(&[&["demo", "--images", "20", "--json"], more].concat())?;
        let report = run.any_json()?;
        let jobs = lines.iter().filter(|line| line.contains(" job_on_")).count();
        assert_eq!(
            (jobs, count(&lines, "end", "-")),
            (2 * images, 2 * images),
            "two jobs for each image: {more:?}"
        );
        // As the trace's test has it.
        assert_eq!(count(&lines, "push", "sync_for_device"), 1 + 5 + 2 * images);
        assert_eq!((count(&lines, "push", "copy"), &report["bytes_copied"]), (0, &Value::from(0)));
        assert_eq!(run.file("run.json").exists(), !more.is_empty());
    }
    Ok(())
}

#[test]
fn missing_nvtx_tool_is_told_run_goes_on() -> Outcome {
    let nowhere = [(VARIABLE, "/nowhere/libtool.so")];
    Run::with(&["demo", "--images", "1"], &nowhere)?.ends(0).complains(&[
        VARIABLE,
        "cannot be loaded: /nowhere/libtool.so: ",
        "goes on without it",
    ]);
    Ok(())
}

//! A tool for NVTX hears each event of a program once, nested as it happened.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

mod tool;

use std::collections::BTreeMap;
use tool::{Line, heard, program};

/// The runtime's own counts, as the program prints them: calls and bytes of each kind.
fn counts(printed: &str) -> BTreeMap<String, (u64, u64)> {
    let mut counts = BTreeMap::<_, (u64, u64)>::new();
    for row in printed.lines().skip(1) {
        let [kind, calls, bytes] = row.split(' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let sum = counts.entry(kind.to_owned()).or_default();
        *sum = (sum.0 + calls.parse::<u64>().unwrap(), sum.1 + bytes.parse::<u64>().unwrap());
    }
    counts
}

/// The same by what the tool heard under `verb`, with the payloads of each name added up.
fn sums(lines: &[Line], verb: &str) -> BTreeMap<String, (u64, u64)> {
    let mut sums = BTreeMap::<_, (u64, u64)>::new();
    for line in lines.iter().filter(|line| line.verb == verb) {
        let sum = sums.entry(line.name.clone()).or_default();
        *sum = (sum.0 + 1, sum.1 + line.payload.unwrap_or(0));
    }
    sums
}

#[test]
fn the_tool_hears_what_the_runtime_counts() {
    let (printed, lines) = heard(&mut program());
    assert!(printed.starts_with("a tool is attached: true\n"), "{printed}");
    assert!(lines.iter().all(|line| line.domain == "contigo"), "{lines:?}");
    let mut expected = counts(&printed);
    assert_eq!(expected["copy"], (3, 3 * 512), "the program copies for each of its jobs");
    let jobs = [
        expected.remove("submit").unwrap().0,
        expected.remove("complete").unwrap().0,
        expected["stop"].0,
    ];
    assert_eq!(jobs, [3, 2, 1]);

    // Syncs and copies take time, and are ranges; everything else is a mark. A stop has its job's
    // number: 3.
    let ranges: BTreeMap<_, _> = ["copy", "sync_for_device", "sync_for_cpu"]
        .map(|name| (name.to_owned(), expected.remove(name).unwrap()))
        .into();
    assert_eq!(sums(&lines, "push"), ranges);
    expected.get_mut("stop").unwrap().1 = 3;
    assert_eq!(sums(&lines, "mark"), expected);
    // 1 + 2 + 3 are the jobs' numbers.
    assert_eq!(sums(&lines, "start"), BTreeMap::from([("job_on_sim-hp0".to_owned(), (3, 6))]));
}

#[test]
fn ranges_nest_and_each_job_ends_once() {
    let (_, lines) = heard(&mut program());
    let (mut open, mut jobs, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    for line in &lines {
        match line.verb.as_str() {
            "push" => open.push(line.name.clone()),
            "pop" => assert!(open.pop().is_some(), "a pop with no push: {lines:?}"),
            "start" => {
                assert!(open.is_empty(), "a doorbell inside of {open:?}");
                jobs.push(line.id);
            }
            "end" => {
                assert!(
                    jobs.contains(&line.id) && !ended.contains(&line.id),
                    "{line:?} of {lines:?}"
                );
                ended.push(line.id);
            }
            _ => assert!(open.is_empty(), "{line:?} inside of {open:?}"),
        }
        assert!(open.len() <= 1, "the runtime begins nothing inside of a range: {lines:?}");
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!((jobs.len(), &jobs), (3, &ended), "each ends, in order");
    // Its operands are synced before its doorbell, and its result after its end.
    let at = |verb: &str, name: &str| {
        lines.iter().position(|line| line.verb == verb && line.name == name).unwrap()
    };
    let job = at("start", "job_on_sim-hp0");
    assert!(
        lines[job - 4..job].iter().all(|line| line.verb == "pop" || line.name == "sync_for_device"),
        "{lines:?}"
    );
    assert_eq!(
        (lines[job + 1].verb.as_str(), lines[job + 2].name.as_str()),
        ("end", "sync_for_cpu")
    );
}

#[test]
fn variable_naming_no_tool_tells_why() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.so");
    std::fs::write(&text, "no library").unwrap();
    for (path, words) in [
        ("/nowhere/libtool.so", "NotLoaded"),
        (text.to_str().unwrap(), "NotLoaded"),
        ("libm.so.6", "NoTool"),
    ] {
        let output = program().env(tool::VARIABLE, path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{path}: {said}");
    }
    let output = program()
        .env(tool::VARIABLE, tool::library())
        .env("NVTX_LINES_REFUSES", "1")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("Refused"), "{output:?}");
}

#[test]
fn nothing_is_attached_unasked() {
    for value in [None, Some(""), Some("./.")] {
        let mut program = program();
        value.map(|value| program.env(tool::VARIABLE, value));
        let output = program.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && printed.starts_with("a tool is attached: false\n"),
            "{value:?}: {printed}"
        );
    }
}

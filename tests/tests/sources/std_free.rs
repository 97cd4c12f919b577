//! The runtime names neither `std` nor `alloc`. Its crates are `no_std`, so a source reaches either
//! one by `extern crate` alone, which is looked for here; `.ci/run` builds the runtime for a
//! processor that has neither. A test's stand-in for the kernel is built with the feature `testkit`
//! alone, and takes the heap.

use super::docs::markdown;
use super::root;
use std::fs;
use std::process::Command;

/// The files that take std, and what a file beside them says of when they are built.
const TAKE_STD: [(&str, &str, &str); 3] = [
    (
        "runtime/core/src/linux/os/seam.rs",
        "runtime/core/src/linux/os/mod.rs",
        "#[cfg(feature = \"testkit\")]\npub mod seam;\n",
    ),
    // Errors that answer in std's type, where a program asks for it.
    (
        "runtime/core/src/types/error/io.rs",
        "runtime/core/src/types/error/mod.rs",
        "#[cfg(all(feature = \"std\", not(target_os = \"none\")))]\nmod io;\n",
    ),
    // The types of a descriptor are std's, and all that is taken from there.
    ("runtime/core/src/types/platform/linux.rs", "", ""),
];

#[test]
fn the_sources_name_neither() {
    const CRATES: [&str; 5] = ["core", "design", "drivers", "sim", "contigo"];
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let files = markdown::files(&root().join("runtime"), &["rs"]);
    for each in CRATES {
        let library = read(&format!("runtime/{each}/src/lib.rs"));
        assert!(library.lines().any(|line| line == "#![no_std]"), "{each} is no_std, always");
        let sources = files.iter().filter(|path| path.starts_with(&format!("{each}/src/")));
        for path in sources.map(|path| format!("runtime/{path}")) {
            let text = read(&path);
            for (at, _) in text.match_indices("extern crate ") {
                let before = text[..at].trim_end();
                let is_test = ["#[cfg(test)]", "#[cfg(test)]\nmod tests {"]
                    .iter()
                    .any(|condition| before.ends_with(condition));
                let listed = TAKE_STD.iter().any(|(listed, ..)| *listed == path);
                assert!(is_test || listed, "{path}: {}", text[at..].lines().next().unwrap());
            }
        }
    }
    for (path, parent, condition) in TAKE_STD {
        assert!(read(path).contains("extern crate std;"), "{path}");
        assert!(parent.is_empty() || read(parent).contains(condition), "{parent}: {condition}");
    }
    let linux = read("runtime/core/src/types/platform/linux.rs");
    assert_eq!(linux.matches("std::").count(), linux.matches("std::os::fd::").count());
}

#[test]
fn what_is_shipped_has_no_seam() {
    for package in ["contigo-cli", "contigo-c", "contigo-tests"] {
        for library in ["contigo", "contigo-core"] {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.current_dir(root()).args(["tree", "--locked", "--offline", "--package", package]);
            cargo.args(["--edges", "features,no-dev", "--invert", library]);
            let output = cargo.output().unwrap();
            let tree = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && tree.contains(&format!("{library} feature \"linux\"")),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            let has_seam = tree.contains(&format!("{library} feature \"testkit\""));
            assert!(!has_seam, "{package}: {tree}");
        }
    }
}

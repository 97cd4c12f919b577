//! The documents' commands of the tool have options that it has, and its output there is its own.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

#[path = "../../../tests/tests/house/docs/markdown.rs"]
mod markdown;

use contigo_testkit::emulated;
use std::{fs, path::Path};

#[test]
fn commands_have_the_tools_options() {
    if emulated::why().is_some() {
        return emulated::skipped(
            "docs::commands_have_the_tools_options",
            "the help is the same there",
        );
    }
    let root = markdown::root(env!("CARGO_MANIFEST_DIR"), 2);
    let tried =
        markdown::try_commands(&root, "contigo", Path::new(env!("CARGO_BIN_EXE_contigo"))).unwrap();
    assert!(tried > 15, "{tried} commands");
}

/// Each line that documents print of the demo, except for times.
#[test]
fn the_demo_prints_what_documents_say() {
    if emulated::why().is_some() {
        return emulated::skipped(
            "docs::the_demo_prints_what_documents_say",
            "the demo takes too long there",
        );
    }
    let root = markdown::root(env!("CARGO_MANIFEST_DIR"), 2);
    let folder = tempfile::tempdir().unwrap();
    let output = emulated::command(env!("CARGO_BIN_EXE_contigo"))
        .arg("demo")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    for path in ["README.md", "docs/measured.md"] {
        let text = fs::read_to_string(root.join(path)).unwrap();
        let page = markdown::page(&text, path.to_owned());
        let shown: Vec<_> = page
            .blocks
            .iter()
            .filter(|block| block.text.iter().any(|line| line.contains("accuracy: ")))
            .collect();
        assert_eq!(shown.len(), 1, "{path} shows the demo's output");
        for line in shown.iter().flat_map(|block| &block.text) {
            assert!(
                said.lines().any(|own| own.trim() == line.trim()),
                "{path}: the demo does not print \"{line}\", but:\n{said}"
            );
        }
    }
}

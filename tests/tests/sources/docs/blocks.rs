//! Blocks of code are parts of programs that are compiled.
//!
//! A block `rust`, `c`, `python` or `dts` is a run of lines of a file in `SOURCES`, but for the
//! indent. Rust's files are modules of this test, or programs of their own. C's are compiled by
//! `bindings/c/tests/examples.rs`, Python's by `tests/interop/run`, and trees by
//! `cross/tests/overlays.rs` or here.

use super::markdown::{Block, Page, dedent, files, pages, root};
use std::fs;
use std::path::Path;

/// Where a block of each language may be from.
const SOURCES: [(&str, &str, &[&str]); 4] = [
    ("rust", "rs", &["docs/examples/", "rtl/src/bin/"]),
    ("c", "c", &["docs/examples/", "bindings/c/examples/"]),
    ("python", "py", &["docs/examples/", "bindings/python/examples/"]),
    ("dts", "dtso", &["docs/examples/", "boards/", "examples/"]),
];

/// Languages that are tried elsewhere, or are none.
const OTHERS: [&str; 6] = ["sh", "json", "toml", "md", "text", "mermaid"];

/// The crate's own pages are doctests: a block without a language is Rust there.
const DOCTESTS: &str = "runtime/contigo/guide/";

/// Are the block's lines in this file, one after the other?
fn is_part(block: &Block, text: &str) -> bool {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let len = block.text.len();
    (0..=lines.len().saturating_sub(len))
        .any(|at| lines.get(at..at + len).is_some_and(|part| dedent(part) == block.text))
}

/// Why the block is not compiled; `None`: it is, or is no code.
fn wrong(root: &Path, page: &Page, block: &Block, sources: &[String]) -> Option<String> {
    let language = block.language.as_str();
    if let Some((_, extension, folders)) = SOURCES.iter().find(|(name, ..)| *name == language) {
        let mut files = sources.iter().filter(|path| {
            path.ends_with(&format!(".{extension}"))
                && folders.iter().any(|folder| path.starts_with(folder))
        });
        let found = files
            .any(|path| is_part(block, &fs::read_to_string(root.join(path)).unwrap_or_default()));
        return (!found).then(|| format!("these lines are in no .{extension} of {folders:?}"));
    }
    let is_code = |line: &String| line.ends_with([';', '{']) && !line.starts_with(['$', '#', '/']);
    match language {
        "json" => contigo::design::kernel::any(block.text.join("\n").as_bytes(), "")
            .and_then(|map| map.build())
            .err()
            .map(|error| error.to_string()),
        "" if page.path.starts_with(DOCTESTS) => None,
        "" | "text" => block
            .text
            .iter()
            .find(|line| is_code(line))
            .map(|line| format!("this looks like code, and has no language: {line}")),
        _ if OTHERS.contains(&language) => None,
        _ => Some(format!("no test checks the language \"{language}\"")),
    }
}

#[test]
fn blocks_of_code_are_parts_of_programs() {
    let root = root(env!("CARGO_MANIFEST_DIR"), 1);
    let sources = files(&root, &["rs", "c", "py", "dtso"]);
    let (mut tried, mut places) = (0, String::new());
    for page in pages(&root).iter().filter(|page| page.path != "CHANGELOG.md") {
        for block in &page.blocks {
            tried += 1;
            if let Some(why) = wrong(&root, page, block, &sources) {
                places += &format!("{}:{}: {why}\n", page.path, block.line);
            }
        }
    }
    assert!(places.is_empty(), "{places}");
    assert!(tried > 50, "{tried} blocks");
}

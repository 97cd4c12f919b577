//! The documents' commands `cargo lab …` have options that it has.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

#[path = "../../../tests/tests/sources/docs/markdown.rs"]
mod markdown;

use std::path::Path;

#[test]
fn commands_have_its_options() {
    let root = markdown::root(env!("CARGO_MANIFEST_DIR"), 2);
    let tried =
        markdown::try_commands(&root, "lab", Path::new(env!("CARGO_BIN_EXE_contigo-lab"))).unwrap();
    assert!(tried > 3, "{tried} commands");
}

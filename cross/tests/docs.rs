//! The documents' commands `cargo cross …` have options that it has.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

#[path = "../../tests/tests/sources/docs/markdown.rs"]
mod markdown;

use std::path::Path;

#[test]
fn commands_have_its_options() {
    let root = markdown::root(env!("CARGO_MANIFEST_DIR"), 1);
    let tried =
        markdown::try_commands(&root, "cross", Path::new(env!("CARGO_BIN_EXE_contigo-cross")))
            .unwrap();
    assert!(tried > 3, "{tried} commands");
}

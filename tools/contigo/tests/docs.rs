//! The documents' commands of the tool have options that it has.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

#[path = "../../../tests/tests/sources/docs/markdown.rs"]
mod markdown;

use contigo_testkit::emulated;
use std::path::Path;

#[test]
fn commands_have_the_tools_options() {
    if emulated::why().is_some() {
        return contigo_testkit::skipped(
            "docs::commands_have_the_tools_options",
            "the help is the same there",
        );
    }
    let root = markdown::root(env!("CARGO_MANIFEST_DIR"), 2);
    let tried =
        markdown::try_commands(&root, "contigo", Path::new(env!("CARGO_BIN_EXE_contigo"))).unwrap();
    assert!(tried > 15, "{tried} commands");
}

//! The programs that must not compile: one file in `compile_fail/` for each ownership rule.
//!
//! The whole message, which is what a user reads, is compared with the `.stderr` beside each file,
//! where the compiler is the one that wrote those. The error is the one that the file's first line
//! names. `TRYBUILD=overwrite cargo test -p contigo-tests --test sources compile_fail` writes the
//! messages anew.

use contigo_testkit::emulated;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The compiler whose words are in the `.stderr` files.
const RUSTC: &str = "1.95.0";

const COMPILER: &str = "the compiler refuses the same for every processor";

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of `compile_fail/`, in order.
fn files() -> Vec<PathBuf> {
    let entries =
        fs::read_dir(here().join("compile_fail")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    files
}

/// The compiler that the cargo above uses too.
fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

#[test]
fn each_file_is_refused_for_its_own_reason() {
    let files = files();
    assert!(files.len() >= 40, "the files are found: {}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("// error: "))
            .unwrap_or("its first line names no error");
        assert_eq!(written(&file), BTreeSet::from([code.to_owned()]), "{}", file.display());
    }
}

/// The codes of the errors in the message beside `file`. An error without a code is `none`.
fn written(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file.with_extension("stderr")).unwrap();
    let errors = text.lines().filter_map(|line| line.strip_prefix("error"));
    errors
        .map(|rest| {
            rest.strip_prefix('[')
                .and_then(|rest| rest.split(']').next())
                .unwrap_or("none")
                .to_owned()
        })
        .collect()
}

/// The compiler's version: `1.95.0`.
fn version() -> String {
    let text = rustc()
        .arg("--version")
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn each_refusal_says_what_it_said() {
    if emulated::finds_no_more(COMPILER) {
        return;
    }
    let version = version();
    if version != RUSTC {
        let why = format!(
            "the words in compile_fail/*.stderr are those of rustc {RUSTC}; here is {version}"
        );
        return emulated::skipped("compile_fail::each_refusal_says_what_it_said", &why);
    }
    trybuild::TestCases::new().compile_fail("compile_fail/*.rs");
}

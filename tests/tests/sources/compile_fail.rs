//! The programs that must not compile: one file in `compile_fail/` for each ownership rule.
//!
//! A comment ends each line that is refused: `//~ `, the code of the error or `none`, and its text.
//! Any other error fails the test, and so does one that is missing. The text, which is what a user
//! reads, is compared where the compiler is the one that wrote those. `CONTIGO_WRITE_REFUSALS=1
//! cargo test -p contigo-tests --test sources compile_fail` writes them anew.

use super::root;
use contigo_testkit::emulated;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The compiler whose words are in the files.
const RUSTC: &str = "1.95.0";
const MARK: &str = " //~ ";

/// An error: its line, counted from 0, its code and its text.
type Refusal = (usize, String);

/// Every file of `compile_fail/`, in order.
fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("tests/compile_fail")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The compiler that the cargo above uses too.
fn rustc() -> Command {
    Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// The library `name` that this program was linked with: the newest that is older than it.
fn library(name: &str) -> PathBuf {
    let modified = |path: &PathBuf| path.metadata().unwrap().modified().unwrap();
    let test = env::current_exe().unwrap();
    let files = fs::read_dir(test.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| {
        let file = path.file_name().unwrap().to_str().unwrap();
        let hash = file.strip_prefix("lib").and_then(|rest| rest.strip_prefix(name));
        hash.is_some_and(|hash| hash.starts_with('-') && hash.ends_with(".rlib"))
            && modified(path) <= modified(&test)
    };
    let newest = files.filter(is_it).max_by_key(modified);
    newest.unwrap_or_else(|| panic!("no {name} beside {}", test.display()))
}

/// How the compiler refuses `file`.
fn refusals(file: &Path, libraries: &[(&str, PathBuf)]) -> Vec<Refusal> {
    let out = tempfile::tempdir().unwrap();
    let mut rustc = rustc();
    rustc.args(["--edition", "2024", "--emit", "metadata", "--error-format", "json", "--out-dir"]);
    rustc.arg(out.path()).arg(file);
    for (name, path) in libraries {
        let folder = path.parent().unwrap().display();
        rustc.arg("--extern").arg(format!("{name}={}", path.display()));
        rustc.arg("-L").arg(format!("dependency={folder}"));
    }
    let output = rustc.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{} is refused: {text}", file.display());
    let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // The last message has no place: that there were errors.
    let refusal = |message: Value| {
        let here = message["spans"].as_array()?.iter().find(|span| span["is_primary"] == true)?;
        let line = usize::try_from(here["line_start"].as_u64()?).unwrap() - 1;
        let (code, text) = (message["code"]["code"].as_str(), message["message"].as_str()?);
        (message["level"] == "error").then(|| {
            assert_eq!(here["file_name"], file.display().to_string(), "{text}");
            (line, format!("{} {text}", code.unwrap_or("none")))
        })
    };
    messages.filter_map(refusal).collect()
}

#[test]
fn each_program_is_refused_for_its_own_reason() {
    if emulated::finds_no_more("the compiler refuses the same for every processor") {
        return;
    }
    let version = String::from_utf8(rustc().arg("--version").output().unwrap().stdout).unwrap();
    let is_same = version.split(' ').nth(1) == Some(RUSTC);
    if !is_same {
        let why = format!("they are rustc {RUSTC}'s; here is {version}");
        contigo_testkit::skipped("compile_fail: the texts of the errors", why.trim());
    }
    let libraries = ["contigo", "contigo_gemm8"].map(|name| (name, library(name)));
    let files = files();
    assert!(files.len() >= 40, "the files are found: {}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let mut found = refusals(&file, &libraries);
        if env::var_os("CONTIGO_WRITE_REFUSALS").is_some() {
            assert!(!found.is_empty(), "{} is refused", file.display());
            let write = |(at, line): (usize, &str)| {
                let mut line = line.split(MARK).next().unwrap().to_owned();
                for (_, what) in found.iter().filter(|(place, _)| *place == at) {
                    line += MARK;
                    line += what;
                }
                line + "\n"
            };
            fs::write(&file, text.lines().enumerate().map(write).collect::<String>()).unwrap();
            continue;
        }
        let marks = text
            .lines()
            .enumerate()
            .flat_map(|(at, line)| line.split(MARK).skip(1).map(move |what| (at, what.to_owned())));
        let mut marked: Vec<Refusal> = marks.collect();
        assert!(!marked.is_empty(), "{} says which line is refused", file.display());
        if !is_same {
            let code = |(at, what): Refusal| (at, what.split(' ').next().unwrap().to_owned());
            found = found.into_iter().map(code).collect();
            marked = marked.into_iter().map(code).collect();
        }
        found.sort();
        marked.sort();
        assert_eq!(found, marked, "{}, by {version}", file.display());
    }
}

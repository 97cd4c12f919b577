//! `docs/cores.md`: its lists are the drivers' rows; the rest is written by hand.

use contigo::names::each_row;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// The line before the rows, and the one after them.
const HEAD_ENDS: &str = "|---|---|---|\n";
const TAIL: &str = "\n## Where a stream is behind the core";

#[test]
fn the_page_of_cores_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cores.md");
    let old = fs::read_to_string(&path).unwrap();
    let tail = old.find(TAIL).unwrap();
    let head = old[..tail].rfind(HEAD_ENDS).unwrap() + HEAD_ENDS.len();
    let mut page = old[..head].to_owned();
    each_row(|row| {
        let quoted = |names: &[&str]| {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        write!(page, "| `{}` | {}.", row.name, capital(row.help)).unwrap();
        for (what, names) in [("DT", row.compatible), ("IP", row.ip)] {
            if !names.is_empty() {
                write!(page, " {what}: {}.", quoted(names)).unwrap();
            }
        }
        page += if row.copies { " Self-test." } else { "" };
        let settings = quoted(row.settings.unwrap_or_default());
        writeln!(page, " | {settings} |").unwrap();
    });
    page += &old[tail..];
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).is_ok_and(|now| now == page);
    assert!(written, "CONTIGO_WRITE_DOCS=1 cargo test -p contigo-tests --test design names");
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

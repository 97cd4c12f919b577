//! The runtime's sources, as tests read them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every source file below `folder`.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The code that is built, line for line: without comments, and without what follows
/// `#[cfg(test)]` (an item or a module, to its end) or `#![cfg(test)]` (the rest of the file).
pub(crate) fn built(text: &str) -> String {
    let mut kept = String::new();
    // Open braces since `#[cfg(test)]`, and whether its item has begun one.
    let mut skipped: Option<(i32, bool)> = None;
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        if code == "#![cfg(test)]" {
            break;
        }
        if code.trim() == "#[cfg(test)]" {
            skipped = Some((0, false));
            kept.push('\n');
            continue;
        }
        let Some((depth, begun)) = &mut skipped else {
            kept.push_str(code);
            kept.push('\n');
            continue;
        };
        kept.push('\n');
        for letter in code.chars() {
            *depth += i32::from(letter == '{') - i32::from(letter == '}');
            *begun |= letter == '{';
        }
        if *depth == 0 && (*begun || code.trim_end().ends_with(';')) {
            skipped = None;
        }
    }
    kept
}

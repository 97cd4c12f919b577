//! Results of boards: the files that `contigo-board-tests --report` writes.
//!
//! ```text
//!   text ──► schema (docs/results/schema.json) ──► Report ──► sanity ──► silicon ──► table
//! ```
//!
//! [`check`] lists everything that is wrong with a file, for its sender. [`silicon`] says why a
//! right one has no line in the table of `docs/results`.

mod report;
mod sanity;
mod table;

pub use report::Report;
pub use table::{END, START, Table};

use jsonschema::Validator;
use std::sync::LazyLock;

const SCHEMA: &str = include_str!("../../../docs/results/schema.json");
/// So many wrong places of a file are named: other JSON has as many as it has keys.
const NAMED_MAX: usize = 20;
/// A text of a file is shown as far as this.
const SHOWN_MAX: usize = 300;

/// A file of a board has some hundred rows of some hundred bytes.
pub const FILE_MAX_BYTES: u64 = 8 << 20;

/// The first second in which this can have run: a board's clock that says less was never
/// set. 1 January 2025.
const FIRST_UNIX_S: u64 = 1_735_689_600;

static VALIDATOR: LazyLock<Result<Validator, String>> = LazyLock::new(|| {
    let schema = serde_json::from_str(SCHEMA).map_err(|error| error.to_string())?;
    jsonschema::draft202012::new(&schema).map_err(|error| error.to_string())
});

/// The report in `text`, read at `now_unix_s`.
///
/// # Errors
/// Everything that is wrong with it, a line each.
pub fn check(text: &str, now_unix_s: u64) -> Result<Report, Vec<String>> {
    let value = serde_json::from_str(text)
        .map_err(|error| vec![format!("this is no whole JSON file: {error}")])?;
    let validator =
        VALIDATOR.as_ref().map_err(|error| vec![format!("docs/results/schema.json: {error}")])?;
    let place = |path: String| if path.is_empty() { "the file".to_owned() } else { path };
    let wrong = validator.iter_errors(&value).map(|error| {
        format!("{}: {}", place(error.instance_path().to_string()), shown(&error.to_string()))
    });
    let wrong: Vec<_> = wrong.take(NAMED_MAX).collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let report: Report = serde_json::from_value(value).map_err(|error| {
        vec![format!("the schema takes it, and this program does not: {error}")]
    })?;
    let wrong = sanity::wrong(&report, now_unix_s);
    if wrong.is_empty() { Ok(report) } else { Err(wrong) }
}

fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Is it a result of silicon, which the table may have?
///
/// # Errors
/// Why it is none, and what to do.
pub fn silicon(report: &Report) -> Result<(), String> {
    if let Some(how) = &report.emulated {
        return Err(format!("this machine is emulated ({how}); the table is for silicon"));
    }
    if report.options.lab {
        return Err("it was run with --lab, which is for emulators: run it again without".into());
    }
    if report.board.name.is_none() {
        let may_be = if report.board.may_be.is_empty() {
            "none that is known".into()
        } else {
            report.board.may_be.join(", ")
        };
        return Err(format!(
            "its device tree names no board of boards/ (by its SoC: {may_be}): add a folder \
             there, boards/README.md says how"
        ));
    }
    if report.engines.iter().all(|engine| engine.name.starts_with("simulated")) {
        return Err("no engine of its own was found: bind one to uio or to the module contigo, \
            docs/install-on-a-board.md says how"
            .into());
    }
    if report.taken_unix_s < FIRST_UNIX_S {
        return Err(format!(
            "the board's clock was never set: it said second {} of 1970; set it with `date -s`, \
             and run again",
            report.taken_unix_s
        ));
    }
    if report.rows.is_empty() && report.soak.is_none() {
        return Err("it has no row and no soak: nothing was run".into());
    }
    Ok(())
}

//! Results of boards: the files that `contigo-board-tests --report` writes.
//!
//! ```text
//!   text ──► Report ──► sanity ──► silicon ──► table
//! ```
//!
//! [`check`] lists everything that is wrong with a file, for its sender. [`silicon`] says why a
//! right one has no line in the table of `docs/results`.

mod report;
mod sanity;
mod table;

pub use report::Report;
pub use table::{END, START, Table};

/// A text of a file is shown as far as this.
const SHOWN_MAX: usize = 300;

/// A file of a board has some hundred rows of some hundred bytes.
pub const FILE_MAX_BYTES: u64 = 8 << 20;

/// The first second in which this can have run: a board's clock that says less was never
/// set. 1 January 2025.
const FIRST_UNIX_S: u64 = 1_735_689_600;

/// The report in `text`, read at `now_unix_s`.
///
/// # Errors
/// The first field that is missing, unknown or of another type, with its place; of a report that
/// has all its fields, everything that makes no sense, a line each.
pub fn check(text: &str, now_unix_s: u64) -> Result<Report, Vec<String>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let report: Report = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        vec![format!("{}: {}", error.path(), shown(&error.inner().to_string()))]
    })?;
    reader.end().map_err(|error| vec![error.to_string()])?;
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
            docs/boards.md says how"
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

//! Standard output: text, tables, or one JSON value. A closed reader (`contigo info | head -1`) is
//! no failure.

use crate::failure::Failure;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use console::Term;
use serde::Serialize;
use std::env;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

pub(crate) fn text(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// Prints one value, indented, and nothing else.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let indented =
        serde_json::to_string_pretty(value).map_err(|error| Failure::Encode(error.to_string()))?;
    text(indented)
}

/// Prints a report as JSON, or as the text that is made of it.
pub(crate) fn report<R: Serialize, T: Display>(
    json_wanted: bool,
    report: &R,
    listed: impl FnOnce(&R) -> T,
) -> Result<(), Failure> {
    if json_wanted { json(report) } else { text(listed(report)) }
}

/// The widest table, even on a wider terminal.
const COLUMNS: u16 = 100;

/// The width of a table here: that of the terminal, or `COLUMNS` from the environment.
fn columns() -> u16 {
    let terminal = Term::stdout();
    let terminal =
        terminal.is_term().then(|| terminal.size_checked()).flatten().map(|(_, columns)| columns);
    let said = env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .filter(|columns| *columns > 0);
    [terminal, said].into_iter().flatten().fold(COLUMNS, u16::min)
}

/// An empty table, as wide as its content, but no wider than fits here. A longer cell is broken
/// into several lines.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_BORDERS_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header)
        .set_width(columns());
    table
}

/// Keeps each cell of the first column in one line, because users copy names from it, if that
/// leaves `others` columns for the rest of the table.
pub(crate) fn keep_names(table: &mut Table, others: u16) {
    let width = table.column_max_content_widths().first().copied().unwrap_or(0);
    if let Some(names) = table.column_mut(0).filter(|_| width.saturating_add(others) <= columns()) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
}

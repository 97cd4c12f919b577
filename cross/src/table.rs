//! Tables on a terminal.

use comfy_table::{ContentArrangement, Table, presets::UTF8_BORDERS_ONLY};
use console::Term;

/// An empty table, as wide as the terminal where there is one, and as wide as it needs to be
/// elsewhere.
#[must_use]
pub fn new(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_BORDERS_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    let terminal = Term::stdout();
    if let Some((_, columns)) = terminal.is_term().then(|| terminal.size_checked()).flatten() {
        table.set_width(columns);
    }
    table
}

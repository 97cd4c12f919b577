//! The terminal: a line that moves while a step takes long, tables, and standard output. Where
//! standard error is no terminal, a step that takes long has a line when that is known, and one at
//! its end.

use crate::failure::Result;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{ContentArrangement, Table};
use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(120);
/// A step that is over sooner leaves no line behind.
const WORTH_A_LINE: Duration = Duration::from_secs(2);
/// A step that takes longer is announced where nothing moves.
const WORTH_ANNOUNCING: Duration = Duration::from_secs(5);

/// The lines that move, of all threads. It draws nothing where standard error is no terminal.
static LINES: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// One step that is under way.
#[derive(Debug)]
pub struct Step {
    title: String,
    begun: Instant,
    announced: AtomicBool,
    bar: ProgressBar,
}

impl Step {
    /// Begins a step. `of` is how many parts it has, where that is known.
    pub fn begin(title: impl Into<String>, of: Option<u64>) -> Self {
        let title = title.into();
        let bar = LINES.add(of.map_or_else(ProgressBar::no_length, ProgressBar::new));
        let picture = match of {
            Some(_) => "{prefix}: {bar:30} {percent:>3} %, {elapsed}, {eta} left  {wide_msg}",
            None => "{spinner} {prefix}: {elapsed}  {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(picture) {
            bar.set_style(style);
        }
        bar.set_prefix(title.clone());
        bar.enable_steady_tick(TICK);
        Self { title, begun: Instant::now(), announced: AtomicBool::new(false), bar }
    }

    /// The step's work just now: the last line of a log.
    pub fn say(&self, detail: &str) {
        self.bar.set_message(detail.to_owned());
        let late = self.begun.elapsed() >= WORTH_ANNOUNCING;
        if late && self.bar.is_hidden() && !self.announced.swap(true, Ordering::Relaxed) {
            say(&format!("{} …", self.title));
        }
    }

    /// One more part is done. Where more come than were promised, the promise grows with them.
    pub fn advance(&self) {
        self.bar.inc(1);
        if self.bar.length().is_some_and(|of| of < self.bar.position()) {
            self.bar.set_length(self.bar.position());
        }
    }

    /// Ends the step; a long one leaves a line that says how long it took.
    pub fn done(self) {
        let took = self.begun.elapsed();
        self.bar.finish_and_clear();
        if took >= WORTH_A_LINE {
            say(&format!("{}: {:.0} s", self.title, took.as_secs_f64()));
        }
    }
}

impl Drop for Step {
    /// A step that failed leaves no half-drawn line under the error.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// One plain line on standard error, above those that move; where that is closed it is lost.
pub fn say(line: &str) {
    LINES.suspend(|| {
        let _ = writeln!(io::stderr(), "{line}");
    });
}

/// An empty table, as wide as the terminal where there is one, and as wide as it needs to be
/// elsewhere.
#[must_use]
pub fn table(header: &[&str]) -> Table {
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

/// Prints `text` and a line break on standard output. A reader that has gone (`cargo lab list |
/// head -1`) is no failure.
pub fn print(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// Prints one value, indented, and nothing else.
pub fn json(value: &impl Serialize) -> Result<()> {
    print(serde_json::to_string_pretty(value)?)
}

/// A size as people say it.
pub fn size(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

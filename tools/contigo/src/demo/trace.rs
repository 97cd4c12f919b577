//! The events of a run with their times: a timeline for a trace viewer, and a table by site.

use crate::failure::Failure;
use crate::output;
use comfy_table::{Cell, CellAlignment};
use contigo::trace::{self, Event, Kind, Ledger, Listener};
use contigo_nvtx::Ranges;
use serde::Serialize;
use serde_json::{Value, json};
use std::cell::Cell as Local;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::panic::Location;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Room for several times the events of the longest run, some 13 for each of 897 images: 10 MB,
/// allocated before the run.
const MAX_EVENTS: usize = 100_000;
/// More than the demo has lines that call the runtime.
const MAX_SITES: usize = 128;
/// The row in the timeline where jobs are shown; threads are numbered from 1.
const DEVICE: u64 = 0;

#[derive(Debug)]
pub(crate) struct Trace {
    start: Instant,
    ledger: Ledger<MAX_SITES>,
    /// Allocated when the trace is made, so that recording an event allocates nothing.
    entries: Mutex<Vec<Entry>>,
    /// The number of events for which there was no room.
    lost: AtomicU64,
    threads: AtomicU64,
    /// The tool for NVTX also gets the events, if one waits.
    ranges: Option<&'static Ranges>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    begin_ns: u64,
    /// Equal to the beginning for an event without a duration.
    end_ns: u64,
    thread: u64,
    event: Event,
    site: Option<&'static Location<'static>>,
}

/// The runtime's work for one line of the program.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    what: &'static str,
    calls: u64,
    bytes: u64,
    /// `file:line`; `null` for work in a drop.
    site: Option<String>,
}

thread_local! {
    /// The work that this thread has begun, and its start.
    static BEGUN: Local<Option<(Event, u64)>> = const { Local::new(None) };
    /// This thread's number, once it has one.
    static THREAD: Local<u64> = const { Local::new(0) };
}

impl Trace {
    /// The program's one trace, listening from now on.
    pub(crate) fn listening() -> &'static Self {
        static TRACE: OnceLock<Trace> = OnceLock::new();
        let trace = TRACE.get_or_init(|| Self {
            start: Instant::now(),
            ledger: Ledger::new(),
            entries: Mutex::new(Vec::with_capacity(MAX_EVENTS)),
            lost: AtomicU64::new(0),
            threads: AtomicU64::new(0),
            ranges: crate::nvtx::ranges(),
        });
        // This program has no other listener: a refusal means that this one is already set.
        let _ = trace::set_listener(trace);
        trace
    }

    /// The counts, by kind, and by site in the order of the program's text.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<_> = self.ledger.rows().collect();
        rows.sort_by_key(|row| {
            (row.kind as usize, row.site.map(|site| (site.file(), site.line(), site.column())))
        });
        let row = |row: trace::Row| Row {
            what: row.kind.name(),
            calls: row.count.calls,
            bytes: row.count.bytes,
            site: row.site.map(|site| format!("{}:{}", site.file(), site.line())),
        };
        rows.into_iter().map(row).collect()
    }

    /// Writes the timeline in Chrome's trace event format, which Perfetto (ui.perfetto.dev) and
    /// chrome://tracing show.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let timeline = json!({
            "traceEvents": self.timeline(),
            "displayTimeUnit": "ns",
            "otherData": {
                "program": "contigo demo", "events_lost": self.lost.load(Ordering::Relaxed),
            },
        });
        let written = File::create(path).and_then(|file| {
            let mut file = BufWriter::new(file);
            serde_json::to_writer(&mut file, &timeline)?;
            file.flush()
        });
        written.map_err(|error| Failure::Write { path: path.to_owned(), error, option: "--trace" })
    }

    /// Events one by one; a job is one bar, from its doorbell to its result.
    fn timeline(&self) -> Vec<Value> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut timeline = vec![name(DEVICE, "jobs on the device")];
        timeline.extend(
            (1..=self.threads.load(Ordering::Relaxed))
                .map(|thread| name(thread, &format!("CPU, thread {thread}"))),
        );
        let mut submitted: Vec<&Entry> = Vec::new();
        for entry in entries.iter() {
            if let Event::Submit { .. } = entry.event {
                submitted.push(entry);
            }
            if let Event::Complete { port, job } | Event::Stop { port, job } = entry.event {
                let doorbell = Event::Submit { port, job };
                if let Some(at) = submitted.iter().rposition(|entry| entry.event == doorbell) {
                    timeline.push(submitted.swap_remove(at).job(entry));
                }
            }
            timeline.push(entry.shown());
        }
        timeline
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn thread(&self) -> u64 {
        THREAD.with(|own| {
            if own.get() == 0 {
                own.set(self.threads.fetch_add(1, Ordering::Relaxed) + 1);
            }
            own.get()
        })
    }
}

impl Listener for Trace {
    fn begins(&self, event: &Event, site: Option<&'static Location<'static>>) {
        if let Some(ranges) = self.ranges {
            ranges.begins(event, site);
        }
        BEGUN.set(Some((*event, self.now_ns())));
    }

    fn happened(&self, event: &Event, site: Option<&'static Location<'static>>) {
        let end_ns = self.now_ns();
        if let Some(ranges) = self.ranges {
            ranges.happened(event, site);
        }
        let begin_ns = BEGUN
            .take()
            .filter(|(begun, _)| begun == event)
            .map_or(end_ns, |(_, begin_ns)| begin_ns);
        self.ledger.happened(event, site);
        let entry = Entry { begin_ns, end_ns, thread: self.thread(), event: *event, site };
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() < entries.capacity() {
            entries.push(entry);
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Entry {
    fn shown(&self) -> Value {
        let mut shown = json!({
            "name": self.event.kind().name(), "cat": "contigo",
            "pid": 1, "tid": self.thread, "ts": us(self.begin_ns),
            "args": {
                "event": self.event.to_string(), "bytes": self.event.len_bytes(),
                "site": self.site.map(Location::to_string),
            },
        });
        if let Some(fields) = shown.as_object_mut() {
            if self.end_ns == self.begin_ns {
                fields.extend([("ph".to_owned(), json!("i")), ("s".to_owned(), json!("t"))]);
            } else {
                fields.extend([
                    ("ph".to_owned(), json!("X")),
                    ("dur".to_owned(), json!(us(self.end_ns - self.begin_ns))),
                ]);
            }
        }
        shown
    }

    /// The bar of a job that this entry began and `end` ended.
    fn job(&self, end: &Self) -> Value {
        let (site, seen) = (self.site.map(Location::to_string), end.site.map(Location::to_string));
        json!({
            "name": end.event.to_string().replace("complete ", ""), "cat": "job",
            "ph": "X", "pid": 1, "tid": DEVICE,
            "ts": us(self.end_ns), "dur": us(end.begin_ns.saturating_sub(self.end_ns)),
            "args": { "submitted": site, "result seen": seen },
        })
    }
}

pub(crate) struct Audit<'a>(pub(crate) &'a [Row]);

impl fmt::Display for Audit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = output::table(&["what", "calls", "bytes", "site"]);
        for Row { what, calls, bytes, site } in self.0 {
            let number = |number: &u64| Cell::new(number).set_alignment(CellAlignment::Right);
            table.add_row([
                Cell::new(what),
                number(calls),
                number(bytes),
                Cell::new(site.as_deref().unwrap_or("(when dropped)")),
            ]);
        }
        let copies = self.0.iter().filter(|row| row.what == Kind::CopyBytes.name());
        let (calls, bytes) =
            copies.fold((0, 0), |(calls, bytes), row| (calls + row.calls, bytes + row.bytes));
        write!(f, "{table}\ncopies: {calls}, of {bytes} bytes")
    }
}

fn name(thread: u64, name: &str) -> Value {
    json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": { "name": name } })
}

/// Microseconds, the format's unit.
#[allow(clippy::cast_precision_loss, reason = "a run of 2^53 ns takes 104 days")]
fn us(ns: u64) -> f64 {
    ns as f64 / 1_000.0
}

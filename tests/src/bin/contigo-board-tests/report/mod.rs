//! `--report FILE`: this machine and every row in one JSON file. `tests/results/src/report.rs`
//! reads it field by field, and `tests/results` refuses what makes no sense.

pub(crate) mod energy;
pub(crate) mod latency;
mod system;

pub(crate) use energy::Energy;
pub(crate) use latency::Latency;

use crate::machine::{Engine, Memory};
use crate::options::Options;
use crate::row::{Row, Status};
use crate::soak::Summary;
use contigo_bringup::machine::Machine;
use latency::cyclictest::{self, Cyclictest};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::UNIX_EPOCH;
use tempfile::{Builder, NamedTempFile};

/// Rises when a reader of older files would misread a new one.
const SCHEMA: u32 = 1;

#[derive(Debug, Serialize)]
struct Report<'o> {
    schema: u32,
    tool: Tool,
    /// The board's own clock.
    taken_unix_s: u64,
    /// By what it is known that this machine is an emulated one.
    emulated: Option<String>,
    board: system::Board,
    kernel: system::Kernel,
    processor: system::Processor,
    c_library: String,
    memories: Vec<Found>,
    engines: Vec<FoundEngine>,
    options: Settings<'o>,
    counts: Counts,
    rows: Vec<Row>,
    latency_definition: &'static str,
    latency: Vec<Latency>,
    cyclictest: Option<Cyclictest>,
    energy: Vec<Energy>,
    /// Of `contigo-board-tests soak`.
    soak: Option<Summary>,
    /// Why a figure is not there, by its name.
    missing: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
    /// The commit that it was built from, where the compiler had it in `CONTIGO_COMMIT`.
    commit: Option<&'static str>,
}

/// A memory of this machine, or a kind that is not there.
#[derive(Debug, Serialize)]
struct Found {
    name: String,
    why_not: Option<String>,
}

#[derive(Debug, Serialize)]
struct FoundEngine {
    name: String,
    device: Option<String>,
}

#[derive(Debug, Serialize)]
struct Settings<'o> {
    jobs: u64,
    seed: u64,
    filter: &'o str,
    lab: bool,
    user: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let of = |status| rows.iter().filter(|row| row.status == status).count();
        let [passed, failed, skipped] = [Status::Passed, Status::Failed, Status::Skipped].map(of);
        Self { passed, failed, skipped }
    }
}

/// Writes the report of these rows, whole or not at all.
pub(crate) fn write(path: &Path, options: &Options, rows: Vec<Row>) -> Result<(), String> {
    write_of(path, &of(&Machine::this(), options, rows, None))
}

pub(crate) fn write_soak(path: &Path, options: &Options, soak: Summary) -> Result<(), String> {
    write_of(path, &of(&Machine::this(), options, Vec::new(), Some(soak)))
}

fn write_of(path: &Path, report: &Report<'_>) -> Result<(), String> {
    let json = serde_json::to_vec_pretty(report)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    write_whole(path, &json)
}

fn of<'o>(
    machine: &Machine,
    options: &'o Options,
    mut rows: Vec<Row>,
    soak: Option<Summary>,
) -> Report<'o> {
    let latency: Vec<_> = rows.iter_mut().filter_map(|row| row.latency.take()).collect();
    let energy: Vec<_> = rows.iter_mut().filter_map(|row| row.energy.take()).flatten().collect();
    let mut missing = BTreeMap::new();
    // Why these rows were not asked for, where they were not.
    let unasked = match (&soak, options.filter.is_empty()) {
        (Some(_), _) => Some("this was a soak"),
        (None, false) => Some("--filter left it out, or the rows say why"),
        (None, true) => None,
    };
    if latency.is_empty() {
        let why = "no engine here was timed; the rows say why";
        missing.insert("latency", unasked.unwrap_or(why).to_owned());
    }
    if energy.is_empty() {
        let why = "the kernel has no monitor of power here (contigo power), or its row failed";
        missing.insert("energy", unasked.unwrap_or(why).to_owned());
    }
    if soak.is_none() {
        missing.insert("soak", "this was no soak".to_owned());
    }
    let cyclictest =
        if soak.is_some() { Err("this was a soak".to_owned()) } else { cyclictest::run() };
    let cyclictest = cyclictest.map_err(|why| missing.insert("cyclictest", why)).ok();
    Report {
        schema: SCHEMA,
        tool: Tool {
            name: "contigo-board-tests",
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("CONTIGO_COMMIT"),
        },
        taken_unix_s: UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()),
        emulated: system::emulated_by(machine, options.lab),
        board: system::Board::of(machine),
        kernel: system::Kernel::of(machine),
        processor: system::Processor::of(machine),
        c_library: system::c_library(),
        memories: Memory::kinds()
            .iter()
            .map(|memory| Found { name: memory.label(), why_not: memory.absent() })
            .collect(),
        engines: Engine::all().iter().map(FoundEngine::of).collect(),
        options: Settings {
            jobs: options.jobs,
            seed: options.seed,
            filter: &options.filter,
            lab: options.lab,
            user: options.user,
        },
        counts: Counts::of(&rows),
        rows,
        latency_definition: latency::DEFINITION,
        latency,
        cyclictest,
        energy,
        soak,
        missing,
    }
}

impl FoundEngine {
    fn of(engine: &Engine) -> Self {
        Self { name: engine.label(), device: engine.device().map(|device| device.to_string()) }
    }
}

/// A file of a run that was killed meanwhile begins so, and can be deleted.
const PREFIX: &str = ".contigo-result-";

pub(crate) fn ensure_writable(path: &Path) -> Result<(), String> {
    if path.is_dir() {
        return Err(format!("--report {}: this is a folder; name a file", path.display()));
    }
    beside(path).map(drop).map_err(|error| said(path, &error))
}

/// Writes `bytes` beside `path`, to the disk, and only then under its name.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let written = || {
        let mut file = beside(path)?;
        file.write_all(bytes)?;
        file.write_all(b"\n")?;
        file.as_file().set_permissions(Permissions::from_mode(0o644))?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error).map(drop)
    };
    written().map_err(|error| said(path, &error))
}

fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Builder::new().prefix(PREFIX).tempfile_in(folder.unwrap_or(Path::new(".")))
}

fn said(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    format!("--report {path}: {error}; nothing was written: name a file on a disk with room")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use crate::row::Name;
    use std::fs;

    #[test]
    fn rows_are_counted_missing_figures_say_why() {
        let row = |status| Row::new(&Name::check("x", "", ""), status, "");
        let rows = vec![row(Status::Passed), row(Status::Skipped), row(Status::Skipped)];
        let options = Options::default();
        let report = of(&Machine::this(), &options, rows, None);
        assert_eq!(report.counts, Counts { passed: 1, failed: 0, skipped: 2 });
        assert!(report.missing.contains_key("latency") && report.missing.contains_key("energy"));
        assert_eq!(report.cyclictest.is_none(), report.missing.contains_key("cyclictest"));
    }

    #[test]
    fn file_is_replaced_whole_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "old").unwrap();
        ensure_writable(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn impossible_report_place_is_refused_first() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ensure_writable(folder.path()).unwrap_err().contains("this is a folder"));
        let nowhere = folder.path().join("none/result.json");
        assert!(ensure_writable(&nowhere).unwrap_err().contains("nothing was written"));
    }
}

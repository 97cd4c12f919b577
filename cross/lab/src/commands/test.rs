//! `cargo lab test`.

use crate::board::Board;
use crate::cpu::Cpu;
use crate::emulator::{self, Console, Function, Ran, Served, Watch};
use crate::guest::{self, Module, Program, Programs, Task, Wanted};
use crate::kernel::{self, Kernel};
use crate::report::{Row, Summary, counts};
use anyhow::{anyhow, bail};
use clap::Args;
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::terminal::{self, say};
use contigo_cross::{packages, toolchain};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{fs, thread};

/// The arguments of the board tests in every guest: rows for a program, no caches here, and
/// everything once more as the ordinary user.
const TEST_ARGUMENTS: [&str; 4] = ["--json", "--lab", "--user", "1000"];

/// A soak's guest boots, and finishes its last round, in less than this.
const SOAK_MORE_S: u64 = 300;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Boards; all of them where none is named
    boards: Vec<String>,
    /// One JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Show the consoles while the guests run
    #[arg(long, short)]
    verbose: bool,
    /// Run only the tests whose name contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Boards to run at the same time
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// Seconds until a guest is ended, instead of the board's own limit
    #[arg(long, value_name = "SECONDS")]
    limit: Option<u64>,
    /// A static program to run in place of the board tests, with their arguments; then there is no
    /// demo either
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// A folder with a tree DIR/BOARD for some of the boards, each with its own libraries. Root
    /// runs the tree's program `run` after the board tests, in a root of its own
    #[arg(long, value_name = "DIR", conflicts_with = "filter")]
    with: Option<PathBuf>,
    /// Random work on the board's engines for so many minutes, with kills and unbinds, in place of
    /// the tests; --verbose shows its line a minute
    #[arg(long, value_name = "MINUTES", conflicts_with_all = ["filter", "with", "limit"])]
    soak: Option<u32>,
    /// The seed of --soak
    #[arg(long, value_name = "S", requires = "soak", default_value = "1")]
    seed: u64,
}

struct Ready {
    board: Board,
    kernel: Kernel,
    programs: Vec<Program>,
    modules: Vec<Module>,
    with: Option<PathBuf>,
    function: Option<Function>,
}

pub(crate) fn test(boards: &Path, helpers: &Path, options: &Options) -> Result<ExitCode> {
    let mut boards = Board::named(boards, &options.boards)?;
    let soak_s = options.soak.map(|minutes| u64::from(minutes) * 60 + SOAK_MORE_S);
    if let Some(limit) = options.limit.or(soak_s) {
        boards.iter_mut().for_each(|board| board.about.time_limit_s = limit);
    }
    // Before anything is built, which takes minutes: programs that are missing on this machine are
    // said, and the user's own files are looked at.
    for board in boards.iter().filter(|board| board.about.qemu.model.is_none()) {
        packages::need(board.cpu().qemu())?;
    }
    if let Some(given) = &options.program {
        for board in &boards {
            Program::read(board, board.cpu(), "program", given)?;
        }
    }
    let with = match &options.with {
        Some(with) => brought(with, &boards)?,
        None => Vec::new(),
    };
    let cache = CacheDir::open()?;
    let is_wanted = |cpu: &Cpu| boards.iter().any(|board| runs(board, *cpu, options));
    for cpu in Cpu::ALL.into_iter().filter(is_wanted) {
        toolchain::static_build(&cache, cpu.target())?;
    }
    let (boards, mut rows) = with_functions(&cache, boards)?;
    let ready = prepare(&cache, boards, helpers, &with, options)?;
    let begun = Instant::now();
    rows.extend(run_all(&cache, &ready, options)?);
    let summary = Summary::new(rows, ready.len(), begun.elapsed());
    if options.json {
        terminal::json(&summary)?;
    } else {
        terminal::print(&summary)?;
    }
    Ok(if summary.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a run of the board wants programs for this processor.
fn runs(board: &Board, cpu: Cpu, options: &Options) -> bool {
    board.cpu() == cpu || (cpu == Cpu::Arm && also_32_bit(board, options))
}

fn also_32_bit(board: &Board, options: &Options) -> bool {
    board.about.also_32_bit && options.program.is_none()
}

type Modelled = (Board, Option<Function>);

/// The boards with their models, and a row for each whose QEMU cannot be had here.
fn with_functions(cache: &CacheDir, boards: Vec<Board>) -> Result<(Vec<Modelled>, Vec<Row>)> {
    let (mut can, mut rows) = (Vec::new(), Vec::new());
    for board in boards {
        match Function::of(cache, &board) {
            Ok(function) => can.push((board, function)),
            Err(error) if matches!(error.downcast_ref(), Some(Failure::NoPackage { .. })) => {
                rows.push(Row::skipped(&board.name, "the run", &error.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((can, rows))
}

/// Kernels and programs for all boards, so that a board that cannot be run is known before the
/// first one is.
fn prepare(
    cache: &CacheDir,
    modelled: Vec<Modelled>,
    helpers: &Path,
    with: &[(String, PathBuf)],
    options: &Options,
) -> Result<Vec<Ready>> {
    let wanted = options.program.as_deref().map_or(Wanted::All, Wanted::Given);
    let boards = || modelled.iter().map(|(board, _)| board);
    let mut built: Vec<Programs> = Vec::new();
    for cpu in Cpu::ALL {
        if boards().any(|board| runs(board, cpu, options)) {
            let programs = Programs::build(cache, cpu, wanted)?;
            programs.say_sizes()?;
            built.push(programs);
        }
    }
    let mut ready = Vec::new();
    for (board, function) in modelled {
        let kernel = Kernel::of(cache, &board, false)?;
        let modules =
            guest::modules(&board, &kernel, kernel::modules(cache, &board, &kernel, helpers)?)?;
        let built_for = |cpu| {
            built
                .iter()
                .find(|programs| programs.cpu() == cpu)
                .ok_or_else(|| anyhow!("nothing was built for {} of {}", cpu.name(), board.name))
        };
        let mut programs = built_for(board.cpu())?.read(&board)?;
        if also_32_bit(&board, options) {
            programs.push(built_for(Cpu::Arm)?.tests_32_bit(&board)?);
        }
        let with =
            with.iter().find(|(name, _)| *name == board.name).map(|(_, folder)| folder.clone());
        ready.push(Ready { board, kernel, programs, modules, with, function });
    }
    Ok(ready)
}

/// The folders in `with` of those boards that have one there. Where no board has one, that is
/// an error: a typo would otherwise go unnoticed.
fn brought(with: &Path, boards: &[Board]) -> Result<Vec<(String, PathBuf)>> {
    let mut all = Vec::new();
    for board in boards {
        all.extend(guest::with(with, board)?.map(|folder| (board.name.clone(), folder)));
    }
    if all.is_empty() {
        let names = boards.iter().map(|board| board.name.as_str()).collect::<Vec<_>>().join(", ");
        bail!("{} has a folder for none of these boards: {names}", with.display());
    }
    Ok(all)
}

/// Runs the boards on as many threads as were asked for. The rows keep the order of the boards.
fn run_all(cache: &CacheDir, ready: &[Ready], options: &Options) -> Result<Vec<Row>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Vec<Row>>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = ready.get(turn) else { return };
            let rows = run(cache, one, options);
            let stop = rows.is_err();
            if let Ok(mut done) = done.lock() {
                done.push((turn, rows));
            }
            if stop {
                next.store(ready.len(), Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..options.jobs.get().min(ready.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(turn, _)| *turn);
    let mut all = Vec::new();
    for (_, rows) in done {
        all.extend(rows?);
    }
    Ok(all)
}

fn run(cache: &CacheDir, ready: &Ready, options: &Options) -> Result<Vec<Row>> {
    let Ready { board, kernel, programs, modules, with, function } = ready;
    let folder = cache.scratch()?;
    let initramfs = folder.path().join("initramfs");
    let mut arguments: Vec<String> = TEST_ARGUMENTS.map(str::to_owned).into();
    let filter = options.filter.as_ref().or(board.about.filter.as_ref());
    arguments.extend(filter.iter().flat_map(|filter| ["--filter".to_owned(), (*filter).clone()]));
    let demo = filter.map(String::as_str).is_none_or(|filter| emulator::DEMO.contains(filter));
    let soak: Option<Vec<_>> = options.soak.map(|minutes| {
        let words = format!("soak --minutes {minutes} --seed {} --lab", options.seed);
        words.split(' ').map(str::to_owned).collect()
    });
    let task = match &soak {
        Some(arguments) => Task::Soak { arguments },
        None => Task::Test { arguments: &arguments, with: with.as_deref(), demo },
    };
    guest::pack(board, programs, modules, task, &initramfs)?;
    let tree = emulator::device_tree(cache, board, kernel, folder.path())?;
    let served = function.as_ref().map(|function| function.serve(folder.path())).transpose()?;
    let function = function.as_ref().zip(served.as_ref().map(Served::socket));
    let qemu =
        emulator::command(board, kernel, &initramfs, tree.as_deref(), function, Console::Log)?;
    let console = folder.path().join("console.log");
    let watch = Watch { verbose: options.verbose, may_be_empty: options.filter.is_some() };
    let ran = emulator::run(board, qemu, &console, watch)?;
    let trouble = match served {
        Some(served) => served.end(&cache.log(&format!("model-{}", board.name))?)?,
        None => None,
    };
    // Only now under its lasting name: two runs at the same time do not write into one file.
    let log = cache.log(&format!("console-{}", board.name))?;
    fs::rename(&console, &log)
        .map_err(|error| Failure::of_io("keeping the console's log", &log, &error))?;
    let checks: &[_] = if options.has_all_rows() { &board.about.checks } else { &[] };
    Ok(judge(board, ran, trouble, checks, &log))
}

impl Options {
    /// Whether a board prints each of its rows. A program in the place of the tests, a part of them
    /// and a soak have others.
    fn has_all_rows(&self) -> bool {
        self.filter.is_none() && self.program.is_none() && self.soak.is_none()
    }
}

/// A failed row for each of `checks` that no row has the name of.
fn missing(board: &str, rows: &[Row], checks: &[String]) -> Vec<Row> {
    let gone = checks.iter().filter(|check| !rows.iter().any(|row| row.name == **check));
    let why = "the board's file names this check, and the guest printed no row of it";
    gone.map(|check| Row::failed(board, check, why)).collect()
}

/// The run's rows, with one more where the run as a whole failed, or its model, or where one is
/// missing.
fn judge(
    board: &Board,
    ran: Ran,
    trouble: Option<String>,
    checks: &[String],
    log: &Path,
) -> Vec<Row> {
    let mut rows = ran.heard.rows;
    for row in &mut rows {
        row.board.clone_from(&board.name);
    }
    if let Some(problem) = &ran.problem {
        let (name, log) = (&board.name, log.display());
        say(&format!("{name}: {problem}; the console's log is {log}; it ends with:"));
        ran.last.iter().for_each(|line| say(&format!("    {line}")));
        rows.push(Row::failed(&board.name, "the run", problem));
    } else {
        rows.extend(missing(&board.name, &rows, checks));
    }
    rows.extend(trouble.map(|trouble| Row::failed(&board.name, "the model", &trouble)));
    let [passed, failed, skipped] = counts(&rows);
    say(&format!(
        "{}: {passed} passed, {failed} failed, {skipped} skipped ({:.1} s)",
        board.name,
        ran.took.as_secs_f64()
    ));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Status;
    use clap::FromArgMatches as _;

    #[test]
    fn a_row_that_is_gone_has_failed() {
        let rows = [Row::passed("zynq", "doctor"), Row::skipped("zynq", "contigo power", "no bus")];
        let checks = ["doctor", "contigo power", "contigo reset"].map(str::to_owned);
        let gone = missing("zynq", &rows, &checks);
        assert_eq!(
            gone.iter().map(|row| (row.name.as_str(), row.status)).collect::<Vec<_>>(),
            [("contigo reset", Status::Failed)]
        );
        assert!(missing("zynq", &rows, &[]).is_empty());
    }

    #[test]
    fn only_a_run_of_everything_has_all_rows() -> std::result::Result<(), clap::Error> {
        let line = |words: &[&str]| -> std::result::Result<bool, clap::Error> {
            let command = clap::Command::new("test").no_binary_name(true);
            let matches = Options::augment_args(command).try_get_matches_from(words)?;
            Ok(Options::from_arg_matches(&matches)?.has_all_rows())
        };
        assert!(line(&["virt"])?);
        for part in [["--soak", "60"], ["--filter", "edu"], ["--program", "true"]] {
            assert!(!line(&[&["virt"][..], &part].concat())?, "{part:?}");
        }
        Ok(())
    }

    /// Each row that a board's file wants is one that the guest's script prints.
    #[test]
    fn the_guest_knows_each_check() -> Result<()> {
        let script = include_str!("../../guest/test.sh");
        let boards = Board::all(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards")))?;
        let checks: Vec<_> = boards.iter().flat_map(|board| &board.about.checks).collect();
        assert!(checks.len() > 7, "{checks:?}");
        for check in checks {
            let printed = [format!("row \"{check}\" "), format!("\\\"name\\\":\\\"{check}\\\"")];
            assert!(printed.iter().any(|text| script.contains(text)), "{check}");
        }
        Ok(())
    }
}

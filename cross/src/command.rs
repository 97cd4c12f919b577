//! One program: with a time limit, its output in a log file, and the last line of it on the
//! terminal while it runs.
//!
//! The program writes into the log itself, and this side reads along. So the log is whole whatever
//! happens here, and no pipe can fill.

mod follow;

pub use follow::Follow;

use crate::failure::{Failure, Result};
use crate::terminal::Step;
use crate::{interrupt, packages, pdeathsig};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::statvfs::statvfs;
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};
use tempfile::NamedTempFile;

/// A program that is asked to end has folders and mounts to clean up.
const END_LIMIT: Duration = Duration::from_secs(20);
/// A program that was killed goes at once, unless the kernel holds it in a call, as for a disk or a
/// network that does not answer. Then it stays, and is not waited for.
const KILLED_LIMIT: Duration = Duration::from_secs(2);
/// Between two looks at a program that runs.
const LOOK: Duration = Duration::from_millis(40);
/// Lines of a log that an error shows.
const LAST_LINES: usize = 20;
/// How long a program may take where nothing else is said.
const LIMIT: Duration = Duration::from_secs(600);
/// With less room than this on a disk, a program that failed there failed for it.
const NO_ROOM_BYTES: u64 = 1 << 20;

/// A program that will be run.
#[derive(Debug)]
pub struct Tool {
    what: String,
    command: Command,
    limit: Duration,
    writes: Option<PathBuf>,
    steps: Option<u64>,
}

impl Tool {
    /// A program on the `PATH`, or the error that says which package has it. `what` is what it will
    /// be doing, for the terminal and for errors.
    pub fn new(program: &str, what: impl Into<String>) -> Result<Self> {
        Ok(Self::at(&packages::need(program)?, what))
    }

    /// The program in this file.
    pub fn at(program: &Path, what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            command: Command::new(program),
            limit: LIMIT,
            writes: None,
            steps: None,
        }
    }

    /// One argument more.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// A variable that it must not have.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(name);
        self
    }

    /// The folder that it runs in.
    #[must_use]
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// How long it may take; ten minutes where this is not called.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Where it writes most: when it fails and that disk is full, the error reports that.
    #[must_use]
    pub fn writes(mut self, place: impl Into<PathBuf>) -> Self {
        self.writes = Some(place.into());
        self
    }

    /// How many lines it prints, where that is known: a bar instead of a spinner.
    #[must_use]
    pub fn steps(mut self, lines: Option<u64>) -> Self {
        self.steps = lines;
        self
    }

    /// The program and its arguments, for another program that starts it.
    pub fn words(&self) -> Vec<String> {
        let all = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Its arguments, for tests and for `--verbose`.
    pub fn line(&self) -> String {
        let quoted = |arg: &OsStr| match arg.to_string_lossy() {
            plain if !plain.is_empty() && !plain.contains([' ', '"', '\'', '$', '&', ';', '(']) => {
                plain.into_owned()
            }
            other => format!("'{}'", other.replace('\'', r"'\''")),
        };
        std::iter::once(self.command.get_program())
            .chain(self.command.get_args())
            .map(quoted)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Runs it to its end; its output goes into `log`. Answers with the number of lines.
    pub fn run(self, log: &Path) -> Result<u64> {
        let step = Step::begin(self.what.clone(), self.steps);
        let lines = self.run_and_follow(log, &mut |line| {
            step.advance();
            step.say(line);
        })?;
        step.done();
        Ok(lines)
    }

    /// The same with every line handed to `each`, and nothing on the terminal.
    pub fn run_and_follow(mut self, log: &Path, each: &mut dyn FnMut(&str)) -> Result<u64> {
        let mut follow = self.log_into(log)?;
        let (ended, lines) = self.wait(&mut follow, each)?;
        match ended {
            Some(status) if status.success() => Ok(lines),
            ended => Err(self.failure(ended, log)),
        }
    }

    /// Runs it and answers with what it printed on standard output; standard error goes into `log`.
    pub fn output(mut self, log: &Path) -> Result<String> {
        let failed = |error: io::Error| Failure::of_io("making a temporary file", log, &error);
        let answer =
            NamedTempFile::new_in(log.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let mut follow = self.log_into(log)?;
        self.command.stdout(answer.reopen().map_err(failed)?);
        let step = Step::begin(self.what.clone(), None);
        let (ended, _) = self.wait(&mut follow, &mut |line| step.say(line))?;
        match ended {
            Some(status) if status.success() => {
                step.done();
                Ok(String::from_utf8_lossy(&fs::read(answer.path()).map_err(failed)?).into_owned())
            }
            ended => Err(self.failure(ended, log)),
        }
    }

    /// Starts it with its own process group, so that everything it starts can be ended with it, and
    /// with its output in `log`.
    pub fn start(mut self, log: &Path) -> Result<(Running, Follow)> {
        let follow = self.log_into(log)?;
        Ok((Running::start(&mut self.command, &self.what)?, follow))
    }

    /// Runs it on this terminal, which is its own as long as it runs.
    pub fn interactive(mut self) -> Result<ExitStatus> {
        pdeathsig::end_with_this_thread(&mut self.command);
        let program = self.command.get_program().to_os_string();
        let mut child =
            self.command.spawn().map_err(|error| not_started(&program, &self.what, &error))?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if interrupt::asked() {
                end(&mut child)?;
                interrupt::check()?;
            }
            thread::sleep(LOOK);
        }
    }

    fn log_into(&mut self, log: &Path) -> Result<Follow> {
        let failed = |error| Failure::of_io(&self.what, log, &error);
        let file = File::create(log).map_err(failed)?;
        self.command.stdin(Stdio::null()).stderr(file.try_clone().map_err(failed)?).stdout(file);
        Follow::new(log).map_err(failed)
    }

    fn wait(
        &mut self,
        follow: &mut Follow,
        each: &mut dyn FnMut(&str),
    ) -> Result<(Option<ExitStatus>, u64)> {
        let deadline = Instant::now() + self.limit;
        let mut running = Running::start(&mut self.command, &self.what)?;
        let mut lines = 0;
        let mut count = |line: &str| {
            lines += 1;
            each(line);
        };
        let ended = loop {
            let ended = running.ended()?;
            follow.new_lines(&mut count)?;
            if ended.is_some() || Instant::now() >= deadline {
                break ended;
            }
            interrupt::check()?;
            thread::sleep(LOOK);
        };
        follow.rest(&mut count)?;
        Ok((ended, lines))
    }

    fn failure(&self, ended: Option<ExitStatus>, log: &Path) -> anyhow::Error {
        let what = self.what.clone();
        let last = last_lines(log, LAST_LINES);
        let said_so = last.iter().any(|line| {
            line.contains("No space left on device") || line.contains("Disk quota exceeded")
        });
        let place = self.writes.as_deref().unwrap_or(log);
        if said_so || room_bytes(place).is_some_and(|room| room < NO_ROOM_BYTES) {
            return Failure::DiskFull { what, place: place.into() }.into();
        }
        match ended {
            None => {
                Failure::TimedOut { what, seconds: self.limit.as_secs(), log: log.into(), last }
                    .into()
            }
            Some(status) => {
                Failure::Failed { what, status: in_words(status), log: log.into(), last }.into()
            }
        }
    }
}

/// A program that runs. Dropping it ends it, and everything that it started and that stayed in its
/// process group.
#[derive(Debug)]
pub struct Running {
    child: Child,
    group: Pid,
    ended: Option<ExitStatus>,
}

impl Running {
    fn start(command: &mut Command, what: &str) -> Result<Self> {
        pdeathsig::end_with_this_thread(command.process_group(0));
        let program = command.get_program().to_os_string();
        let child = command.spawn().map_err(|error| not_started(&program, what, &error))?;
        let group = Pid::from_raw(i32::try_from(child.id())?);
        Ok(Self { child, group, ended: None })
    }

    /// Its status, once it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The processes that it left behind in its group go as well. While the child has not been
        // waited for, no other process has its number. After that, only its own children can be in
        // the group, and an empty group is an error that means nothing.
        let _ = killpg(self.group, Signal::SIGKILL);
        let _ = ends_within(KILLED_LIMIT, || self.child.try_wait());
    }
}

/// Ends a program: by SIGTERM, and by force where it does not end. It may have ended by itself.
fn end(child: &mut Child) -> Result<()> {
    end_after(END_LIMIT, child)
}

fn end_after(limit: Duration, child: &mut Child) -> Result<()> {
    let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
    if !ends_within(limit, || child.try_wait())? {
        let _ = child.kill();
        if !ends_within(KILLED_LIMIT, || child.try_wait())? {
            anyhow::bail!(
                "process {} was killed and does not end: the kernel holds it in a call, and it is \
                 left behind",
                child.id()
            );
        }
    }
    Ok(())
}

/// Whether a program that `look` looks at ends in this time.
fn ends_within(
    limit: Duration,
    mut look: impl FnMut() -> io::Result<Option<ExitStatus>>,
) -> io::Result<bool> {
    let until = Instant::now() + limit;
    loop {
        if look()?.is_some() {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        thread::sleep(LOOK.min(limit));
    }
}

fn not_started(program: &OsString, what: &str, error: &io::Error) -> anyhow::Error {
    anyhow::anyhow!("{what} failed: cannot start {}: {error}", Path::new(program).display())
}

/// An exit status as a person would say it.
pub fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

/// The last `count` lines of a file that may be missing or not be text.
pub fn last_lines(path: &Path, count: usize) -> Vec<String> {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut lines: Vec<String> = text
        .lines()
        .rev()
        .map(|line| line.trim_end().to_owned())
        .filter(|line| !line.is_empty())
        .take(count)
        .collect();
    lines.reverse();
    lines
}

/// Bytes that an ordinary user can still write on the disk of `place`, or of the nearest folder
/// above it that exists.
pub fn room_bytes(place: &Path) -> Option<u64> {
    let exists = place.ancestors().find(|path| path.exists())?;
    let disk = statvfs(exists).ok()?;
    Some(disk.blocks_available().saturating_mul(disk.fragment_size()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    /// No program can be made here that survives SIGKILL, so the look says that one does.
    #[test]
    fn unkillable_program_is_not_waited_for() {
        let (begun, mut looks) = (Instant::now(), 0);
        let ended = ends_within(Duration::from_millis(50), || {
            looks += 1;
            // A wait without a bound ends as a failure, and not never.
            assert!(looks < 1000);
            Ok(None)
        });
        assert!(!ended.unwrap() && looks > 1 && begun.elapsed() >= Duration::from_millis(50));
        assert!(ends_within(Duration::ZERO, || Ok(Some(ExitStatus::from_raw(0)))).unwrap());
    }

    #[test]
    fn a_program_that_ignores_sigterm_is_killed() {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' TERM; echo ready; exec sleep 100"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 5];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        end_after(Duration::from_millis(100), &mut child).unwrap();
        assert_eq!(child.try_wait().unwrap().and_then(|status| status.signal()), Some(9));
    }
}

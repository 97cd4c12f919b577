//! The machine's kernel: writes to its files, and programs that run on it.
#![allow(clippy::disallowed_methods, reason = "writes to this machine's kernel, and its programs")]

use super::files::read_only;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

/// A daemon's client answers in seconds. The slowest step behind it is the kernel's wait for a
/// bitstream: 5 s for its DMA and 2.5 s for each of four polls (Linux, `zynq-fpga.c`).
const RUN_MAX: Duration = Duration::from_secs(60);

/// The time between two polls for a program's end.
const LOOK: Duration = Duration::from_millis(20);

/// A killed program ends at once, unless the kernel holds it in a call. Then it stays, and this
/// process stops waiting for it.
const KILLED_MAX: Duration = Duration::from_secs(1);

/// The most bytes of a program's output that are kept: an error is in its first lines.
const OUTPUT_MAX_BYTES: usize = 4096;

/// Reads of [`OUTPUT_MAX_BYTES`] between two polls: a full pipe has 64 KiB (pipe(7)).
const READS_MAX: usize = 16;

/// The end of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// It ended with exit status 0.
    pub success: bool,
    /// Its exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// The first 4096 bytes of its output and its errors, in one line.
    pub output: String,
}

/// The kernel behind a machine's files, which tests replace: a kernel's file answers a write with
/// an error, and changes other files. A kernel that only takes writes refuses the rest.
pub trait Kernel: fmt::Debug {
    /// Writes all `bytes` in one call into the file at `path`, which must exist.
    ///
    /// # Errors
    /// The kernel's own error.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Creates the folder at this path.
    ///
    /// # Errors
    /// The kernel's own error.
    fn make_dir(&self, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Removes the folder at this path, with the attributes that the kernel put in it.
    ///
    /// # Errors
    /// The kernel's own error.
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Runs the program at this path, and waits for its end.
    ///
    /// # Errors
    /// The program could not be started, or did not end in time.
    fn run(&self, _: &Path, _: &[&str]) -> io::Result<Ran> {
        Err(ErrorKind::Unsupported.into())
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Linux;

impl Kernel for Linux {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // It never creates the file: either the kernel has it, or not. It writes in one call,
        // because each write to an attribute is a command of its own.
        let mut file = fs::OpenOptions::new().write(true).open(path)?;
        if file.write(bytes)? == bytes.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn run(&self, path: &Path, arguments: &[&str]) -> io::Result<Ran> {
        run_for(RUN_MAX, path, arguments)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Copied;

impl Kernel for Copied {
    fn write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn make_dir(&self, _: &Path) -> io::Result<()> {
        Err(read_only())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Err(read_only())
    }

    fn run(&self, _: &Path, _: &[&str]) -> io::Result<Ran> {
        Err(io::Error::new(ErrorKind::Unsupported, "no program of a copied machine is run"))
    }
}

/// Runs a program until it ends, for at most `limit`. Its children may outlive it, and are not
/// waited for, even if they keep its pipes open. A program that does not end is killed, with its
/// process group.
fn run_for(limit: Duration, path: &Path, arguments: &[&str]) -> io::Result<Ran> {
    let mut command = Command::new(path);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn()?;
    let deadline = Instant::now() + limit;
    let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
    let mut said = pipes.map(|pipe| pipe.and_then(Said::of));
    let ended = until(&mut child, deadline, || said.iter_mut().flatten().for_each(Said::take));
    // The program's last output is in the pipes.
    said.iter_mut().flatten().for_each(Said::take);
    let Some(status) = ended? else {
        kill(&mut child)?;
        return Err(io::Error::new(
            ErrorKind::TimedOut,
            format!("no end after {} s", limit.as_secs()),
        ));
    };
    let output: String = said.iter().flatten().map(Said::text).collect::<Vec<_>>().join(" ");
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Ran { success: status.success(), status: status.code(), output })
}

/// Waits for a child's status; `None`: it has not ended at the deadline. `meanwhile` runs before
/// each poll.
fn until(
    child: &mut Child,
    deadline: Instant,
    mut meanwhile: impl FnMut(),
) -> io::Result<Option<ExitStatus>> {
    loop {
        meanwhile();
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// Kills a child that was not waited for yet, with its process group.
fn kill(child: &mut Child) -> io::Result<()> {
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(|_| ErrorKind::InvalidData)?);
    // A program may have left its own group.
    let _ = killpg(group, Signal::SIGKILL);
    child.kill()?;
    until(child, Instant::now() + KILLED_MAX, || ()).map(drop)
}

/// The output of a program on one of its pipes.
struct Said {
    pipe: fs::File,
    kept: Vec<u8>,
}

impl Said {
    /// `None` if the pipe cannot be read without waiting. That program's output is lost.
    fn of(pipe: OwnedFd) -> Option<Self> {
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).ok()?;
        Some(Self { pipe: pipe.into(), kept: Vec::new() })
    }

    /// Reads what is in the pipe, so that the program never waits for this one, and keeps the
    /// beginning.
    fn take(&mut self) {
        let mut bytes = [0; OUTPUT_MAX_BYTES];
        for _ in 0..READS_MAX {
            // The pipe is empty, closed or broken: there is no more output for now.
            let Ok(len @ 1..) = self.pipe.read(&mut bytes) else { return };
            let room = OUTPUT_MAX_BYTES - self.kept.len();
            self.kept.extend(bytes.iter().take(len.min(room)));
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SH: &str = "/bin/sh";
    /// Far below the children's 100 s, and far above the time to start a shell on a busy machine.
    const SOON: Duration = Duration::from_secs(30);

    fn sh(limit: Duration, script: &str) -> io::Result<Ran> {
        run_for(limit, Path::new(SH), &["-c", script])
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no child processes")]
    fn child_keeping_pipes_is_not_waited_for() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("id");
        let begun = Instant::now();
        let ran = sh(
            SOON,
            &format!(
                "sleep 100 & echo $! > {}; echo started; echo odd >&2; exit 3",
                file.display()
            ),
        )?;
        assert_eq!(ran, Ran { success: false, status: Some(3), output: "started odd".to_owned() });
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        let id = fs::read_to_string(file)?.trim().parse().map_err(io::Error::other)?;
        assert!(is_alive(id), "a program's own children are left alone");
        nix::sys::signal::kill(Pid::from_raw(id), Signal::SIGKILL)?;
        Ok(())
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no child processes")]
    fn endless_program_is_killed_with_group() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("id");
        let begun = Instant::now();
        let limit = Duration::from_secs(2);
        let error = sh(limit, &format!("sleep 100 & echo $! > {}; wait", file.display()))
            .err()
            .ok_or(ErrorKind::Other)?;
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::TimedOut, "no end after 2 s")
        );
        assert!((limit..SOON).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        let id = fs::read_to_string(file)?.trim().parse().map_err(io::Error::other)?;
        let deadline = Instant::now() + SOON;
        while is_alive(id) {
            assert!(Instant::now() < deadline, "process {id} was left");
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// More than a pipe holds: without a reader, the program would wait.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no child processes")]
    fn a_long_output_is_taken_and_its_beginning_kept() -> io::Result<()> {
        let ran = sh(
            SOON,
            "i=0; while [ $i -lt 4000 ]; do echo 0123456789012345678901234567890123456789; \
             i=$((i+1)); done; echo end >&2",
        )?;
        assert!(
            ran.success && ran.output.starts_with("0123") && ran.output.ends_with(" end"),
            "{}",
            ran.output
        );
        assert!(ran.output.len() <= OUTPUT_MAX_BYTES + 4, "{}", ran.output.len());
        Ok(())
    }

    /// Whether a process runs. After its end it is a zombie (Z) until its parent waits for it.
    fn is_alive(id: i32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
    }
}

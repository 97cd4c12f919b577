//! The side of a machine that answers: writes to the kernel's files, and programs.

use std::{
    fmt, fs,
    io::{self, ErrorKind, Read, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A client of a daemon answers in seconds. The slowest step behind it is the kernel's wait for a
/// bitstream, which is 5 s for its DMA and 2.5 s for each of four polls (Linux, `zynq-fpga.c`).
const RUN_MAX: Duration = Duration::from_secs(60);

/// How often a program's end is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// The most bytes of a program's output that are kept: an error is in its first lines.
const OUTPUT_MAX_BYTES: u64 = 4096;

/// A program's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// It ended with exit status 0.
    pub success: bool,
    /// Its exit status; `None` where a signal ended it.
    pub status: Option<i32>,
    /// The first 4096 bytes of its output and its errors, in one line.
    pub output: String,
}

/// The answers of a machine's files to writes. The seam for tests: a kernel's file answers a write
/// with an error, and changes other files.
pub trait Kernel: fmt::Debug {
    /// One write of all `bytes` into the file at `path`, which is there already.
    ///
    /// # Errors
    /// The kernel's own.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Makes the folder `path`.
    ///
    /// # Errors
    /// The kernel's own.
    fn make_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes the folder `path`, with the attributes that the kernel put in it.
    ///
    /// # Errors
    /// The kernel's own.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Runs the program at `path` to its end.
    ///
    /// # Errors
    /// It could not be started, or did not end in time.
    fn run(&self, path: &Path, arguments: &[&str]) -> io::Result<Ran>;
}

/// The kernel of the machine that this program runs on.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl Kernel for Linux {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // Never made: a file of the kernel is there, or this kernel does not have it. One call,
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
        let mut child = Command::new(path).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let readers = [child.stdout.take().map(reader), child.stderr.take().map(reader)];
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if began.elapsed() > RUN_MAX {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::new(ErrorKind::TimedOut, format!("no end after {} s", RUN_MAX.as_secs())));
            }
            thread::sleep(LOOK);
        };
        let output: String = readers.into_iter().flatten().filter_map(|reader| reader.join().ok()).collect::<Vec<_>>().join(" ");
        let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Ran { success: status.success(), status: status.code(), output })
    }
}

/// Reads a pipe to its end, so that the program never waits for this one, and keeps the beginning.
fn reader(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        // A pipe that breaks has said all that it will.
        let _ = pipe.by_ref().take(OUTPUT_MAX_BYTES).read_to_end(&mut kept);
        let _ = io::copy(&mut pipe, &mut io::sink());
        String::from_utf8_lossy(&kept).into_owned()
    })
}

//! The parts that were built before, each with a file that has the hash of all that it was built
//! from. The parts of several builds are in one folder, and a build may be interrupted.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A part, as it would be built now.
pub(crate) struct Kept {
    stamp: PathBuf,
    library: PathBuf,
    hash: String,
}

impl Kept {
    /// The library `name` in the folder `out`, from what has this hash.
    pub(crate) fn of(out: &Path, name: &str, hash: u64) -> Self {
        Self {
            stamp: out.join(format!("{name}.stamp")),
            library: out.join(format!("lib{name}.a")),
            hash: hash.to_string(),
        }
    }

    /// The warnings of the build that made it; `None` where it is not there, or not whole.
    pub(crate) fn warnings(&self) -> Option<Vec<String>> {
        let text = fs::read_to_string(&self.stamp).ok().filter(|_| self.library.exists())?;
        // The hash comes last, and only where all before it was written.
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        (lines.pop()? == self.hash).then_some(lines)
    }

    /// Says that it is being built: what is interrupted from here on is not whole, also for those
    /// who ask for what was there before.
    pub(crate) fn begin(&self) -> io::Result<()> {
        match fs::remove_file(&self.stamp) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Says that it is whole.
    pub(crate) fn end(&self, warnings: &[String]) -> io::Result<()> {
        let lines = warnings.iter().chain([&self.hash]).map(|line| format!("{line}\n"));
        fs::write(&self.stamp, lines.collect::<String>())
    }
}

//! A machine's files: what the kernel says of it, and what the kernel is told.

#[cfg(feature = "fakes")]
pub mod fake;
mod kernel;
mod memory;

pub use kernel::{Kernel, Linux, Ran};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A folder of `/proc`, `/sys` or `/dev` has fewer entries. With more, the rest is left out: a
/// machine does not make this program run for ever.
const ENTRIES_MAX: usize = 65_536;

/// The most bytes of a text file of the kernel that are read; the longest here is `/proc/PID/maps`.
const TEXT_MAX_BYTES: u64 = 4 << 20;

/// A machine's files. Tests put a folder of their own in the place of `/`, and a kernel of their
/// own behind it.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    kernel: Box<dyn Kernel>,
}

impl Machine {
    /// The machine that this program runs on.
    #[must_use]
    pub fn this() -> Self {
        Self { root: PathBuf::from("/"), kernel: Box::new(Linux) }
    }

    /// A machine below `root`, whose files `kernel` answers for. A path inside it is the machine's
    /// without its first slash: `sys/class/uio`.
    #[must_use]
    pub fn below(root: impl Into<PathBuf>, kernel: impl Kernel + 'static) -> Self {
        Self { root: root.into(), kernel: Box::new(kernel) }
    }

    /// Where this machine's `path` is on the machine that this program runs on.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The same as the machine itself calls it, from its root: for messages.
    #[must_use]
    pub fn name(&self, path: &Path) -> PathBuf {
        Path::new("/").join(path.strip_prefix(&self.root).unwrap_or(path))
    }

    /// A text file's contents without the white space at its end. `None`: it cannot be read, or it
    /// is not text.
    #[must_use]
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        self.read(path).ok()
    }

    /// The same, with the reason where there is none.
    ///
    /// # Errors
    /// As those of [`fs::File::open`] and [`io::Read::read_to_string`].
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let mut text = String::new();
        io::Read::read_to_string(&mut io::Read::take(fs::File::open(self.path(path))?, TEXT_MAX_BYTES), &mut text)?;
        text.truncate(text.trim_end().len());
        Ok(text)
    }

    /// Whether there is such a file or folder.
    #[must_use]
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// The names in a folder, sorted. None where there is no such folder, and names that are not
    /// text are left out.
    #[must_use]
    pub fn list(&self, path: impl AsRef<Path>) -> Vec<String> {
        self.entries(path).unwrap_or_default()
    }

    /// The same, with the reason where there is none.
    ///
    /// # Errors
    /// As those of [`fs::read_dir`].
    pub fn entries(&self, path: impl AsRef<Path>) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.path(path))?.take(ENTRIES_MAX).flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The text of a symbolic link, word for word.
    #[must_use]
    pub fn link(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        fs::read_link(self.path(path)).ok()
    }

    /// Writes one text into a file of the kernel, in one call.
    ///
    /// # Errors
    /// The kernel's own.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        self.kernel.write(&self.path(path), bytes)
    }

    /// Makes a folder in a file system of the kernel.
    ///
    /// # Errors
    /// The kernel's own.
    pub fn make_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.kernel.make_dir(&self.path(path))
    }

    /// Removes a folder in a file system of the kernel, with the attributes in it.
    ///
    /// # Errors
    /// The kernel's own.
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.kernel.remove_dir(&self.path(path))
    }

    /// Runs a program of the machine to its end, which comes soon or is made.
    ///
    /// # Errors
    /// It could not be started, or did not end in time (`ErrorKind::TimedOut`).
    pub fn run(&self, program: impl AsRef<Path>, arguments: &[&str]) -> io::Result<Ran> {
        self.kernel.run(&self.path(program), arguments)
    }

    /// The kernel's release: `6.12.0-xilinx`.
    #[must_use]
    pub fn kernel(&self) -> Option<String> {
        self.text("proc/sys/kernel/osrelease")
    }
}

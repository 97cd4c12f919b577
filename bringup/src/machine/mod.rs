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
        io::Read::read_to_string(&mut io::Read::take(self.open(path.as_ref())?, TEXT_MAX_BYTES), &mut text)?;
        text.truncate(text.trim_end().len());
        Ok(text)
    }

    /// A file's bytes, of which the first 4 MiB are read. `None`: it cannot be read.
    #[must_use]
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(self.open(path.as_ref()).ok()?, TEXT_MAX_BYTES), &mut bytes).ok()?;
        Some(bytes)
    }

    /// A file of the kernel is a regular one. A pipe that somebody put there would be waited for.
    fn open(&self, path: &Path) -> io::Result<fs::File> {
        let path = self.inside(path)?;
        if fs::metadata(&path)?.is_file() { fs::File::open(path) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Whether there is such a file or folder.
    #[must_use]
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.inside(path).is_ok_and(|path| path.exists())
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
        let entries = fs::read_dir(self.inside(path)?)?.take(ENTRIES_MAX).flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The folders in a folder, sorted, without links to folders.
    #[must_use]
    pub fn folders(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Some(entries) = self.inside(path).ok().and_then(|path| fs::read_dir(path).ok()) else { return Vec::new() };
        let folders = entries.take(ENTRIES_MAX).flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut names: Vec<_> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Mode, owner and group of a file.
    ///
    /// # Errors
    /// As those of [`fs::metadata`].
    pub fn metadata(&self, path: impl AsRef<Path>) -> io::Result<fs::Metadata> {
        fs::metadata(self.inside(path)?)
    }

    /// Where `path` is, with its links followed. A link of a copy that leads out of it would read
    /// the files of another machine: this one.
    fn inside(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let path = self.path(path);
        if self.root == Path::new("/") {
            return Ok(path);
        }
        let real = fs::canonicalize(path)?;
        if real.starts_with(fs::canonicalize(&self.root)?) { Ok(real) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// The text of a symbolic link, word for word.
    #[must_use]
    pub fn link(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let path = path.as_ref();
        let folder = self.inside(path.parent()?).ok()?;
        fs::read_link(folder.join(path.file_name()?)).ok()
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

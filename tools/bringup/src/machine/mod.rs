//! A machine's files: what the kernel shows in them, and what is written to the kernel.

#[cfg(any(test, feature = "fakes"))]
pub mod fake;
mod files;
mod kernel;

use files::Whose;
pub(crate) use files::{Files, READ, create, remove, rename, reopen};
use kernel::{Copied, Linux};
pub use kernel::{Kernel, Ran};
use nix::unistd::{SysconfVar, sysconf};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The files of a machine: of this machine, or of a copy of another one. Tests use a folder of
/// their own instead of `/`, and a kernel of their own.
#[derive(Debug)]
pub struct Machine {
    files: Files,
    kernel: Box<dyn Kernel>,
}

impl Machine {
    /// The machine that this program runs on.
    #[must_use]
    pub fn this() -> Self {
        Self { files: Files::of(PathBuf::from("/"), Whose::This), kernel: Box::new(Linux) }
    }

    /// A copy of a machine, below the folder `root`. It is only read: nothing is written there, no
    /// device is opened, no program is run, and no link leads out.
    #[must_use]
    pub fn copy(root: impl Into<PathBuf>) -> Self {
        Self { files: Files::of(root.into(), Whose::Copy), kernel: Box::new(Copied) }
    }

    /// A test's machine below `root`, with `kernel` behind its files. A path in it is the machine's
    /// path without the first slash: `sys/class/uio`.
    #[cfg(any(test, feature = "fakes"))]
    #[must_use]
    pub fn below(root: impl Into<PathBuf>, kernel: impl Kernel + 'static) -> Self {
        Self { files: Files::of(root.into(), Whose::Fake), kernel: Box::new(kernel) }
    }

    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// The path of this machine's `path` on the machine that this program runs on: for messages.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.files.path(path)
    }

    /// The path from the root of the machine itself: for messages.
    pub(crate) fn name(&self, path: &Path) -> PathBuf {
        self.files.name(path)
    }

    /// The contents of a text file without the white space at the end. `None`: it cannot be read,
    /// or is not text.
    #[must_use]
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        self.read(path).ok()
    }

    /// The contents of a text file, or the reason why it cannot be read.
    ///
    /// # Errors
    /// As those of [`fs::File::open`] and [`io::Read::read_to_string`].
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let bytes = self.files.read(path)?;
        let mut text = String::from_utf8(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        text.truncate(text.trim_end().len());
        Ok(text)
    }

    /// A file's bytes: the first 4 MiB, and in `/sys` the first 64 KiB. `None`: it cannot be read.
    #[must_use]
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        self.files.read(path).ok()
    }

    /// Whether a copy's budget is used up: its files are too large or too many, and the last ones
    /// were not read.
    pub(crate) fn is_spent(&self) -> bool {
        self.files.are_spent()
    }

    /// Whether the file or folder exists.
    #[must_use]
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.metadata(path).is_ok()
    }

    /// The names in a folder, sorted; none if there is no such folder. Names that are not text are
    /// left out.
    #[must_use]
    pub fn list(&self, path: impl AsRef<Path>) -> Vec<String> {
        self.entries(path).unwrap_or_default()
    }

    /// The names in a folder, or the reason why they cannot be read.
    ///
    /// # Errors
    /// As those of [`fs::read_dir`].
    pub fn entries(&self, path: impl AsRef<Path>) -> io::Result<Vec<String>> {
        Ok(self.files.entries(path)?.into_iter().map(|(name, _)| name).collect())
    }

    /// The folders in a folder, sorted, without links to folders.
    #[must_use]
    pub fn folders(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = self.files.entries(path).unwrap_or_default();
        entries.into_iter().filter(|(_, is_folder)| *is_folder).map(|(name, _)| name).collect()
    }

    /// Mode, owner and group of a file.
    ///
    /// # Errors
    /// As those of [`fs::metadata`].
    pub fn metadata(&self, path: impl AsRef<Path>) -> io::Result<fs::Metadata> {
        self.files.metadata(path)
    }

    pub(crate) fn real(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        self.files.real(path)
    }

    /// The last name in the text of a symbolic link, such as a device's driver or group.
    #[must_use]
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        Some(self.link(path)?.file_name()?.to_string_lossy().into_owned())
    }

    /// The blocks of u-dma-buf, each by its folder. Older versions of the module use another class.
    pub(crate) fn blocks(&self) -> Vec<String> {
        ["sys/class/u-dma-buf", "sys/class/udmabuf"]
            .into_iter()
            .flat_map(|class| self.list(class).into_iter().map(move |id| format!("{class}/{id}")))
            .collect()
    }

    /// The text of a symbolic link, word for word.
    #[must_use]
    pub fn link(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        self.files.link(path.as_ref())
    }

    /// Writes one text into a kernel file, in one call.
    ///
    /// # Errors
    /// The kernel's own; [`io::ErrorKind::ReadOnlyFilesystem`] for a copy, as with the next two.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        self.kernel.write(&self.path(path), bytes)
    }

    /// Creates a folder in a file system of the kernel.
    ///
    /// # Errors
    /// The kernel's own error.
    pub fn make_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.kernel.make_dir(&self.path(path))
    }

    /// Removes a folder in a file system of the kernel, with the attributes in it.
    ///
    /// # Errors
    /// The kernel's own error.
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.kernel.remove_dir(&self.path(path))
    }

    /// Runs a program of the machine until it ends, or kills it after a time limit.
    ///
    /// # Errors
    /// The program could not be started, or did not end in time (`ErrorKind::TimedOut`). A copy's
    /// program is not run (`ErrorKind::Unsupported`).
    pub fn run(&self, program: impl AsRef<Path>, arguments: &[&str]) -> io::Result<Ran> {
        self.kernel.run(&self.path(program), arguments)
    }

    /// The kernel's release: `6.12.0-xilinx`.
    #[must_use]
    pub fn kernel(&self) -> Option<String> {
        self.text("proc/sys/kernel/osrelease")
    }

    /// One past the last byte of memory, from `/proc/zoneinfo`, which needs no privilege
    /// (`/proc/iomem` does).
    #[must_use]
    pub fn memory_end(&self) -> Option<u64> {
        let text = self.text("proc/zoneinfo")?;
        let (mut spanned, mut end_page) = (0, 0_u64);
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let number =
                |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
            match words.next() {
                Some("spanned") => spanned = number(words.next()),
                Some("start_pfn:") if spanned > 0 => {
                    end_page = end_page.max(number(words.next()).saturating_add(spanned))
                }
                _ => {}
            }
        }
        end_page.checked_mul(page_bytes()?).filter(|&end| end > 0)
    }

    /// The kernel's CMA: its size and its free part, in bytes.
    #[must_use]
    pub fn cma(&self) -> Option<(u64, u64)> {
        Some((self.meminfo("CmaTotal:")?, self.meminfo("CmaFree:")?))
            .filter(|&(total, _)| total > 0)
    }

    /// The free memory for programs and the kernel, in bytes, as the kernel estimates it.
    #[must_use]
    pub fn available(&self) -> Option<u64> {
        self.meminfo("MemAvailable:")
    }

    fn meminfo(&self, name: &str) -> Option<u64> {
        let text = self.text("proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    }
}

/// The size of this kernel's pages.
pub(crate) fn page_bytes() -> Option<u64> {
    sysconf(SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|bytes| u64::try_from(bytes).ok())
        .filter(|bytes| bytes.is_power_of_two())
}

//! The only access to a machine's files. In a folder that stands for another machine, no link leads
//! out, and only folders and regular files are opened.
//!
//! A path is resolved once, to an `O_PATH` descriptor, which opens nothing. That descriptor gives
//! the file's kind, and that same descriptor is then opened: a writer of the copy that exchanges
//! files meanwhile has no moment to do it in.
//!
//! # References
//! openat2(2), `RESOLVE_IN_ROOT`; path_resolution(7); open(2), `O_PATH`; proc_pid_fd(5).
#![allow(clippy::disallowed_methods, reason = "this is the way that the others are kept to")]

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2, readlinkat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The most entries of a folder that are read; those of `/proc`, `/sys` and `/dev` have fewer. The
/// rest is left out, so that a machine cannot make this program run for ever.
const ENTRIES_MAX: usize = 65_536;

/// The most bytes that are read of a kernel file; the longest here is `/proc/PID/maps`.
const FILE_MAX_BYTES: u64 = 4 << 20;

/// The same for `/sys`: an attribute is a page, and no property of a device tree is longer.
const ATTRIBUTE_MAX_BYTES: u64 = 64 << 10;

/// The most bytes that are read of a copy, in all. A busy machine's copy needs a tenth of it.
const COPY_MAX_BYTES: u64 = 1 << 30;

/// The most lookups in a copy: resolved paths, and listed names. The doctor makes a few for each
/// node of a tree, device and process; for a busy machine that is a tenth of it.
const COPY_MAX_LOOKS: u64 = 1 << 20;

/// The most links on the way of one path, as in the kernel (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// The flags of an open for reading. They allow a long file even where a length has 32 bits.
pub(crate) const READ: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_LARGEFILE);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The machine that this program runs on.
    This,
    /// A copy of another machine, which is only read.
    Copy,
    /// A test's machine, which may be written.
    #[cfg(any(test, feature = "fakes"))]
    Fake,
}

#[derive(Clone, Debug)]
pub(crate) struct Files(Arc<Root>);

#[derive(Debug)]
struct Root {
    path: PathBuf,
    whose: Whose,
    /// The folder itself, unless it is this machine's root.
    folder: Result<OwnedFd, Errno>,
    /// The bytes that may still be read; below, the lookups that are left.
    left: AtomicU64,
    looks: AtomicU64,
}

impl PartialEq for Files {
    fn eq(&self, other: &Self) -> bool {
        (self.0.whose, &self.0.path) == (other.0.whose, &other.0.path)
    }
}

impl Eq for Files {}

impl Files {
    pub(super) fn of(path: PathBuf, whose: Whose) -> Self {
        let folder =
            open(&path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty());
        let (left, looks) = if whose == Whose::Copy {
            (COPY_MAX_BYTES, COPY_MAX_LOOKS)
        } else {
            (u64::MAX, u64::MAX)
        };
        Self(Arc::new(Root { path, whose, folder, left: left.into(), looks: looks.into() }))
    }

    /// The path of a file on the machine that this program runs on: for messages, and for files
    /// that [`device`](Self::device) allows.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.path.join(below(path.as_ref()))
    }

    /// The path from the root of the machine itself.
    pub(super) fn name(&self, path: &Path) -> PathBuf {
        Path::new("/").join(path.strip_prefix(&self.0.path).unwrap_or(path))
    }

    pub(crate) fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.regular(path.as_ref(), READ)
    }

    /// The bytes of a regular file. If it is longer than any kernel file, only the first ones.
    pub(super) fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let (path, left) = (below(path.as_ref()), self.0.left.load(Relaxed));
        if left == 0 {
            return Err(too_large());
        }
        let is_attribute = path.starts_with("sys") && !path.starts_with("sys/kernel/debug");
        let most = if is_attribute { ATTRIBUTE_MAX_BYTES } else { FILE_MAX_BYTES };
        let mut bytes = Vec::new();
        self.open(path)?.take(most.min(left)).read_to_end(&mut bytes)?;
        spend(&self.0.left, bytes.len());
        Ok(bytes)
    }

    /// Whether a copy's budget is used up. Files that were asked for after that were not read.
    pub(super) fn are_spent(&self) -> bool {
        self.0.left.load(Relaxed) == 0 || self.0.looks.load(Relaxed) == 0
    }

    /// The bytes and the lookups that a copy has cost.
    #[cfg(test)]
    pub(crate) fn cost(&self) -> [u64; 2] {
        [COPY_MAX_BYTES - self.0.left.load(Relaxed), COPY_MAX_LOOKS - self.0.looks.load(Relaxed)]
    }

    /// Mode, owner, group and kind of a file, without opening it.
    pub(super) fn metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        File::from(self.at(path.as_ref())?).metadata()
    }

    /// The names in a folder, sorted, each with whether it is a folder and not a link. Names that
    /// are not text are left out.
    pub(super) fn entries(&self, path: impl AsRef<Path>) -> io::Result<Vec<(String, bool)>> {
        let at = self.at(path.as_ref())?;
        let mut found = Vec::new();
        // The standard library uses readdir64. If an inode has more than 32 bits, nix's function
        // ends early on a 32-bit processor.
        for entry in fs::read_dir(itself(&at))?.take(ENTRIES_MAX) {
            let entry = entry?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            found.extend(entry.file_name().into_string().ok().map(|name| (name, is_folder)));
        }
        spend(&self.0.looks, found.len());
        found.sort_unstable();
        Ok(found)
    }

    /// The text of a symbolic link, word for word.
    pub(super) fn link(&self, path: &Path) -> Option<PathBuf> {
        readlinkat(self.at(path.parent()?).ok()?, path.file_name()?).ok().map(PathBuf::from)
    }

    /// The path of a file in the machine after all links: `/sys/firmware/devicetree/base`.
    pub(super) fn real(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        if self.0.whose == Whose::This {
            return fs::canonicalize(self.path(path));
        }
        self.look()?;
        Ok(walk(self.folder()?, below(path.as_ref()))?.path())
    }

    /// Opens a file of registers, with `writable` also for writing: a device's node on this
    /// machine, otherwise a regular file that stands for one.
    pub(crate) fn registers(&self, path: &str, writable: bool) -> io::Result<File> {
        // O_SYNC: the kernel then maps without a cache (Linux, drivers/char/mem.c).
        let flags = OFlag::O_SYNC
            | OFlag::O_LARGEFILE
            | if writable { OFlag::O_RDWR } else { OFlag::O_RDONLY };
        match self.0.whose {
            Whose::This => {
                Ok(open(&self.path(path), flags | OFlag::O_CLOEXEC, Mode::empty())?.into())
            }
            Whose::Copy if writable => Err(read_only()),
            _ => self.regular(Path::new(path), READ | flags),
        }
    }

    /// A device's node, for a library that opens it itself. Only for this machine.
    pub(crate) fn device(&self, path: &str) -> io::Result<PathBuf> {
        match self.0.whose {
            Whose::This => Ok(self.path(path)),
            _ => Err(io::Error::new(
                ErrorKind::Unsupported,
                "no device of a copied machine is opened",
            )),
        }
    }

    /// Opens a folder in which files are created.
    pub(crate) fn folder_to_write(&self, path: impl AsRef<Path>) -> io::Result<File> {
        match self.0.whose {
            Whose::Copy => Err(read_only()),
            _ => Ok(reopen(self.at(path.as_ref())?, READ | OFlag::O_DIRECTORY)?.into()),
        }
    }

    fn folder(&self) -> io::Result<BorrowedFd<'_>> {
        Ok(self.0.folder.as_ref().map_err(|errno| *errno)?.as_fd())
    }

    fn regular(&self, path: &Path, flags: OFlag) -> io::Result<File> {
        regular(self.at(path)?, flags)
    }

    /// Finds the file at `path` without opening it: the descriptor tells its kind.
    fn at(&self, path: &Path) -> io::Result<OwnedFd> {
        match self.0.whose {
            Whose::This => {
                Ok(open(&self.path(path), OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?)
            }
            _ => {
                self.look()?;
                inside(self.folder()?, below(path))
            }
        }
    }

    fn look(&self) -> io::Result<()> {
        spend(&self.0.looks, 1);
        if self.0.looks.load(Relaxed) == 0 { Err(too_large()) } else { Ok(()) }
    }
}

/// Opens a file that was found, if it is a regular file. Opening alone can have an effect, on a
/// watchdog or on the writer of a pipe.
fn regular(found: OwnedFd, flags: OFlag) -> io::Result<File> {
    let found = File::from(found);
    if !found.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(reopen(&found, flags)?.into())
}

/// The path of exactly the file that a descriptor refers to.
fn itself(found: impl AsFd) -> String {
    format!("/proc/self/fd/{}", found.as_fd().as_raw_fd())
}

/// Opens exactly the file that an `O_PATH` descriptor refers to.
pub(crate) fn reopen(found: impl AsFd, flags: OFlag) -> io::Result<OwnedFd> {
    open(itself(&found).as_str(), flags | OFlag::O_CLOEXEC, Mode::empty()).map_err(|errno| {
        // A file of an ended process is missing, too, so look for `/proc` itself.
        let no_proc = errno == Errno::ENOENT && !Path::new("/proc/self/fd").exists();
        if no_proc {
            io::Error::new(
                ErrorKind::Unsupported,
                "/proc is not mounted, by which files are opened",
            )
        } else {
            errno.into()
        }
    })
}

/// Subtracts `count` from a copy's budget. This machine's files have no budget.
fn spend(left: &AtomicU64, count: usize) {
    let _ = left.fetch_update(Relaxed, Relaxed, |left| {
        (left < u64::MAX).then(|| left.saturating_sub(count as u64))
    });
}

fn too_large() -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, "more of the copy was read than a machine has")
}

pub(super) fn read_only() -> io::Error {
    io::Error::new(ErrorKind::ReadOnlyFilesystem, "nothing is written to a copied machine")
}

/// Creates a file in a folder. A link of that name is not followed.
pub(crate) fn create(folder: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_NOFOLLOW;
    let made = openat(
        folder,
        name,
        flags | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC,
        Mode::from_bits_truncate(0o666),
    )?;
    let file = File::from(made);
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::AlreadyExists.into()) }
}

pub(crate) fn rename(folder: impl AsFd, from: &str, to: &str) -> io::Result<()> {
    Ok(renameat(folder.as_fd(), from, folder.as_fd(), to)?)
}

pub(crate) fn remove(folder: impl AsFd, name: &str) -> io::Result<()> {
    Ok(unlinkat(folder, name, UnlinkatFlags::NoRemoveDir)?)
}

/// A path of a machine, relative to its folder.
fn below(path: &Path) -> &Path {
    let path = path.strip_prefix("/").unwrap_or(path);
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Finds the file at `path` as if `root` were the root directory: an `O_PATH` descriptor.
fn inside(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC);
    match openat2(
        root,
        path,
        how.resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS),
    ) {
        // Linux has had the call since 5.6; an emulator or a container may lack it. EAGAIN means
        // that the kernel could not decide, because something was renamed meanwhile.
        Err(Errno::ENOSYS | Errno::EPERM | Errno::EAGAIN) => walk(root, path)?.into_last(),
        found => Ok(found?),
    }
}

/// Finds the file of this name in a folder, without following a link.
fn open_in(folder: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(folder, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?)
}

/// A file that [`walk`] found: the folders on its way with their names, and the file as the last.
struct Found<'a> {
    root: BorrowedFd<'a>,
    way: Vec<(OsString, OwnedFd)>,
}

/// Does the same as the kernel for `RESOLVE_IN_ROOT`, step by step. Each step takes one name in a
/// folder that is already open, and follows no link; a link's text is added to the names that are
/// still to be taken.
fn walk<'a>(root: BorrowedFd<'a>, path: &Path) -> io::Result<Found<'a>> {
    let mut found = Found { root, way: Vec::new() };
    let (mut names, mut links) = (Vec::new(), 0);
    push(&mut names, path);
    // A path has at most 4096 bytes, and so has each of LINKS_MAX texts.
    while let Some(name) = names.pop() {
        if name == ".." {
            found.way.pop();
            continue;
        }
        let file = File::from(open_in(found.last(), &name)?);
        if !file.metadata()?.is_symlink() {
            found.way.push((name, file.into()));
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(Errno::ELOOP.into());
        }
        let text = PathBuf::from(readlinkat(&file, "")?);
        if text.is_absolute() {
            found.way.clear();
        }
        push(&mut names, &text);
    }
    Ok(found)
}

/// Adds the names of a path, the first one last.
fn push(names: &mut Vec<OsString>, path: &Path) {
    names.extend(path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    }));
}

impl Found<'_> {
    fn last(&self) -> BorrowedFd<'_> {
        self.way.last().map_or(self.root, |(_, file)| file.as_fd())
    }

    fn path(&self) -> PathBuf {
        Path::new("/").join(self.way.iter().map(|(name, _)| name).collect::<PathBuf>())
    }

    fn into_last(mut self) -> io::Result<OwnedFd> {
        self.way.pop().map_or_else(|| self.root.try_clone_to_owned(), |(_, file)| Ok(file))
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
    use nix::unistd::mkfifo;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
    use std::sync::atomic::AtomicBool;
    use std::thread;

    /// The text of the file at a path, found once by the kernel and once step by step.
    fn both(root: &Path, path: &str) -> [Result<String, Errno>; 2] {
        let root = open(root, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).unwrap();
        let text = |found: io::Result<OwnedFd>| {
            let mut text = String::new();
            let read = found.and_then(|file| regular(file, READ)?.read_to_string(&mut text));
            read.map(|_| text).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
        };
        let path = below(Path::new(path));
        let walked = walk(root.as_fd(), path).and_then(Found::into_last);
        [text(inside(root.as_fd(), path)), text(walked)]
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no openat")]
    fn paths_and_links_stay_inside_the_root() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("copy");
        fs::create_dir_all(root.join("sys/class")).unwrap();
        fs::write(place.path().join("secret"), "out").unwrap();
        fs::write(root.join("sys/file"), "in").unwrap();
        let outside = place.path().join("secret");
        let secret = outside.to_str().unwrap();
        for (link, to) in [
            ("relative", "../sys/file"),
            ("absolute", "/sys/file"),
            ("up", "../../../../../sys/file"),
            ("out", "../../secret"),
            ("host", secret),
            ("itself", "itself"),
            ("folder", "/sys"),
            ("gone", "/nowhere"),
            ("class/two", "../../sys/relative"),
        ] {
            symlink(to, root.join("sys").join(link)).unwrap();
        }
        for path in [
            "sys/file",
            "/sys/file",
            "sys/relative",
            "sys/absolute",
            "sys/up",
            "sys/folder/class/../file",
            "../sys/./file",
            "sys/class/two",
        ] {
            assert_eq!(both(&root, path), [Ok("in".to_owned()), Ok("in".to_owned())], "{path}");
        }
        for path in ["sys/out", "sys/host", "../secret", "sys/gone", "sys/file2", secret] {
            assert_eq!(both(&root, path), [Err(Errno::ENOENT), Err(Errno::ENOENT)], "{path}");
        }
        assert_eq!(both(&root, "sys/itself"), [Err(Errno::ELOOP), Err(Errno::ELOOP)]);
        assert_eq!(both(&root, "sys/file/more"), [Err(Errno::ENOTDIR), Err(Errno::ENOTDIR)]);
        let files = Files::of(root, Whose::Copy);
        assert_eq!(files.real("sys/folder/class/two").unwrap(), Path::new("/sys/file"));
        assert_eq!(files.real("").unwrap(), Path::new("/"));
        assert_eq!(files.link(Path::new("sys/host")).as_deref(), Some(outside.as_path()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no openat")]
    fn only_files_open_and_copy_is_unwritten() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("dev/folder")).unwrap();
        mkfifo(&place.path().join("dev/pipe"), Mode::S_IRWXU).unwrap();
        symlink("/dev/null", place.path().join("dev/null")).unwrap();
        symlink("folder", place.path().join("dev/link")).unwrap();
        fs::write(place.path().join("dev/mem"), "word").unwrap();
        let files = Files::of(place.path().to_owned(), Whose::Copy);
        for path in ["dev/pipe", "dev", "dev/folder"] {
            assert_eq!(
                files.open(path).unwrap_err().to_string(),
                "it is no regular file",
                "{path}"
            );
        }
        assert_eq!(
            files.open("dev/null").unwrap_err().raw_os_error(),
            Some(Errno::ELOOP as i32),
            "it leads to itself in there"
        );
        assert!(files.registers("dev/mem", false).is_ok());
        assert_eq!(
            files.registers("dev/mem", true).unwrap_err().kind(),
            ErrorKind::ReadOnlyFilesystem
        );
        assert_eq!(files.folder_to_write("dev").unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
        assert_eq!(files.device("dev/mem").unwrap_err().kind(), ErrorKind::Unsupported);
        let names = files.entries("dev").unwrap();
        let expected =
            [("folder", true), ("link", false), ("mem", false), ("null", false), ("pipe", false)];
        assert_eq!(names, expected.map(|(name, is_folder)| (name.to_owned(), is_folder)));
        let (copy, asked) = (Machine::copy(place.path()), place.path().join("asked"));
        fs::write(
            place.path().join("dev/program"),
            format!("#!/bin/sh\n: > {}\n", asked.display()),
        )
        .unwrap();
        fs::set_permissions(place.path().join("dev/program"), fs::Permissions::from_mode(0o755))
            .unwrap();
        let refused = [
            copy.write("dev/mem", b"more"),
            copy.make_dir("dev/new"),
            copy.remove_dir("dev/folder"),
        ];
        assert!(
            refused
                .into_iter()
                .all(|done| done.unwrap_err().to_string()
                    == "nothing is written to a copied machine")
        );
        assert_eq!(
            copy.run("dev/program", &[]).unwrap_err().to_string(),
            "no program of a copied machine is run"
        );
        assert_eq!(
            (fs::read(place.path().join("dev/mem")).unwrap(), copy.has("dev/new"), asked.exists()),
            (b"word".to_vec(), false, false)
        );
        assert!(copy.has("dev/folder"));
        let fake = Files::of(place.path().to_owned(), Whose::Fake);
        assert!(
            fake.registers("dev/mem", true).is_ok()
                && fake.registers("dev/pipe", true).is_err()
                && fake.device("dev/mem").is_err()
        );
        let folder = fake.folder_to_write("dev").unwrap();
        assert_eq!(create(&folder, "link").unwrap_err().raw_os_error(), Some(Errno::ELOOP as i32));
        create(&folder, "part")
            .and_then(|_| rename(&folder, "part", "whole"))
            .and_then(|()| remove(&folder, "whole"))
            .unwrap();
        assert!(create(&folder, "pipe").is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no openat")]
    fn oversized_copy_is_read_with_limits() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("sys")).unwrap();
        for file in ["maps", "sys/name"] {
            File::create(place.path().join(file)).unwrap().set_len(1 << 40).unwrap();
        }
        let files = Files::of(place.path().to_owned(), Whose::Copy);
        assert_eq!(files.read("sys/name").unwrap().len() as u64, ATTRIBUTE_MAX_BYTES);
        let read = (0..=COPY_MAX_BYTES / FILE_MAX_BYTES)
            .map_while(|_| files.read("maps").ok())
            .map(|bytes| bytes.len() as u64)
            .sum::<u64>();
        assert_eq!(read, COPY_MAX_BYTES - ATTRIBUTE_MAX_BYTES);
        assert_eq!(files.read("sys/name").unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(files.are_spent());
        // And one whose files are empty, and asked for again and again.
        fs::write(place.path().join("empty"), "").unwrap();
        let files = Files::of(place.path().to_owned(), Whose::Copy);
        assert_eq!(files.0.looks.swap(100, Relaxed), COPY_MAX_LOOKS);
        let asked = (0..1000).take_while(|_| files.metadata("empty").is_ok()).count();
        assert_eq!((asked, files.are_spent()), (99, true));
        assert_eq!(files.entries("sys").unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    /// Opens and lists, while another process exchanges a file and a pipe, and a folder and a pipe.
    /// inotify(7) tells whether the pipe was opened, as a descriptor with `O_PATH` opens nothing.
    fn exchanged(
        root: &Path,
        open: impl Fn(&str) -> io::Result<OwnedFd>,
        list: impl Fn(&str) -> io::Result<OwnedFd>,
    ) {
        // On a busy machine, the other thread may not get its turn for hundreds of rounds.
        const ROUNDS: [usize; 2] = [4_000, 400_000];
        fs::create_dir(root.join("one")).unwrap();
        fs::write(root.join("file"), "text").unwrap();
        fs::write(root.join("one/inside"), "").unwrap();
        mkfifo(&root.join("pipe"), Mode::S_IRWXU).unwrap();
        let opens = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).unwrap();
        opens.add_watch(&root.join("pipe"), AddWatchFlags::IN_OPEN).unwrap();
        let (done, mut seen) = (AtomicBool::new(false), [0; 4]);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    for what in ["file", "pipe"] {
                        fs::hard_link(root.join(what), root.join("next")).unwrap();
                        fs::rename(root.join("next"), root.join("name")).unwrap();
                    }
                    for what in ["one", "pipe"] {
                        symlink(what, root.join("next")).unwrap();
                        fs::rename(root.join("next"), root.join("folder")).unwrap();
                    }
                }
            });
            let [least, most] = ROUNDS;
            for round in 0..most {
                seen[usize::from(open("name").is_ok())] += 1;
                seen[2 + usize::from(list("folder").is_ok())] += 1;
                if round >= least && !seen.contains(&0) {
                    break;
                }
                thread::yield_now();
            }
            done.store(true, Relaxed);
        });
        assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
        assert_eq!(
            opens.read_events().map_or(0, |events| events.len()),
            0,
            "opens of the pipe, in {seen:?}"
        );
        fs::File::options().read(true).custom_flags(READ.bits()).open(root.join("pipe")).unwrap();
        assert_eq!(opens.read_events().unwrap().len(), 1, "one that is seen");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no openat")]
    fn pipe_replacing_a_file_is_not_opened() {
        let [by_kernel, by_steps] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let files = Files::of(by_kernel.path().to_owned(), Whose::Copy);
        let list =
            |path: &str| files.entries(path).and_then(|_| files.open("file").map(OwnedFd::from));
        exchanged(by_kernel.path(), |path| files.open(path).map(OwnedFd::from), list);
        let root = open(by_steps.path(), OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).unwrap();
        let found = |path: &str| walk(root.as_fd(), Path::new(path)).and_then(Found::into_last);
        let list =
            |path: &str| found(path).and_then(|folder| reopen(folder, READ | OFlag::O_DIRECTORY));
        exchanged(
            by_steps.path(),
            |path| found(path).and_then(|file| regular(file, READ)).map(OwnedFd::from),
            list,
        );
    }
}

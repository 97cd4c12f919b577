//! The user's cache: kernels, sources, packages. Everything in it is whole: it is made beside its
//! place and renamed into it.
//!
//! `$CONTIGO_CACHE`, else `$XDG_CACHE_HOME/contigo`, else `~/.cache/contigo`. All of it may be
//! deleted at any time when nothing runs.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::terminal::Step;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, thread};
use tempfile::TempDir;

/// Between two tries for a lock that another run holds.
const LOCK_STEP: Duration = Duration::from_millis(200);
/// Tries for a lock: an hour, which is longer than the longest kernel build.
const LOCK_TRIES: u32 = 5 * 3600;

/// An unfinished folder of this age belongs to a run that was killed: no step may take longer than
/// an hour.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// The cache's folder.
#[derive(Clone, Debug)]
pub struct CacheDir {
    root: PathBuf,
}

/// Held while one run makes something that another may want as well. The kernel takes it back when
/// its holder ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: Flock<File>,
}

/// A folder under construction. Dropping it deletes it.
#[derive(Debug)]
pub struct Staging {
    folder: TempDir,
    place: PathBuf,
}

impl CacheDir {
    /// The cache of this user.
    pub fn open() -> Result<Self> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = set("CONTIGO_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("contigo")))
            .or_else(|| set("HOME").map(|home| home.join(".cache/contigo")))
            .ok_or_else(|| {
                anyhow::anyhow!("no place for the cache: set CONTIGO_CACHE, XDG_CACHE_HOME or HOME")
            })?;
        Self::at(&root)
    }

    /// A cache in this folder, which is made where it is missing.
    pub fn at(root: &Path) -> Result<Self> {
        fs::create_dir_all(root)
            .map_err(|error| Failure::of_io("making the cache", root, &error))?;
        let root = root
            .canonicalize()
            .map_err(|error| Failure::of_io("looking for the cache", root, &error))?;
        Ok(Self { root })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// A path in it, which need not exist; its parent does afterwards.
    pub fn place(&self, name: impl AsRef<Path>) -> Result<PathBuf> {
        let place = self.root.join(name);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)
                .map_err(|error| Failure::of_io("making a folder in the cache", parent, &error))?;
        }
        Ok(place)
    }

    /// A folder in it.
    pub fn folder(&self, name: impl AsRef<Path>) -> Result<PathBuf> {
        let folder = self.root.join(name);
        fs::create_dir_all(&folder)
            .map_err(|error| Failure::of_io("making a folder in the cache", &folder, &error))?;
        Ok(folder)
    }

    /// Where the log of this step goes: the newest one only.
    pub fn log(&self, step: &str) -> Result<PathBuf> {
        self.place(format!("logs/{step}.log"))
    }

    /// Waits until no other run makes `name`, with a bound, and shows that it waits.
    pub fn lock(&self, name: &str) -> Result<Lock> {
        let path = self.place(format!("locks/{}", name.replace('/', "-")))?;
        let mut file = File::create(&path)
            .map_err(|error| Failure::of_io("locking the cache", &path, &error))?;
        let mut waiting = None;
        for _ in 0..LOCK_TRIES {
            file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(locked) => return Ok(Lock { _file: locked }),
                Err((file, Errno::EWOULDBLOCK)) => file,
                Err((_, errno)) => {
                    return Err(Failure::of_io("locking the cache", &path, &errno.into()));
                }
            };
            waiting.get_or_insert_with(|| {
                Step::begin(format!("waiting for another run that makes {name}"), None)
            });
            interrupt::check()?;
            thread::sleep(LOCK_STEP);
        }
        Err(anyhow::anyhow!(
            "another run has been making {name} for an hour; end it, or delete {} if it hangs",
            path.display()
        ))
    }

    /// Begins to make the folder `name`. It appears there with [`Staging::commit`], whole, or not
    /// at all.
    pub fn stage(&self, name: &str) -> Result<Staging> {
        let place = self.place(name)?;
        // On the same file system as its place, so that it can be renamed.
        Ok(Staging { folder: self.scratch()?, place })
    }

    /// A folder for one run, deleted when it is dropped.
    pub fn scratch(&self) -> Result<TempDir> {
        let beside = self.folder("unfinished")?;
        sweep(&beside);
        TempDir::new_in(&beside)
            .map_err(|error| Failure::of_io("making a folder in the cache", &beside, &error))
    }
}

impl Staging {
    /// The folder to work in.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Puts the folder into its place. A folder that was there before goes.
    pub fn commit(self) -> Result<PathBuf> {
        let Self { folder, place } = self;
        let failed = |error| Failure::of_io("putting a folder into the cache", &place, &error);
        // Its files are on the disk before their name is: a power cut leaves no folder of empty
        // files.
        sync(folder.path()).map_err(failed)?;
        if place.exists() {
            fs::remove_dir_all(&place).map_err(failed)?;
        }
        let made = folder.keep();
        fs::rename(&made, &place).map_err(|error| {
            // It is of no use under another name.
            let _ = fs::remove_dir_all(&made);
            Failure::of_io("putting a folder into the cache", &place, &error)
        })?;
        Ok(place)
    }
}

/// Deletes the remains of runs that were killed. A later run may delete a file that cannot be
/// deleted now.
fn sweep(unfinished: &Path) {
    for entry in fs::read_dir(unfinished).into_iter().flatten().flatten() {
        let age =
            entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > ABANDONED) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Everything that was written to the disk of `folder`, at once.
fn sync(folder: &Path) -> std::io::Result<()> {
    nix::unistd::syncfs(File::open(folder)?).map_err(Into::into)
}

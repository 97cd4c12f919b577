#![allow(unsafe_code, reason = "a mapping of a file that others may read")]
//! The file of a ring, with all of its blocks allocated.

use super::StartError;
use crate::RING_BYTES;
use crate::layout::{HEADER_BYTES, MAGIC};
use core::ptr::NonNull;
use memmap2::{MmapMut, MmapOptions};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, posix_fallocate};
use nix::libc::{EEXIST, ENAMETOOLONG, ENOENT, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The suffix of the previous ring's name.
const BEFORE: &[u8] = b".before";
/// Linux's `PATH_MAX`.
const MOST_PATH_BYTES: usize = 4096;

/// A page of the smallest kernel.
const PAGE_BYTES: usize = 4096;

/// Creates the file, zeroed and with all of its blocks, and maps it for ever. On an error it leaves
/// no file.
///
/// The file stays locked (man 2 flock) until the process and its children of fork have ended: a
/// second program at this path is refused.
pub(super) fn create(path: &Path, ring_bytes: u32) -> Result<NonNull<u8>, StartError> {
    keep_the_last(path)?;
    let file = options().write(true).create_new(true).mode(0o600).open(path).map_err(os("open"))?;
    let about = file.metadata().map_err(os("fstat"))?;
    let locked = lock(file)?;
    let map = map(&locked, HEADER_BYTES + ring_bytes as usize);
    match map {
        Ok(_) => core::mem::forget(locked),
        // Another process may have created its file there.
        Err(_)
            if fs::symlink_metadata(path)
                .is_ok_and(|named| (named.dev(), named.ino()) == (about.dev(), about.ino())) =>
        {
            // The first error tells more than this one would.
            let _ = fs::remove_file(path);
        }
        Err(_) => {}
    }
    map
}

/// Maps a new file. Every page is written once: otherwise the first event on each page would wait
/// for it, and on a full tmpfs it would end the program.
fn map(file: &File, len_bytes: usize) -> Result<NonNull<u8>, StartError> {
    // At most 1 MiB and a page (`RING_BYTES`).
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "at most 1 MiB and a page"
    )]
    let end = len_bytes as nix::libc::off_t;
    posix_fallocate(file, 0, end).map_err(|errno: Errno| StartError::File {
        call: "posix_fallocate",
        errno: errno as i32,
    })?;
    // SAFETY: a new file of this program's user alone, which no program shortens: as `memmap2`
    // requires. Others read it, and this process accesses it by atomics and raw copies only.
    let mut map: MmapMut =
        unsafe { MmapOptions::new().len(len_bytes).map_mut(file) }.map_err(os("mmap"))?;
    for page in map.chunks_mut(PAGE_BYTES) {
        if let Some(first) = page.first_mut() {
            // SAFETY: a byte of the mapping. Volatile: a compiler may drop a write of 0 over 0.
            unsafe { core::ptr::write_volatile(first, 0) };
        }
    }
    let first = NonNull::new(map.as_mut_ptr());
    core::mem::forget(map);
    first.ok_or(StartError::File { call: "mmap", errno: 0 })
}

/// Options with which opening a pipe does not block, no terminal becomes this program's controlling
/// terminal, and a symbolic link is an error.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    options
}

fn os(call: &'static str) -> impl Fn(io::Error) -> StartError {
    move |error| StartError::File { call, errno: error.raw_os_error().unwrap_or(0) }
}

/// Takes the lock of the file's writer.
fn lock(file: File) -> Result<Flock<File>, StartError> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| StartError::File {
        call: "flock: another process logs there",
        errno: errno as i32,
    })
}

/// Renames an existing ring, and removes the rest of a start that was killed. Any other file stays,
/// and so does a ring that a process still writes: then no new ring is made.
fn keep_the_last(path: &Path) -> Result<(), StartError> {
    let mut begins = [0; MAGIC.len()];
    let mut file = match options().open(path) {
        Err(error) if error.raw_os_error() == Some(ENOENT) => return Ok(()),
        opened => opened.map_err(os("open"))?,
    };
    let foreign = StartError::File { call: "open: the file is no ring", errno: EEXIST };
    let about = file.metadata().map_err(os("fstat"))?;
    if !about.is_file() {
        return Err(foreign);
    }
    match io::Read::read_exact(&mut file, &mut begins) {
        Err(error) if about.len() > 0 => {
            return Err(error.raw_os_error().map_or(foreign, |_| os("read")(error)));
        }
        _ => {}
    }
    // A ring of another version counts, too.
    let is_ring = begins.get(..7) == MAGIC.get(..7);
    let is_rest = begins == [0; MAGIC.len()] && is_unfinished(about.len());
    if !is_ring && !is_rest {
        return Err(foreign);
    }
    // The lock is held until the file is renamed.
    let _locked = lock(file)?;
    if !is_ring {
        return fs::remove_file(path).map_err(os("unlink"));
    }
    let name = path.as_os_str().as_bytes();
    let mut before = [0; MOST_PATH_BYTES];
    let whole = name.len() + BEFORE.len();
    let too_long = StartError::File { call: "rename", errno: ENAMETOOLONG };
    before.get_mut(..name.len()).ok_or(too_long)?.copy_from_slice(name);
    before.get_mut(name.len()..whole).ok_or(too_long)?.copy_from_slice(BEFORE);
    fs::rename(path, OsStr::from_bytes(before.get(..whole).unwrap_or_default()))
        .map_err(os("rename"))
}

/// Whether a file of this length can be a ring whose start was killed before it wrote the magic.
fn is_unfinished(len_bytes: u64) -> bool {
    let ring = len_bytes.checked_sub(HEADER_BYTES as u64).and_then(|ring| u32::try_from(ring).ok());
    len_bytes == 0 || ring.is_some_and(|ring| RING_BYTES.contains(&ring) && ring.is_power_of_two())
}

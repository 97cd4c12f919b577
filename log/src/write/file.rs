#![allow(unsafe_code, reason = "a mapping of a file that others may read")]
//! The file of a ring, with all of its memory.

use super::error::StartError;
use crate::{
    RING_BYTES,
    layout::{HEADER_BYTES, MAGIC},
};
use core::ptr::NonNull;
use memmap2::{MmapMut, MmapOptions};
use nix::{
    errno::Errno,
    fcntl::posix_fallocate,
    libc::{EEXIST, ENAMETOOLONG, ENOENT, O_NONBLOCK},
};
use std::{
    ffi::OsStr,
    fs::{self, OpenOptions},
    io,
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::Path,
};

/// At the end of the last ring's name.
const BEFORE: &[u8] = b".before";
/// Linux's `PATH_MAX`.
const MOST_PATH_BYTES: usize = 4096;

/// Makes the file, new and zeroed, with all of its blocks, and maps it for ever. All of its pages
/// are there. Otherwise the first event on each would wait for one, and on a full tmpfs it would
/// end the program.
pub(super) fn create(path: &Path, ring_bytes: u32) -> Result<NonNull<u8>, StartError> {
    let os = |call| move |error: io::Error| StartError::File { call, errno: error.raw_os_error().unwrap_or(0) };
    keep_the_last(path)?;
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path).map_err(os("open"))?;
    let len_bytes = HEADER_BYTES + ring_bytes as usize;
    // At most 1 MiB and a page (`RING_BYTES`).
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "at most 1 MiB and a page")]
    let end = len_bytes as nix::libc::off_t;
    posix_fallocate(&file, 0, end).map_err(|errno: Errno| StartError::File { call: "posix_fallocate", errno: errno as i32 })?;
    // SAFETY: a new file of this program's user alone, which nobody shortens: what `memmap2` asks
    // for. Others read it, and this process reaches it by atomics and raw copies alone.
    let mut map: MmapMut = unsafe { MmapOptions::new().len(len_bytes).populate().map_mut(&file) }.map_err(os("mmap"))?;
    let first = NonNull::new(map.as_mut_ptr());
    core::mem::forget(map);
    first.ok_or(StartError::File { call: "mmap", errno: 0 })
}

/// Renames a ring that is there. The rest of a start that was killed is taken away. Any other
/// file stays, and the ring is not made.
fn keep_the_last(path: &Path) -> Result<(), StartError> {
    let os = |call| move |error: io::Error| StartError::File { call, errno: error.raw_os_error().unwrap_or(0) };
    let mut begins = [0; MAGIC.len()];
    // A pipe at this path must not hold the program.
    let opened = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path);
    let read = opened.and_then(|mut file| {
        let about = file.metadata()?;
        io::Read::read_exact(&mut file, &mut begins).or_else(|error| if about.len() == 0 { Ok(()) } else { Err(error) })?;
        Ok(about)
    });
    match read {
        Err(error) if error.raw_os_error() == Some(ENOENT) => return Ok(()),
        Err(error) if error.raw_os_error().is_some() => return Err(os("open")(error)),
        // Another version's ring is one too.
        Ok(_) if begins.get(..7) == MAGIC.get(..7) => {}
        Ok(about) if begins == [0; MAGIC.len()] && about.is_file() && is_unfinished(about.len()) => {
            return fs::remove_file(path).map_err(os("unlink"));
        }
        _ => return Err(StartError::File { call: "open: the file is no ring", errno: EEXIST }),
    }
    let name = path.as_os_str().as_bytes();
    let mut before = [0; MOST_PATH_BYTES];
    let whole = name.len() + BEFORE.len();
    let too_long = StartError::File { call: "rename", errno: ENAMETOOLONG };
    before.get_mut(..name.len()).ok_or(too_long)?.copy_from_slice(name);
    before.get_mut(name.len()..whole).ok_or(too_long)?.copy_from_slice(BEFORE);
    fs::rename(path, OsStr::from_bytes(before.get(..whole).unwrap_or_default())).map_err(os("rename"))
}

/// Can a file of this length be a ring whose start was killed before its magic?
fn is_unfinished(len_bytes: u64) -> bool {
    let ring = len_bytes.checked_sub(HEADER_BYTES as u64).and_then(|ring| u32::try_from(ring).ok());
    len_bytes == 0 || ring.is_some_and(|ring| RING_BYTES.contains(&ring) && ring.is_power_of_two())
}

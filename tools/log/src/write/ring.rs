#![allow(
    unsafe_code,
    reason = "memory that other processes read, and a page that the kernel wipes in a child"
)]
//! The writer's ring: whole frames, one writer at a time, and readers that can tell which bytes are
//! whole.
//!
//! `reserved` rises before bytes are overwritten, and `written` after they are whole. So a reader
//! that copies the ring, live or after a kill at any instruction, knows which bytes are valid:
//! those from `reserved - size` to `written`.

use super::StartError;
use crate::layout::{FRAME_BYTES, HEADER_BYTES, at};
use core::num::NonZeroUsize;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use nix::libc::{MADV_WIPEONFORK, MS_SYNC};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};

/// The page of this structure is zeroed in a child of fork(2), which so has no ring.
struct Open {
    /// The file's mapping; null in a child.
    map: AtomicPtr<u8>,
    /// The ring's size, a power of two.
    ring_bytes: AtomicU32,
}

/// Set once, and never unmapped.
static OPEN: AtomicPtr<Open> = AtomicPtr::new(ptr::null_mut());
/// One writer at a time, for the copy of a frame.
static LOCK: AtomicBool = AtomicBool::new(false);

/// The number of polls of a held lock: some 10 µs. A frame is copied in far less time, so a lock
/// that is held longer belongs to a thread that is not running. No thread waits for that thread,
/// because it may have a lower priority.
const MOST_LOOKS: u32 = 1_000;

/// Makes `map` the ring of this process.
pub(super) fn open(map: NonNull<u8>, ring_bytes: u32) -> Result<(), StartError> {
    let os = |errno| StartError::File { call: "mmap(MAP_ANONYMOUS)", errno };
    let len = NonZeroUsize::new(size_of::<Open>()).ok_or(os(0))?;
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let page = unsafe {
        mmap_anonymous(
            None,
            len,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_PRIVATE,
        )
    };
    let page = page.map_err(|errno| os(errno as i32))?;
    // SAFETY: the page that was just mapped. Linux before 4.14 refuses this advice.
    unsafe { nix::libc::madvise(page.as_ptr(), len.get(), MADV_WIPEONFORK) };
    let page = page.cast::<Open>();
    // SAFETY: an aligned and zeroed page, which is not shared yet and never unmapped.
    let own = unsafe { page.as_ref() };
    own.ring_bytes.store(ring_bytes, Ordering::Relaxed);
    own.map.store(map.as_ptr(), Ordering::Relaxed);
    // Release: a thread that loads the pointer sees the values that were stored in the page.
    OPEN.store(page.as_ptr(), Ordering::Release);
    Ok(())
}

/// The mapping and the ring's size, if this process has a log.
fn mapped() -> Option<(NonNull<u8>, usize)> {
    // SAFETY: the page is never unmapped, and holds atomics only.
    let open = unsafe { OPEN.load(Ordering::Acquire).as_ref() }?;
    let map = NonNull::new(open.map.load(Ordering::Relaxed))?;
    Some((map, open.ring_bytes.load(Ordering::Relaxed) as usize))
}

/// Whether this process has a log.
pub(super) fn is_open() -> bool {
    mapped().is_some()
}

/// A counter of the header.
fn counter(map: NonNull<u8>, at: usize) -> &'static AtomicU64 {
    const {
        assert!(
            at::WRITTEN.is_multiple_of(8)
                && at::RESERVED.is_multiple_of(8)
                && at::DROPPED.is_multiple_of(8)
        )
    }
    // SAFETY: the counter is within the header, which is mapped for ever; it is aligned, as the
    // page and the offset are; and no code of this process accesses it in another way.
    unsafe { AtomicU64::from_ptr(map.as_ptr().add(at).cast()) }
}

/// Copies a whole frame into the ring, or drops it if the lock is not released in time.
pub(super) fn append(frame: &[u8]) {
    let Some((map, ring_bytes)) = mapped() else { return };
    if frame.len() > FRAME_BYTES || !lock() {
        return drop_one();
    }
    let (reserved, written) = (counter(map, at::RESERVED), counter(map, at::WRITTEN));
    let from = written.load(Ordering::Relaxed);
    let to = from.wrapping_add(frame.len() as u64);
    reserved.store(to, Ordering::Relaxed);
    // A reader sees the new `reserved` before any byte is overwritten.
    fence(Ordering::Release);
    #[allow(clippy::cast_possible_truncation, reason = "the remainder is below the ring's size")]
    let place = (from & (ring_bytes as u64 - 1)) as usize;
    let (first, rest) = frame.split_at(frame.len().min(ring_bytes - place));
    // SAFETY: `first`, at `place`, ends at the ring's end at most, and `rest` is shorter than the
    // ring (`FRAME_BYTES`); the lock is held, so that no other thread writes.
    unsafe {
        let ring = map.as_ptr().add(HEADER_BYTES);
        ptr::copy_nonoverlapping(first.as_ptr(), ring.add(place), first.len());
        ptr::copy_nonoverlapping(rest.as_ptr(), ring, rest.len());
    }
    // Release: the bytes are in the ring before they count as whole.
    written.store(to, Ordering::Release);
    LOCK.store(false, Ordering::Release);
}

fn lock() -> bool {
    for _ in 0..MOST_LOOKS {
        if !LOCK.swap(true, Ordering::Acquire) {
            return true;
        }
        core::hint::spin_loop();
    }
    false
}

/// Counts an event that is not in the ring.
pub(super) fn drop_one() {
    if let Some((map, _)) = mapped() {
        counter(map, at::DROPPED).fetch_add(1, Ordering::Relaxed);
    }
}

/// The number of events that were dropped.
pub(super) fn dropped() -> u64 {
    mapped().map_or(0, |(map, _)| counter(map, at::DROPPED).load(Ordering::Relaxed))
}

/// Writes the file back, and waits for that.
pub(super) fn sync() -> Result<(), StartError> {
    let (map, ring_bytes) =
        mapped().ok_or(StartError::File { call: "msync: no log was started", errno: 0 })?;
    // SAFETY: the whole mapping, which is never unmapped.
    match unsafe { nix::libc::msync(map.as_ptr().cast(), HEADER_BYTES + ring_bytes, MS_SYNC) } {
        0 => Ok(()),
        _ => Err(StartError::File { call: "msync", errno: nix::errno::Errno::last_raw() }),
    }
}

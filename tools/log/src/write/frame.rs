#![allow(unsafe_code, reason = "cells of one thread, which a signal handler on it finds too")]
//! The frame that a thread is making, in the thread's own memory, so that no thread waits.

use crate::layout::{FIRST, FRAME_BYTES, check};
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};
use defmt::Encoder;

/// The frame of one thread. It is a constant without a drop, so that accessing it takes no heap.
pub(super) struct Frame {
    /// The `acquire`s without a `release` so far. More than one: a signal handler, or a `Format`
    /// that logs, interrupted an event.
    depth: AtomicU32,
    /// One of the functions below is running. A signal handler that panics now must not touch the
    /// encoder and the bytes.
    busy: AtomicBool,
    len: Cell<usize>,
    check: Cell<u8>,
    encoder: UnsafeCell<Encoder>,
    bytes: UnsafeCell<[u8; FRAME_BYTES]>,
}

impl Frame {
    pub(super) const fn new() -> Self {
        Self {
            depth: AtomicU32::new(0),
            busy: AtomicBool::new(false),
            len: Cell::new(0),
            check: Cell::new(FIRST),
            encoder: UnsafeCell::new(Encoder::new()),
            bytes: UnsafeCell::new([0; FRAME_BYTES]),
        }
    }

    /// Begins an event. False if another event of this thread has not ended: the new one is lost.
    pub(super) fn begin(&self) -> bool {
        if self.depth.fetch_add(1, Ordering::Relaxed) > 0 {
            return false;
        }
        let _work = self.work();
        self.len.set(0);
        self.check.set(FIRST);
        // SAFETY: only this thread accesses it. A handler on this thread finds a depth other than 0
        // and goes no further, and while `busy` is set, `forget` keeps the depth. The ring itself
        // writes the separator that an encoder begins with.
        unsafe { self.encoder.get().write(Encoder::new()) };
        // SAFETY: as above.
        unsafe { &mut *self.encoder.get() }.start_frame(|_| {});
        true
    }

    /// Adds a part of the event.
    pub(super) fn add(&self, part: &[u8]) {
        if self.depth.load(Ordering::Relaxed) == 1 {
            let _work = self.work();
            self.check.set(check(self.check.get(), part));
            // SAFETY: as in `begin`: `depth` is 1, so this is the event that began first.
            unsafe { &mut *self.encoder.get() }.write(part, |encoded| self.put(encoded));
        }
    }

    /// Ends the event, and passes on its bytes with the separating zero. `None` for a nested event
    /// and for one that is too long.
    pub(super) fn end(&self, use_it: impl FnOnce(Option<&[u8]>)) {
        let depth = self.depth.load(Ordering::Relaxed);
        if depth == 1 {
            let _work = self.work();
            let check = [self.check.get()];
            // SAFETY: as in `add`.
            let encoder = unsafe { &mut *self.encoder.get() };
            encoder.write(&check, |encoded| self.put(encoded));
            encoder.end_frame(|encoded| self.put(encoded));
            // SAFETY: `put` filled so many bytes, and no handler accesses them.
            use_it(unsafe { &*self.bytes.get() }.get(..self.len.get()));
        }
        self.depth.store(depth.saturating_sub(1), Ordering::Relaxed);
    }

    /// Forgets an event during which the program panicked. True if an event is lost.
    ///
    /// If a signal handler panics while one of the functions above runs, nothing is forgotten: the
    /// handler's own event is nested in the other one, and is lost.
    pub(super) fn forget(&self) -> bool {
        !self.busy.load(Ordering::Relaxed) && self.depth.swap(0, Ordering::Relaxed) > 0
    }

    fn work(&self) -> Work<'_> {
        self.busy.store(true, Ordering::Relaxed);
        // A handler on this thread sees the depth and this flag before any later change.
        compiler_fence(Ordering::SeqCst);
        Work(&self.busy)
    }

    fn put(&self, encoded: &[u8]) {
        let at = self.len.get();
        // A frame that is too long gets a length beyond the buffer, which shows it.
        self.len.set(at.saturating_add(encoded.len()));
        // SAFETY: as in `add`.
        let bytes = unsafe { &mut *self.bytes.get() };
        if let Some(place) = bytes.get_mut(at..at.saturating_add(encoded.len())) {
            place.copy_from_slice(encoded);
        }
    }
}

/// The encoder and the bytes are borrowed while this value lives.
struct Work<'a>(&'a AtomicBool);

impl Drop for Work<'_> {
    fn drop(&mut self) {
        // A handler sees all changes before the flag's.
        compiler_fence(Ordering::SeqCst);
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handler runs between any two instructions; the test places it between the steps of a copy.
    #[test]
    fn panic_in_handler_spares_copied_event() {
        let frame = Frame::new();
        assert!(frame.begin());
        frame.add(&[1, 2, 3]);
        let mut copied = 0;
        frame.end(|bytes| {
            assert!(!frame.forget(), "the bytes are borrowed");
            assert!(!frame.begin(), "the handler's event would overwrite them");
            frame.add(&[9; 20]);
            frame.end(|_| ());
            copied = bytes.map_or(0, <[u8]>::len);
        });
        assert!(copied > 3 && frame.begin(), "the next event is one again");
    }

    #[test]
    fn a_panic_within_an_event_ends_it() {
        let frame = Frame::new();
        assert!(frame.begin());
        assert!(frame.forget() && !frame.forget());
        assert!(frame.begin());
    }
}

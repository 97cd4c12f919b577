#![allow(unsafe_code, reason = "cells of one thread, which a signal handler on it finds too")]
//! A frame while a thread makes it: in memory of that thread's own, so that nobody waits.

use crate::{
    check::{FIRST, check},
    layout::FRAME_BYTES,
};
use core::{
    cell::{Cell, UnsafeCell},
    sync::atomic::{Ordering, compiler_fence},
};
use defmt::Encoder;

/// The frame of one thread. A constant with nothing to drop: reaching it takes no heap.
pub(super) struct Frame {
    /// How many `acquire`s have no `release` yet. More than one: a signal handler, or a `Format`
    /// that logs, came within an event.
    depth: Cell<u32>,
    len: Cell<usize>,
    check: Cell<u8>,
    encoder: UnsafeCell<Encoder>,
    bytes: UnsafeCell<[u8; FRAME_BYTES]>,
}

impl Frame {
    pub(super) const fn new() -> Self {
        Self {
            depth: Cell::new(0),
            len: Cell::new(0),
            check: Cell::new(FIRST),
            encoder: UnsafeCell::new(Encoder::new()),
            bytes: UnsafeCell::new([0; FRAME_BYTES]),
        }
    }

    /// An event begins. False where another one of this thread has not ended: the new one is lost.
    pub(super) fn begin(&self) -> bool {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        // A handler on this thread sees the depth before any change below.
        compiler_fence(Ordering::SeqCst);
        if depth > 0 {
            return false;
        }
        self.len.set(0);
        self.check.set(FIRST);
        // SAFETY: this thread's alone, and no handler on it comes further than the line above. The
        // separator that an encoder begins with is the ring's business.
        unsafe { self.encoder.get().write(Encoder::new()) };
        // SAFETY: as above.
        unsafe { &mut *self.encoder.get() }.start_frame(|_| {});
        true
    }

    /// A part of the event.
    pub(super) fn add(&self, part: &[u8]) {
        if self.depth.get() == 1 {
            self.check.set(check(self.check.get(), part));
            // SAFETY: as in `begin`: `depth` is 1, so this is the event that began first.
            unsafe { &mut *self.encoder.get() }.write(part, |encoded| self.put(encoded));
        }
    }

    /// The event ends: its bytes, with the zero that separates it. `None` for one within another,
    /// and for one that is too long.
    pub(super) fn end(&self, use_it: impl FnOnce(Option<&[u8]>)) {
        let depth = self.depth.get();
        if depth == 1 {
            let check = [self.check.get()];
            // SAFETY: as in `add`.
            let encoder = unsafe { &mut *self.encoder.get() };
            encoder.write(&check, |encoded| self.put(encoded));
            encoder.end_frame(|encoded| self.put(encoded));
            // SAFETY: `put` filled so many bytes, and a handler does not reach them.
            use_it(unsafe { &*self.bytes.get() }.get(..self.len.get()));
        }
        // And the end of all changes before the depth.
        compiler_fence(Ordering::SeqCst);
        self.depth.set(depth.saturating_sub(1));
    }

    /// Forgets an event that has begun: the program panicked within it.
    pub(super) fn forget(&self) {
        self.depth.set(0);
    }

    fn put(&self, encoded: &[u8]) {
        let at = self.len.get();
        // A frame that is too long gets a length beyond the buffer's, and is found out by it.
        self.len.set(at.saturating_add(encoded.len()));
        // SAFETY: as in `add`.
        if let Some(place) = unsafe { &mut *self.bytes.get() }.get_mut(at..at.saturating_add(encoded.len())) {
            place.copy_from_slice(encoded);
        }
    }
}

#![allow(unsafe_code, reason = "implementing defmt's Logger is unsafe")]
//! `defmt`'s logger. An event is made in the thread's own frame, and copied as a whole.

use super::{frame::Frame, ring};

std::thread_local! {
    static FRAME: Frame = const { Frame::new() };
}

/// The program's one logger.
#[defmt::global_logger]
struct Logger;

// SAFETY: `acquire` and `release` come in pairs on one thread, each with a frame of its own, and a
// nested pair changes no byte of the outer one (`Frame`). No call waits for another.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        // Without a ring nothing is made. A start before the `release` finds no event that began.
        if ring::is_open() && !FRAME.with(Frame::begin) {
            ring::drop_one();
        }
    }

    unsafe fn flush() {}

    unsafe fn release() {
        FRAME.with(|frame| {
            frame.end(|bytes| match bytes {
                Some(bytes) => ring::append(bytes),
                None => ring::drop_one(),
            });
        });
    }

    unsafe fn write(part: &[u8]) {
        FRAME.with(|frame| frame.add(part));
    }
}

/// Forgets this thread's event that has begun, and counts it as dropped.
pub(super) fn forget() {
    if FRAME.with(Frame::forget) {
        ring::drop_one();
    }
}

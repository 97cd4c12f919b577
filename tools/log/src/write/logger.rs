#![allow(unsafe_code, reason = "implementing defmt's Logger is unsafe")]
//! `defmt`'s logger: an event is made in the thread's own frame, and copied as a whole. A panic can
//! be an event, too.

use super::frame::Frame;
use super::ring;
use core::fmt::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

std::thread_local! {
    static FRAME: Frame = const { Frame::new() };
}

/// The program's one logger.
#[defmt::global_logger]
struct Logger;

// SAFETY: `acquire` and `release` come in pairs on one thread, which has its own frame, and a
// nested pair changes no byte of the outer one (`Frame`). No call waits for another.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        // Without a ring no event begins. If one opens before `release`, it finds no event.
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

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send>;

/// The previous panic hook.
static BEFORE: OnceLock<Hook> = OnceLock::new();

/// The most bytes of a message that fit into a frame with everything else.
const MOST_BYTES: usize = 320;

/// The first bytes of a text.
struct Short {
    bytes: [u8; MOST_BYTES],
    len: usize,
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MOST_BYTES.saturating_sub(self.len);
        // The whole character, or none of it.
        let fits = text
            .char_indices()
            .map(|(at, letter)| at + letter.len_utf8())
            .take_while(|end| *end <= room)
            .last()
            .unwrap_or(0);
        let (from, to) =
            (text.as_bytes().get(..fits), self.bytes.get_mut(self.len..self.len + fits));
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
            self.len += fits;
        }
        Ok(())
    }
}

/// Whether a panic is logged as an event.
static TELL: AtomicBool = AtomicBool::new(false);

/// Installs a hook: a panic of any thread ends the event that it interrupted, because otherwise the
/// thread would log nothing more. With `tell`, it also logs the panic's place and message.
pub(super) fn heed_panics(tell: bool) {
    TELL.store(tell, Ordering::Relaxed);
    if BEFORE.set(panic::take_hook()).is_ok() {
        panic::set_hook(Box::new(told));
    }
}

fn told(panic: &PanicHookInfo<'_>) {
    // The panic may have interrupted an event, which now has no end.
    if FRAME.with(Frame::forget) {
        ring::drop_one();
    }
    if TELL.load(Ordering::Relaxed) {
        let mut short = Short { bytes: [0; MOST_BYTES], len: 0 };
        // The panic's own text has its place and its reason.
        let _ = write!(short, "{panic}");
        let text = short
            .bytes
            .get(..short.len)
            .and_then(|bytes| core::str::from_utf8(bytes).ok())
            .unwrap_or_default();
        defmt::error!("{=str}", text);
    }
    if let Some(before) = BEFORE.get() {
        before(panic);
    }
}

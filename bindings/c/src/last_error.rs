//! The text of a thread's last refusal, in a fixed buffer of the thread's own.

use crate::fault::{Fault, Misuse};
use crate::status::{CONTIGO_OK, contigo_status};
use contigo::Error;
use contigo::linux::same_process;
use core::cell::RefCell;
use core::fmt::{self, Write as _};
use core::mem;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

/// Room for the text: a message of the runtime has about 200 bytes. A list of the memory and the
/// devices of a machine may follow, and takes more on a board with many. The rest is cut.
const TEXT_BYTES: usize = 4096;

struct Text {
    bytes: [u8; TEXT_BYTES],
    len: usize,
}

thread_local! {
    // Constant, and nothing to drop: using it allocates nothing.
    static LAST: RefCell<Text> = const { RefCell::new(Text { bytes: [0; TEXT_BYTES], len: 0 }) };
}

impl Text {
    /// Adds `text`, as far as all is `max_bytes` at most. It is cut between two characters.
    fn add(&mut self, text: &str, max_bytes: usize) -> fmt::Result {
        for char in text.chars() {
            let end = self.len + char.len_utf8();
            let room = self.bytes.get_mut(self.len..end).filter(|_| end <= max_bytes);
            char.encode_utf8(room.ok_or(fmt::Error)?);
            self.len = end;
        }
        Ok(())
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text, TEXT_BYTES)
    }
}

/// Runs one call. A refusal becomes the call's code and this thread's text; a panic ends here, and
/// is an error code too.
///
/// Every function of the header that can be refused is a call, and so none runs in a child of fork.
/// The tables there are a copy, and their objects belong to the parent.
#[inline]
pub(crate) fn call(act: impl FnOnce() -> Result<(), Fault>) -> contigo_status {
    // A refusal is large, so it becomes its code before it is handed on.
    let here = || match same_process().map_err(Fault::from).and_then(|()| act()) {
        Ok(()) => CONTIGO_OK,
        Err(fault) => refusal(&fault),
    };
    catch_unwind(AssertUnwindSafe(here)).unwrap_or_else(|payload| {
        // Dropping it could panic again.
        mem::forget(payload);
        refusal(&Misuse::Panicked.into())
    })
}

/// The code of a refusal, which becomes this thread's text.
#[cold]
#[inline(never)]
fn refusal(fault: &Fault) -> contigo_status {
    record(fault);
    fault.status()
}

fn record(fault: &Fault) {
    // No text while the thread ends, after its variables are gone.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            // The words of the code that refused (`ForeignWords`) are there already, and come
            // after the error.
            let (said, who) =
                if let Fault::Load { who, .. } = fault { (last.len, *who) } else { (0, "") };
            last.len = said;
            let _ = write!(last, "{fault}");
            if said != 0 {
                let _ = write!(last, "; {who} says: ");
            }
            let len = last.len;
            if let Some(text) = last.bytes.get_mut(..len) {
                text.rotate_left(said);
            }
        }
    });
}

/// The words of a compiler or of the loader about code that it refuses, as the text that
/// `Fault::Load` gets. As much of them as leaves room for the error.
pub(crate) struct ForeignWords {
    who: &'static str,
    begun: bool,
}

impl ForeignWords {
    const BYTES: usize = TEXT_BYTES * 3 / 4;

    pub(crate) const fn of(who: &'static str) -> Self {
        Self { who, begun: false }
    }

    /// The refusal that they are about.
    pub(crate) const fn refusal(&self, error: Error) -> Fault {
        if self.begun { Fault::Load { error, who: self.who } } else { Fault::Runtime(error) }
    }
}

impl fmt::Write for ForeignWords {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let write = |last: &RefCell<Text>| {
            let mut last = last.try_borrow_mut().map_err(|_| fmt::Error)?;
            if !mem::replace(&mut self.begun, true) {
                last.len = 0;
            }
            // The rest is cut, which is no failure.
            let _ = last.add(text, Self::BYTES);
            Ok(())
        };
        LAST.try_with(write).unwrap_or(Err(fmt::Error))
    }
}

/// Hands the text to `use_it`, and answers its result.
pub(crate) fn with_text<R>(use_it: impl FnOnce(&[u8]) -> R) -> Option<R> {
    LAST.try_with(|last| {
        last.try_borrow().ok().and_then(|last| last.bytes.get(..last.len).map(use_it))
    })
    .ok()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{CONTIGO_E_BUSY, CONTIGO_E_INTERNAL};

    fn text() -> Option<String> {
        with_text(|text| String::from_utf8_lossy(text).into_owned())
    }

    #[test]
    fn a_panic_is_an_error_code() {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        #[allow(clippy::panic, reason = "that is the point")]
        let status = call(|| panic!("a defect"));
        std::panic::set_hook(before);
        assert_eq!(
            (status, text().as_deref()),
            (CONTIGO_E_INTERNAL, Some("a defect of this library was caught; please report it"))
        );
    }

    #[test]
    fn success_keeps_text_refusal_replaces_it() {
        assert_eq!(call(|| Err(contigo::Error::Busy.into())), CONTIGO_E_BUSY);
        let busy = text();
        assert!(busy.as_ref().is_some_and(|text| text.starts_with("a job is under way")));
        assert_eq!((call(|| Ok(())), text()), (CONTIGO_OK, busy));
        assert_eq!(
            std::thread::spawn(text).join().ok().flatten().as_deref(),
            Some(""),
            "each thread has its own"
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut long = Text { bytes: [0; TEXT_BYTES], len: 0 };
        assert_eq!(write!(long, "{}", "é".repeat(TEXT_BYTES)), Err(fmt::Error));
        assert_eq!((long.len, std::str::from_utf8(&long.bytes).is_ok()), (TEXT_BYTES, true));
    }
}

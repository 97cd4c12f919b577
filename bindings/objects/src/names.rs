#![allow(unsafe_code, reason = "a name is written once, by the thread that claimed its place")]
//! Names that a program gives to its ports and its kernels.

use crate::{NAME_BYTES, Refusal};
use core::cell::UnsafeCell;
use core::str;
use core::sync::atomic::{AtomicU8, Ordering};

/// The most different names that are kept.
pub const NAMES: usize = 1024;

/// A place for a name. It is zeroed without one, so that it takes no room in the program's file.
struct Place {
    state: AtomicU8,
    /// Written by the thread that set the state `WRITTEN`, and read in the state `THERE`.
    name: UnsafeCell<Name>,
}

struct Name {
    bytes: [u8; NAME_BYTES],
    len: u8,
}

const FREE: u8 = 0;
/// One thread writes the name.
const WRITTEN: u8 = 1;
/// The name stays for ever.
const THERE: u8 = 2;

// SAFETY: see `name`.
unsafe impl Sync for Place {}

impl Place {
    const fn new() -> Self {
        Self {
            state: AtomicU8::new(FREE),
            name: UnsafeCell::new(Name { bytes: [0; NAME_BYTES], len: 0 }),
        }
    }

    /// The name of this place. A free place takes `text` first.
    fn keep(&'static self, text: &str) -> Option<&'static str> {
        if self.state.compare_exchange(FREE, WRITTEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            // SAFETY: this thread made it `WRITTEN`, and nothing else uses it until it is `THERE`.
            let name = unsafe { &mut *self.name.get() };
            name.bytes.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
            name.len = u8::try_from(text.len()).unwrap_or(0);
            self.state.store(THERE, Ordering::Release);
        }
        if self.state.load(Ordering::Acquire) != THERE {
            return None;
        }
        // SAFETY: it is `THERE`, and never written again.
        let Name { bytes, len } = unsafe { &*self.name.get() };
        bytes.get(..usize::from(*len)).and_then(|bytes| str::from_utf8(bytes).ok())
    }
}

/// Keeps `text` for the rest of the process, each text once: a port's name is copied into engines
/// and errors, which may outlive the port. A text of more than [`NAME_BYTES`] is cut between two
/// characters. If two threads bring the same text at once, both may keep it, because neither waits
/// for the other.
///
/// # Errors
/// [`Refusal::NamesFull`].
pub fn keep(text: &str) -> Result<&'static str, Refusal> {
    static KEPT: [Place; NAMES] = [const { Place::new() }; NAMES];
    let end =
        (0..=text.len().min(NAME_BYTES)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let text = text.get(..end).unwrap_or("");
    KEPT.iter()
        .find_map(|place| place.keep(text).filter(|kept| *kept == text))
        .ok_or(Refusal::NamesFull { names: NAMES })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::thread;

    #[test]
    fn name_is_kept_once_and_cut_at_character() {
        let (one, two) = (keep("a-port"), keep(&String::from("a-port")));
        assert_eq!((one, one.map(str::as_ptr)), (Ok("a-port"), two.map(str::as_ptr)));
        assert_eq!(keep(&"é".repeat(NAME_BYTES)).map(str::len), Ok(NAME_BYTES - 1));
        assert_eq!(keep(""), Ok(""));
    }

    #[test]
    fn threads_keep_names_at_once() {
        let names = |of: usize| {
            move || {
                (0..50)
                    .map(|at| keep(&format!("{}", at * (of % 2 + 1))).unwrap_or("none"))
                    .collect::<BTreeSet<_>>()
            }
        };
        let threads: Vec<_> = (0..4).map(|of| thread::spawn(names(of))).collect();
        let kept: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
        assert_eq!(kept.iter().map(BTreeSet::len).collect::<Vec<_>>(), [50; 4]);
        assert!(
            kept.iter()
                .flatten()
                .all(|name| name.parse::<usize>().is_ok_and(|number| number < 100))
        );
    }
}

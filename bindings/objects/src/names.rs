//! Names that a program makes up: of its ports, and of its kernels.

use crate::Refusal;
use std::sync::OnceLock;

/// The most different names that are kept.
pub const NAMES: usize = 1024;

/// The longest of them, in bytes.
pub const NAME_BYTES: usize = 127;

struct Name {
    bytes: [u8; NAME_BYTES],
    len: usize,
}

impl Name {
    fn new(text: &str) -> Self {
        let mut bytes = [0; NAME_BYTES];
        bytes.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        Self { bytes, len: text.len().min(NAME_BYTES) }
    }

    fn text(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or("")
    }
}

/// `text` for the rest of the process, the same text once: a port's name is copied into engines and
/// errors, which may outlive the port. One of more than [`NAME_BYTES`] is cut between two
/// characters.
///
/// # Errors
/// [`Refusal::NamesFull`].
pub fn keep(text: &str) -> Result<&'static str, Refusal> {
    static KEPT: [OnceLock<Name>; NAMES] = [const { OnceLock::new() }; NAMES];
    let end = (0..=text.len().min(NAME_BYTES)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let text = text.get(..end).unwrap_or("");
    let place = |place: &'static OnceLock<Name>| Some(place.get_or_init(|| Name::new(text)).text()).filter(|kept| *kept == text);
    KEPT.iter().find_map(place).ok_or(Refusal::NamesFull { names: NAMES })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_cut_between_characters() {
        let (one, two) = (keep("a-port"), keep(&String::from("a-port")));
        assert_eq!((one, one.map(str::as_ptr)), (Ok("a-port"), two.map(str::as_ptr)));
        assert_eq!(keep(&"é".repeat(NAME_BYTES)).map(str::len), Ok(NAME_BYTES - 1));
        assert_eq!(keep(""), Ok(""));
    }
}

//! A name in a fixed buffer: of a kernel, of an argument, or of what an error is about.

use core::fmt;

/// The most bytes of a [`Name`]. HLS forms a name from those of a function, an argument and a
/// structure's fields.
const MAX_BYTES: usize = 47;

/// The name of a kernel or of an argument: letters, digits and `_`, at most 47.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    // INVARIANT: the first `len` bytes are ASCII, and the others 0.
    bytes: [u8; MAX_BYTES],
    len: u8,
}

impl Name {
    /// The most bytes of a name.
    pub(crate) const MAX_BYTES: usize = MAX_BYTES;
    /// The empty name.
    pub const NONE: Self = Self { bytes: [0; MAX_BYTES], len: 0 };

    /// Returns `text` as a name, or `None` if it is not a valid one.
    #[must_use]
    pub const fn new(text: &str) -> Option<Self> {
        let mut name = Self::NONE;
        let (mut from, mut to): (_, &mut [u8]) = (text.as_bytes(), &mut name.bytes);
        if from.is_empty() {
            return None;
        }
        while let [byte, rest @ ..] = from {
            match to {
                [place, more @ ..] if byte.is_ascii_alphanumeric() || *byte == b'_' => {
                    *place = *byte;
                    to = more;
                }
                _ => return None,
            }
            name.len += 1;
            from = rest;
        }
        Some(name)
    }

    /// Returns as much of `text` as fits, for an error. Bytes that are not printable become `?`.
    #[must_use]
    pub const fn clipped(text: &str) -> Self {
        let mut name = Self::NONE;
        let (mut from, mut to): (_, &mut [u8]) = (text.as_bytes(), &mut name.bytes);
        while let ([byte, rest @ ..], [place, more @ ..]) = (from, to) {
            *place = if byte.is_ascii_graphic() { *byte } else { b'?' };
            name.len += 1;
            (from, to) = (rest, more);
        }
        name
    }

    /// As text.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        match self.bytes.split_at_checked(self.len as usize) {
            Some((these, _)) => match core::str::from_utf8(these) {
                Ok(text) => text,
                // The invariant rules this out.
                Err(_) => "",
            },
            None => "",
        }
    }
}

/// Returns whether two texts are the same, in constants, where `==` is not available.
pub const fn same(left: &str, right: &str) -> bool {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    loop {
        match (left, right) {
            ([], []) => return true,
            ([a, more_left @ ..], [b, more_right @ ..]) if *a == *b => {
                (left, right) = (more_left, more_right)
            }
            _ => return false,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Name {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=str}", self.as_str());
    }
}

//! A short text that is copied like a number.

use core::fmt;
use core::hash::{Hash, Hasher};

/// Up to [`Text::MAX_BYTES`] bytes of UTF-8, in place: a name needs no heap and no lifetime.
#[derive(Clone, Copy)]
pub(super) struct Text {
    // INVARIANT: the first `len` bytes are UTF-8.
    bytes: [u8; Text::MAX_BYTES],
    len: u8,
}

impl Text {
    /// Two names of files, 63 bytes each, and the words around them: `dma-heap:` and `@contigo:`.
    pub(super) const MAX_BYTES: usize = 160;

    /// `text`, if it fits.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; Self::MAX_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { bytes, len: u8::try_from(text.len()).ok()? })
    }

    /// The parts, one after the other, if they fit.
    pub(super) fn join(parts: &[&str]) -> Option<Self> {
        let mut whole = heapless::String::<{ Self::MAX_BYTES }>::new();
        parts.iter().try_for_each(|part| whole.push_str(part)).ok()?;
        Self::new(&whole)
    }

    pub(super) fn as_str(&self) -> &str {
        // The invariant makes this an Ok; the other arm is a name that nothing has.
        self.bytes
            .get(..self.len.into())
            .and_then(|bytes| core::str::from_utf8(bytes).ok())
            .unwrap_or("")
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

//! A place in a file.

/// The bytes of a file, and how far they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    source: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    pub(crate) const fn new(source: &'a [u8]) -> Self {
        Self { source, at: 0 }
    }

    /// The same file from byte `from` to before byte `to`.
    pub(super) fn part(self, from: u32, to: u32) -> Self {
        let source = self.source.get(..to as usize).unwrap_or(self.source);
        Self { source, at: (from as usize).min(source.len()) }
    }

    /// The whole file.
    pub(crate) const fn source(&self) -> &'a [u8] {
        self.source
    }

    /// How many bytes are read.
    pub(crate) fn at(&self) -> u32 {
        // A file is not longer.
        u32::try_from(self.at).unwrap_or(u32::MAX)
    }

    /// The line of this place, from 1.
    pub(crate) fn line(&self) -> u32 {
        let read = self.source.get(..self.at).unwrap_or(self.source);
        let breaks = read.iter().filter(|byte| **byte == b'\n').count();
        u32::try_from(breaks).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// The text that is not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.source.get(self.at..).unwrap_or_default()
    }

    /// Reads on by `count` bytes, or to the end.
    pub(crate) fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count).min(self.source.len());
    }

    /// Reads on over white space.
    pub(crate) fn skip_space(&mut self) {
        self.skip(self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count());
    }

    /// Reads `word`, where it stands here.
    pub(crate) fn eat(&mut self, word: &str) -> bool {
        let here = self.rest().starts_with(word.as_bytes());
        if here {
            self.skip(word.len());
        }
        here
    }

    /// Reads as far as `ends` says, and what stands before it. `None`: it stands nowhere.
    pub(crate) fn until(&mut self, ends: impl Fn(u8) -> bool) -> Option<&'a [u8]> {
        let rest = self.rest();
        let before = rest.get(..rest.iter().position(|byte| ends(*byte))?)?;
        self.skip(before.len());
        Some(before)
    }

    /// Reads the next line, without its end.
    pub(crate) fn next_line(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let line = rest.split(|byte| *byte == b'\n').next()?;
        self.skip(line.len() + 1);
        Some(line)
    }
}

/// A number as C writes it: `16` or `0x10`.
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

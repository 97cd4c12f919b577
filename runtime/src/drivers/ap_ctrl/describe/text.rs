//! A place in a file.

use super::super::{MapBuilder, MapError, MapRule, builder::line_of, name::Name};

/// The bytes of a file, and how far they are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    source: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    pub(super) const fn new(source: &'a [u8]) -> Self {
        Self { source, at: 0 }
    }

    /// How many bytes are read.
    pub(super) fn at(&self) -> u32 {
        // A file is not longer.
        u32::try_from(self.at).unwrap_or(u32::MAX)
    }

    /// The text that is not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.source.get(self.at..).unwrap_or_default()
    }

    /// Reads on by `count` bytes, or to the end.
    pub(super) fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count).min(self.source.len());
    }

    /// Reads on over white space.
    pub(super) fn skip_space(&mut self) {
        self.skip(self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count());
    }

    /// Reads `word`, where it stands here.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let here = self.rest().starts_with(word.as_bytes());
        if here {
            self.skip(word.len());
        }
        here
    }

    /// Reads as far as `ends` says, and what stands before it. `None`: it stands nowhere.
    pub(super) fn until(&mut self, ends: impl Fn(u8) -> bool) -> Option<&'a [u8]> {
        let rest = self.rest();
        let before = rest.get(..rest.iter().position(|byte| ends(*byte))?)?;
        self.skip(before.len());
        Some(before)
    }

    /// Reads the next line, without its end.
    pub(super) fn line(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let line = rest.split(|byte| *byte == b'\n').next()?;
        self.skip(line.len() + 1);
        Some(line)
    }

    /// The error that `rule` is broken here, by what is called `name`.
    pub(super) fn broken(&self, rule: MapRule, name: &str, found: u64) -> MapError {
        let byte = self.at();
        MapError { line: line_of(self.source, byte), byte, ..MapError::of(rule, Name::clipped(name), found) }
    }

    /// The error that this was expected here.
    pub(super) fn expected(&self, what: &'static str) -> MapError {
        self.broken(MapRule::Expected(what), "", 0)
    }

    /// Lets `map` say where its next argument stands.
    pub(super) fn mark(&self, map: &mut MapBuilder<'a>) {
        (map.source, map.at) = (self.source, self.at());
    }
}

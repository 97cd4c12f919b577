//! Errors that say where in a file they are.

use super::super::{MapBuilder, MapError, MapRule, name::Name};
use crate::design::{NoTag, Text};

/// A place in a map's file.
pub(super) trait Place<'a> {
    /// The error that `rule` is broken here, by what is called `name`.
    fn broken(&self, rule: MapRule, name: &str, found: u64) -> MapError;

    /// The error that this was expected here.
    fn expected(&self, what: &'static str) -> MapError {
        self.broken(MapRule::Expected(what), "", 0)
    }

    /// Lets `map` say where its next argument stands.
    fn mark(&self, map: &mut MapBuilder<'a>);
}

impl<'a> Place<'a> for Text<'a> {
    fn broken(&self, rule: MapRule, name: &str, found: u64) -> MapError {
        MapError { line: self.line(), byte: self.at(), ..MapError::of(rule, Name::clipped(name), found) }
    }

    fn mark(&self, map: &mut MapBuilder<'a>) {
        (map.source, map.at) = (self.source(), self.at());
    }
}

impl From<NoTag<'_>> for MapError {
    fn from(NoTag(place, what): NoTag<'_>) -> Self {
        place.expected(what)
    }
}

//! XML, as far as a hand-off needs it: tags and their attributes.

use super::text::Text;

/// One tag: its name, and the text of its attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag<'a> {
    pub(crate) name: &'a str,
    attributes: &'a str,
    /// `</A>`.
    pub(crate) ends: bool,
    /// It has no content: `<A/>`.
    pub(crate) alone: bool,
}

/// An invalid tag: its place, and what was expected there.
pub(crate) struct NoTag<'a>(pub(crate) Text<'a>, pub(crate) &'static str);

impl<'a> Tag<'a> {
    /// The value of an attribute.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let mut left = self.attributes;
        // Each turn removes one attribute.
        loop {
            let (key, rest) = left.split_once('=')?;
            let rest = rest.trim_ascii_start();
            let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            let (value, behind) = rest.strip_prefix(quote)?.split_once(quote)?;
            if key.trim_ascii() == name {
                return Some(value);
            }
            left = behind;
        }
    }

    /// The value of an attribute; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &'a str {
        self.get(name).unwrap_or_default()
    }
}

/// The next tag, skipping declarations and comments. `None` at the end of the file. Only the file's
/// length bounds a tag: a parameter with a core's whole table has tens of KiB.
pub(crate) fn next<'a>(text: &mut Text<'a>) -> Result<Option<Tag<'a>>, NoTag<'a>> {
    loop {
        if text.until(|byte| byte == b'<').is_none() {
            return Ok(None);
        }
        let start = *text;
        if text.eat("<!--") {
            while text.until(|byte| byte == b'-').is_some() && !text.eat("-->") {
                text.skip(1);
            }
            continue;
        }
        text.skip(1);
        let ends = text.eat("/");
        let inside = *text;
        // A `>` in a value ends no tag.
        let mut quote = None;
        let bytes = text.rest().iter().position(|byte| match (quote, *byte) {
            (None, b'>') => true,
            (None, b'"' | b'\'') => {
                quote = Some(*byte);
                false
            }
            (Some(open), byte) => {
                if open == byte {
                    quote = None;
                }
                false
            }
            _ => false,
        });
        let Some(bytes) = bytes else { return Err(NoTag(start, "`>` that ends this tag")) };
        text.skip(bytes + 1);
        let Ok(tag) = core::str::from_utf8(inside.rest().get(..bytes).unwrap_or_default()) else {
            return Err(NoTag(start, "UTF-8"));
        };
        if tag.starts_with(['?', '!']) {
            continue;
        }
        let (name, attributes) =
            tag.split_once(|letter: char| letter.is_ascii_whitespace()).unwrap_or((tag, ""));
        return Ok(Some(Tag {
            name: name.trim_end_matches('/'),
            attributes,
            ends,
            alone: tag.ends_with('/'),
        }));
    }
}

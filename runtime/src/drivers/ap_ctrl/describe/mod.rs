//! A kernel's map from a file (feature `describe`): three readers over the caller's bytes.
//!
//! | file | its contents | the program adds |
//! |---|---|---|
//! | [`json`] | all of a map | – |
//! | [`header`]: HLS' `x<name>_hw.h` | offsets, widths, protocol, results | directions, lengths, which 32-bit argument is a pointer |
//! | [`hwh`]: Vivado's `.hwh` | the same, and the window | the same |
//!
//! Each gives a [`MapBuilder`], which borrows names from the text. The program adds
//! what the file does not say, and [`build`](super::MapBuilder::build) compares everything. An
//! argument of 64 bits counts as a pointer, in-out and aligned to 64 bytes, until the program says
//! more; a narrower one as a scalar.
//!
//! They read each byte a fixed number of times, need no heap, and refuse what they do not know,
//! with the line.
//! They are the runtime's own: JSON for no heap is `serde-json-core`, whose errors have no place,
//! and XML has no such crate.

pub mod header;
pub mod hwh;
pub mod json;
mod place;

use super::{MapBuilder, MapError, MapRule, name::Name};
use crate::design::Text;

/// The longest file: what Vivado writes of the largest design is a few MiB.
const MAX_BYTES: usize = 32 << 20;

/// An argument of so many bits is a pointer until the program says something else.
const POINTER_BITS: u32 = 64;

/// A map from a file of any of the three kinds: JSON begins with `{`, a `.hwh` with `<`. `instance`
/// is which kernel of a `.hwh`, as [`hwh::map`] has it.
///
/// # Errors
/// As [`json::map`], [`hwh::map`] and [`header::map`].
pub fn any<'a>(source: &'a [u8], instance: &str) -> Result<MapBuilder<'a>, MapError> {
    // Vivado begins some of its files with the mark of UTF-8.
    match source.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(source).trim_ascii_start() {
        [b'{', ..] => json::map(source),
        [b'<', ..] => hwh::map(source, instance),
        _ => header::map(source),
    }
}

/// The text of a file that is not too long.
fn text(source: &[u8]) -> Result<Text<'_>, MapError> {
    if source.len() > MAX_BYTES {
        return Err(MapError::of(MapRule::TooLong, Name::NONE, source.len() as u64));
    }
    Ok(Text::new(source))
}

/// A number as C writes it: `16` or `0x10`.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

//! A kernel's map as JSON: what [`KernelMap`] prints.
//!
//! | key | what | where nothing is said |
//! |---|---|---|
//! | `name` | the kernel's name | – |
//! | `protocol` | `ap_ctrl_hs` or `ap_ctrl_chain` | – |
//! | `window` | bytes of the register window | as long as the arguments need |
//! | `interrupt` | `true`: GIE, IER and ISR exist | `false` |
//! | `pointers` | a list; each has `name`, `offset`, `bits` (32 or 64), `direction` (`in`: the kernel reads, `out`, `inout`), `align`, `min` and `max` in bytes, and `bytes`, the rule for its length | 64 bits, `inout`, 64, 1, none, none |
//! | `scalars`, `results` | lists; each has `name`, `offset`, `bits` (1 to 64) | 32 bits |
//!
//! Numbers are whole, or C's hexadecimal in quotes (`"0x10"`). Any other key, a string with an
//! escape, and text after the last `}` are refused.
//!
//! ```
//! use contigo::{Direction, design::kernel::json};
//! let map = json::map(br#"{
//!     "name": "vadd", "protocol": "ap_ctrl_hs", "interrupt": true,
//!     "pointers": [
//!         {"name": "a", "offset": "0x10", "direction": "in", "align": 4, "bytes": "4*n"},
//!         {"name": "b", "offset": "0x1c", "direction": "out", "align": 4, "bytes": "4*n"}
//!     ],
//!     "scalars": [{"name": "n", "offset": "0x28"}]
//! }"#)?.build()?;
//! assert_eq!(map.operands()[1].direction, Direction::FromDevice);
//! // What a map prints is read as the same map.
//! assert_eq!(json::map(map.to_string().as_bytes())?.build()?, map);
//!
//! let wrong = json::map(b"{\n\"name\": \"vadd\",\n\"offset\": 1}").unwrap_err();
//! assert_eq!(wrong.to_string(), "line 3, byte 18: one of a map's keys was expected");
//! # Ok::<(), contigo::design::kernel::MapError>(())
//! ```

use super::builder::{Kind, UNKNOWN};
use super::map::DIRECTIONS;
use super::{KernelMap, MapBuilder, MapError, MapRule, Protocol, number};
use crate::Text;

/// A map from JSON in `source`.
///
/// # Errors
/// [`MapError`]: what was expected, and where.
pub fn map(source: &[u8]) -> Result<MapBuilder<'_>, MapError> {
    let mut text = super::text(source)?;
    let mut map = KernelMap::named("", Protocol::Hs);
    let (mut name, mut protocol) = (None, None);
    object(&mut text, |text, key| {
        match key {
            "name" => name = Some(string(text)?),
            "protocol" => protocol = Some(protocol_of(text)?),
            "window" => map = map.window(whole(text)?),
            "interrupt" => map = map.interrupt(truth(text)?),
            "pointers" => list(text, |text| argument(text, &mut map, true))?,
            "scalars" => list(text, |text| argument(text, &mut map, false))?,
            "results" => list(text, |text| {
                argument(text, &mut map, false)?;
                map.last().into_iter().for_each(|argument| argument.kind = Kind::Result);
                Ok(())
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    text.skip_space();
    if !text.rest().is_empty() {
        return Err(text.expected("the end"));
    }
    let name = name.ok_or_else(|| text.broken(MapRule::Missing("key `name`"), "", 0))?;
    let protocol =
        protocol.ok_or_else(|| text.broken(MapRule::Missing("key `protocol`"), "", 0))?;
    Ok(map.name(name).protocol(protocol))
}

fn protocol_of(text: &mut Text<'_>) -> Result<Protocol, MapError> {
    let start = *text;
    match string(text)? {
        "ap_ctrl_hs" => Ok(Protocol::Hs),
        "ap_ctrl_chain" => Ok(Protocol::Chain),
        "ap_ctrl_none" => Err(start.broken(MapRule::NoControl, "", 0)),
        _ => Err(start.expected("`ap_ctrl_hs` or `ap_ctrl_chain`")),
    }
}

/// One pointer, scalar or result.
fn argument<'a>(
    text: &mut Text<'a>,
    map: &mut MapBuilder<'a>,
    pointer: bool,
) -> Result<(), MapError> {
    text.skip_space();
    text.mark(map);
    let start = *text;
    let (mut name, mut offset, mut bits) = (None, None, if pointer { 64 } else { 32 });
    let (mut spec, mut length) = (UNKNOWN, "");
    object(text, |text, key| {
        match (key, pointer) {
            ("name", _) => name = Some(string(text)?),
            ("offset", _) => offset = Some(whole(text)?),
            ("bits", _) => bits = whole(text)?,
            ("align", true) => spec.align_bytes = whole(text)? as usize,
            ("min", true) => spec.min_bytes = whole(text)? as usize,
            ("max", true) => spec.max_bytes = whole(text)? as usize,
            ("bytes", true) => length = string(text)?,
            ("direction", true) => {
                let start = *text;
                let word = string(text)?;
                let found = DIRECTIONS.iter().find(|(each, _)| *each == word);
                spec.direction = found
                    .map(|(_, direction)| *direction)
                    .ok_or_else(|| start.expected("`in`, `out` or `inout`"))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let name = name.ok_or_else(|| start.broken(MapRule::Missing("key `name`"), "", 0))?;
    let offset = offset.ok_or_else(|| start.broken(MapRule::Missing("key `offset`"), name, 0))?;
    *map = map.argument(
        name,
        offset,
        bits,
        if pointer { Kind::Pointer(spec, length) } else { Kind::Scalar },
    );
    Ok(())
}

/// Reads an object. `each` reads the value of a key, and returns whether it knows the key.
fn object<'a>(
    text: &mut Text<'a>,
    mut each: impl FnMut(&mut Text<'a>, &'a str) -> Result<bool, MapError>,
) -> Result<(), MapError> {
    sequence(text, ("{", "`{`"), ("}", "`,` or `}`"), |text| {
        text.skip_space();
        let start = *text;
        let key = string(text)?;
        text.skip_space();
        if !text.eat(":") {
            return Err(text.expected("`:`"));
        }
        if each(text, key)? { Ok(()) } else { Err(start.expected("one of a map's keys")) }
    })
}

fn list<'a>(
    text: &mut Text<'a>,
    each: impl FnMut(&mut Text<'a>) -> Result<(), MapError>,
) -> Result<(), MapError> {
    sequence(text, ("[", "`[`"), ("]", "`,` or `]`"), each)
}

/// The values between `open` and `close`, with commas between them. Each item reads at least a
/// byte.
fn sequence<'a>(
    text: &mut Text<'a>,
    open: (&str, &'static str),
    close: (&str, &'static str),
    mut each: impl FnMut(&mut Text<'a>) -> Result<(), MapError>,
) -> Result<(), MapError> {
    text.skip_space();
    if !text.eat(open.0) {
        return Err(text.expected(open.1));
    }
    text.skip_space();
    if text.eat(close.0) {
        return Ok(());
    }
    loop {
        each(text)?;
        text.skip_space();
        if text.eat(close.0) {
            return Ok(());
        }
        if !text.eat(",") {
            return Err(text.expected(close.1));
        }
    }
}

fn string<'a>(text: &mut Text<'a>) -> Result<&'a str, MapError> {
    text.skip_space();
    if !text.eat("\"") {
        return Err(text.expected("a string"));
    }
    let start = *text;
    let string = text
        .until(|byte| matches!(byte, b'"' | b'\\') || byte.is_ascii_control())
        .and_then(|bytes| core::str::from_utf8(bytes).ok());
    match string {
        Some(string) if text.eat("\"") => Ok(string),
        _ => Err(start.expected("a string without escapes, and its end")),
    }
}

/// A whole number, or a C number in quotes.
fn whole(text: &mut Text<'_>) -> Result<u32, MapError> {
    text.skip_space();
    let start = *text;
    let quoted = text.eat("\"");
    let digits = text
        .until(|byte| !byte.is_ascii_alphanumeric())
        .and_then(|bytes| core::str::from_utf8(bytes).ok());
    let found = digits.and_then(|digits| if quoted { number(digits) } else { digits.parse().ok() });
    match found {
        Some(found) if !quoted || text.eat("\"") => Ok(found),
        _ => Err(start.expected("a whole number of 32 bits")),
    }
}

fn truth(text: &mut Text<'_>) -> Result<bool, MapError> {
    text.skip_space();
    match (text.eat("true"), text.eat("false")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(text.expected("`true` or `false`")),
    }
}

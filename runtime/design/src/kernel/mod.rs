//! A Vitis HLS kernel as data: its registers, and what they mean. It comes from a table in Rust, or
//! from a file, by three readers over the caller's bytes:
//!
//! | file | its contents | the program adds |
//! |---|---|---|
//! | [`json`] | all of a map | – |
//! | [`header`]: HLS' `x<name>_hw.h` | offsets, widths, protocol, results | directions, lengths, which 32-bit argument is a pointer |
//! | [`hwh`]: Vivado's `.hwh` | the same, and the window | the same |
//!
//! Each gives a [`MapBuilder`], which borrows names from the text. The program adds what the file
//! lacks, and [`build`](MapBuilder::build) checks everything. An argument of 64 bits counts as a
//! pointer, in-out and aligned to 64 bytes, unless the program changes it; a narrower one counts as
//! a scalar.
//!
//! The readers read each byte a fixed number of times, need no heap, and refuse what they do not
//! know, with the line. They are the runtime's own: the JSON crate without a heap,
//! `serde-json-core`, has no positions in its errors, and XML has no such crate.

mod argument;
mod builder;
mod error;
pub mod header;
pub mod hwh;
pub mod json;
mod map;

pub use self::argument::{Pointer, Scalar};
pub use self::builder::MapBuilder;
pub use self::error::{MapError, MapRule};
pub use self::map::{KernelMap, MAX_RESULTS, MAX_SCALARS, Protocol};
use crate::{NoTag, Text};
use contigo_core::types::name;
pub use name::Name;

/// The longest file. Vivado writes a few MiB for the largest design.
const MAX_BYTES: usize = 32 << 20;

/// An argument of this width is a pointer unless the program changes it.
const POINTER_BITS: u32 = 64;

/// A map from a file of any of the three kinds: JSON begins with `{`, a `.hwh` with `<`. `instance`
/// selects the kernel of a `.hwh`, as in [`hwh::map`].
///
/// # Errors
/// As [`json::map`], [`hwh::map`] and [`header::map`].
pub fn any<'a>(source: &'a [u8], instance: &str) -> Result<MapBuilder<'a>, MapError> {
    // Vivado begins some of its files with a UTF-8 byte order mark.
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

/// A number of 32 bits, as the tools write it.
fn number(text: &str) -> Option<u32> {
    crate::number(text).and_then(|number| u32::try_from(number).ok())
}

impl<'a> Text<'a> {
    /// The error that `name` breaks `rule` here.
    fn broken(&self, rule: MapRule, name: &str, found: u64) -> MapError {
        let (line, byte) = (self.line(), self.at());
        MapError { line, byte, ..MapError::of(rule, Name::clipped(name), found) }
    }

    /// The error that `what` was expected here.
    fn expected(&self, what: &'static str) -> MapError {
        self.broken(MapRule::Expected(what), "", 0)
    }

    /// Records this place for `map`'s next argument.
    fn mark(&self, map: &mut MapBuilder<'a>) {
        (map.source, map.at) = (self.source(), self.at());
    }
}

impl From<NoTag<'_>> for MapError {
    fn from(NoTag(place, what): NoTag<'_>) -> Self {
        place.expected(what)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use crate::visits;
    use std::format;
    use std::string::String;

    /// As many of `each` as make 1 MiB.
    fn many(each: impl Fn(usize) -> String) -> String {
        let (mut text, mut number) = (String::new(), 0);
        while text.len() < 1 << 20 {
            text += &each(number);
            number += 1;
        }
        text
    }

    /// Each reader reads each byte a few times, however large the file is.
    #[test]
    fn a_large_file_is_read_a_few_times() {
        let head =
            "// control\n// 0x00 : Control signals\n//        bit 0  - ap_start (Read/Write/COH)\n";
        let comments = many(|at| {
            format!(
                "// {:#x} : Data signal of a{at}\n//        bit 31~0 - a{at}[31:0] (Read/Write)\n",
                16 + 4 * at
            )
        });
        let defines = many(|at| format!("#define XK_CONTROL_ADDR_A{at}_DATA {:#x}\n", 16 + 4 * at));
        let list = many(|at| {
            format!(
                "{}{{\"name\": \"a{at}\", \"offset\": {}}}\n",
                if at > 0 { "," } else { "" },
                16 + 4 * at
            )
        });
        let json =
            format!("{{\"name\": \"k\", \"protocol\": \"ap_ctrl_hs\", \"scalars\": [{list}]}}");
        let register = |at| {
            format!(
                "<REGISTER NAME=\"a{at}\"><PROPERTY NAME=\"DESCRIPTION\" VALUE=\"Data signal of \
                 a{at}\"/>\
                 <PROPERTY NAME=\"ADDRESS_OFFSET\" VALUE=\"{}\"/></REGISTER>\n",
                16 + 4 * at
            )
        };
        let module = format!(
            "<MODULE INSTANCE=\"k\"><REGISTERS><REGISTER \
             NAME=\"CTRL\"></REGISTER>{}</REGISTERS></MODULE>",
            many(register)
        );
        for text in [
            format!("{head}{comments}"),
            format!("{head}{defines}"),
            json,
            module,
            format!("{{{}", " ".repeat(1 << 20)),
        ] {
            let (answer, bytes) =
                visits::of(|| any(text.as_bytes(), "k").and_then(|map| map.build()));
            // More arguments than a kernel has, or a list that does not end.
            answer.unwrap_err();
            assert!(bytes <= 4 * text.len() as u64, "{bytes} of {}", text.len());
        }
    }
}

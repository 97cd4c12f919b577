//! A kernel's map from HLS' own driver header, `x<name>_hw.h`
//! (`<solution>/impl/ip/drivers/<name>_v1_0/src`).
//!
//! Its comments are a table of all registers, with widths and access. The `#define`s after it are
//! compared with the table, or used alone if the comments are gone.
//!
//! | it says | the map has |
//! |---|---|
//! | `Control signals`, `ap_continue` | the protocol |
//! | `Global Interrupt Enable` | whether GIE, IER and ISR exist |
//! | `Data signal of x`, read and write | a pointer where it has 64 bits, otherwise a scalar |
//! | `Data signal of x`, read only; `ap_return` | a result |
//!
//! An array inside the window (`Memory 'x'`) and a second interface (`control_r`) are refused.
//!
//! ```
//! use contigo::{Direction, design::kernel::{Protocol, header}};
//! let text = b"\
//! // control
//! // 0x00 : Control signals
//! //        bit 0  - ap_start (Read/Write/COH)
//! //        bit 4  - ap_continue (Read/Write/SC)
//! // 0x04 : Global Interrupt Enable Register
//! // 0x10 : Data signal of maxi
//! //        bit 31~0 - maxi[31:0] (Read/Write)
//! // 0x14 : Data signal of maxi
//! //        bit 31~0 - maxi[63:32] (Read/Write)
//! // 0x18 : reserved
//! // 0x1c : Data signal of size
//! //        bit 31~0 - size[31:0] (Read/Write)
//! #define XHBM_KERNEL_CONTROL_ADDR_AP_CTRL   0x00
//! #define XHBM_KERNEL_CONTROL_ADDR_MAXI_DATA 0x10
//! #define XHBM_KERNEL_CONTROL_BITS_MAXI_DATA 64
//! #define XHBM_KERNEL_CONTROL_ADDR_SIZE_DATA 0x1c
//! #define XHBM_KERNEL_CONTROL_BITS_SIZE_DATA 32
//! ";
//! let map = header::map(text)?;
//! // The file says neither that the kernel only reads, nor how much.
//! let map = map.direction("maxi", Direction::ToDevice).length("maxi", "64*size").build()?;
//! assert_eq!((map.name.as_str(), map.protocol), ("HBM_KERNEL", Protocol::Chain));
//! # Ok::<(), contigo::design::kernel::MapError>(())
//! ```

use super::builder::{Kind, UNKNOWN};
use super::{KernelMap, MapBuilder, MapError, MapRule, POINTER_BITS, Protocol, number};
use crate::Text;

/// The macros read so far.
struct Header<'a> {
    map: MapBuilder<'a>,
    /// The interface's name: the comment before the first register.
    interface: &'a str,
    /// The beginning of all macros, without their `X`.
    prefix: Option<&'a str>,
    /// CTRL was seen.
    control: bool,
    /// The first register of a table was seen.
    first: bool,
}

/// A map from `source`, the text of `x<name>_hw.h`.
///
/// # Errors
/// [`MapError`]: what is missing or not supported, and the line.
pub fn map(source: &[u8]) -> Result<MapBuilder<'_>, MapError> {
    let mut text = super::text(source)?;
    let map = KernelMap::named("kernel", Protocol::Hs);
    let mut header = Header { map, interface: "", prefix: None, control: false, first: false };
    let mut here = text;
    while let Some(line) = text.next_line() {
        // No line that matters has bytes that are not text.
        let line = core::str::from_utf8(line).unwrap_or("").trim_ascii();
        here.mark(&mut header.map);
        if let Some(comment) = line.strip_prefix("//") {
            header.comment(&here, comment.trim_ascii())?;
        } else if let Some(define) = line.strip_prefix("#define") {
            header.define(&here, define)?;
        }
        here = text;
    }
    if !header.control {
        let rule = if header.first || header.prefix.is_some() {
            MapRule::NoControl
        } else {
            MapRule::Missing("register of HLS")
        };
        return Err(text.broken(rule, "", 0));
    }
    header.finish();
    Ok(header.map)
}

impl<'a> Header<'a> {
    /// One line of the table of registers.
    fn comment(&mut self, here: &Text<'a>, comment: &'a str) -> Result<(), MapError> {
        if comment.starts_with("0x") {
            if comment.ends_with('~') {
                return Ok(());
            }
            let (offset, what) = comment.split_once(" : ").unwrap_or((comment, ""));
            let offset = number(offset.trim_ascii()).ok_or_else(|| here.expected("an offset"))?;
            return self.register(here, offset, what.trim_ascii());
        }
        let Some(bits) = comment.strip_prefix("bit ") else {
            if !comment.contains(' ') && !self.first {
                self.interface = comment;
            }
            return Ok(());
        };
        let Some((range, field)) = bits.split_once('-') else { return Ok(()) };
        let field = field.trim_ascii();
        if field.starts_with("ap_continue ") {
            self.map = self.map.protocol(Protocol::Chain);
        }
        let Some(argument) = self.map.last() else { return Ok(()) };
        // `bit 31~0 - maxi[63:32] (Read/Write)`
        let Some((name, rest)) = field.split_once('[') else { return Ok(()) };
        if name == argument.name {
            let high = rest.split([':', ']']).next().and_then(number);
            argument.bits = high
                .and_then(|high| high.checked_add(1))
                .ok_or_else(|| here.expected("a bit's number"))?;
            if rest.ends_with("(Read)") {
                argument.kind = Kind::Result;
            }
        }
        let _ = range;
        Ok(())
    }

    /// A register, by its comment.
    fn register(&mut self, here: &Text<'a>, offset: u32, what: &'a str) -> Result<(), MapError> {
        if offset == 0 {
            if self.first {
                return Err(here.broken(MapRule::SecondWindow, "", 0));
            }
            self.first = true;
        }
        if what == "Control signals" {
            self.control = true;
        } else if what.starts_with("Global Interrupt Enable") {
            self.map = self.map.interrupt(true);
        } else if let Some(array) = what.strip_prefix("Memory ") {
            let name = array.split('\'').nth(1).unwrap_or_default();
            return Err(here.broken(MapRule::MemoryInWindow, name, offset.into()));
        } else if let Some(name) = what.strip_prefix("Data signal of ") {
            // The upper word of the previous argument is not another one.
            if self.map.last().is_none_or(|last| last.name != name) {
                self.argument(name, offset, 0);
            }
        }
        Ok(())
    }

    fn argument(&mut self, name: &'a str, offset: u32, bits: u32) {
        let kind = if name.eq_ignore_ascii_case("ap_return") { Kind::Result } else { Kind::Scalar };
        self.map = self.map.argument(name, offset, bits, kind);
    }

    /// A macro: `XVADD_CONTROL_ADDR_N_DATA 0x28`.
    fn define(&mut self, here: &Text<'a>, define: &'a str) -> Result<(), MapError> {
        let mut words = define.split_ascii_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else { return Ok(()) };
        let (prefix, register, is_offset) =
            match (name.split_once("_ADDR_"), name.split_once("_BITS_")) {
                (Some((prefix, register)), _) => (prefix, register, true),
                (None, Some((prefix, register))) => (prefix, register, false),
                (None, None) => return Ok(()),
            };
        if *self.prefix.get_or_insert(prefix) != prefix {
            return Err(here.broken(MapRule::SecondWindow, "", 0));
        }
        let value = number(value).ok_or_else(|| here.expected("a number"))?;
        let argument =
            register.strip_suffix("_DATA").or((register == "AP_RETURN").then_some(register));
        match (register, argument, is_offset) {
            ("AP_CTRL", ..) => self.control = true,
            ("GIE", ..) => self.map = self.map.interrupt(true),
            (_, Some(name), true) if self.map.at_offset(value).is_none() => {
                self.argument(name, value, 0)
            }
            (_, Some(name), false) => self.width(here, name, value)?,
            (array, None, true) if array.ends_with("_BASE") => {
                let name = array.strip_suffix("_BASE").unwrap_or_default();
                return Err(here.broken(MapRule::MemoryInWindow, name, value.into()));
            }
            _ => {}
        }
        Ok(())
    }

    /// A width from a macro, which must match the comment's.
    fn width(&mut self, here: &Text<'a>, name: &'a str, bits: u32) -> Result<(), MapError> {
        match self.map.named_alike(name) {
            Some(argument) if argument.bits == 0 || argument.bits == bits => argument.bits = bits,
            Some(_) => return Err(here.broken(MapRule::Disagrees, name, bits.into())),
            None => return Err(here.broken(self.map.no_such(name), name, bits.into())),
        }
        Ok(())
    }

    /// The kernel's name, and which arguments are pointers.
    fn finish(&mut self) {
        if let Some(name) = self.prefix.and_then(|prefix| prefix.strip_prefix('X')) {
            let interface = name
                .len()
                .checked_sub(self.interface.len() + 1)
                .and_then(|at| name.split_at_checked(at));
            let kernel = interface.filter(|(_, end)| {
                end.strip_prefix('_').is_some_and(|end| end.eq_ignore_ascii_case(self.interface))
            });
            self.map = self.map.name(kernel.map_or(name, |(kernel, _)| kernel));
        }
        for argument in self.map.all() {
            if matches!(argument.kind, Kind::Scalar) && argument.bits == POINTER_BITS {
                argument.kind = Kind::Pointer(UNKNOWN, "");
            }
        }
    }
}

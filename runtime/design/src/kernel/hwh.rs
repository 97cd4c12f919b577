//! A kernel's map from Vivado's hardware hand-off, `<design>.hwh`: the XML file beside a bitstream
//! that PYNQ reads.
//!
//! From a whole design it reads the registers of one instance: `MODULE` with that `INSTANCE`, and
//! its `ADDRESSBLOCK`. In that block it reads each `REGISTER`, with the properties `DESCRIPTION`,
//! `ADDRESS_OFFSET` and `ACCESS` and the widths of its `FIELD`s. A register is an argument if its
//! description is `Data signal of x`, and a result if it is read-only. As with the
//! [header](super::header), 64 bits are a pointer, and the program adds directions and lengths.
//!
//! ```
//! use contigo::{Align, Direction, design::kernel::hwh};
//! let text = br#"<EDKSYSTEM><MODULES>
//!   <MODULE INSTANCE="scale_0" MODTYPE="scale" VLNV="xilinx.com:hls:scale:1.0"><ADDRESSBLOCKS>
//!     <ADDRESSBLOCK INTERFACE="s_axi_control" NAME="Reg" RANGE="65536"><REGISTERS>
//!       <REGISTER NAME="CTRL"><PROPERTY NAME="ADDRESS_OFFSET" VALUE="0"/>
//!         <FIELDS><FIELD NAME="AP_START"/></FIELDS></REGISTER>
//!       <REGISTER NAME="buf_r_1"><PROPERTY NAME="DESCRIPTION" VALUE="Data signal of buf_r"/>
//!         <PROPERTY NAME="ADDRESS_OFFSET" VALUE="16"/><PROPERTY NAME="SIZE" VALUE="32"/></REGISTER>
//!       <REGISTER NAME="buf_r_2"><PROPERTY NAME="DESCRIPTION" VALUE="Data signal of buf_r"/>
//!         <PROPERTY NAME="ADDRESS_OFFSET" VALUE="20"/><PROPERTY NAME="SIZE" VALUE="32"/></REGISTER>
//!       <REGISTER NAME="n"><PROPERTY NAME="DESCRIPTION" VALUE="Data signal of n"/>
//!         <PROPERTY NAME="ADDRESS_OFFSET" VALUE="28"/><PROPERTY NAME="SIZE" VALUE="32"/></REGISTER>
//!     </REGISTERS></ADDRESSBLOCK></ADDRESSBLOCKS></MODULE>
//! </MODULES></EDKSYSTEM>"#;
//! let map = hwh::map(text, "scale_0")?.align("buf_r", Align::LINE).length("buf_r", "2*n").build()?;
//! assert_eq!((map.window_bytes(), map.pointers()[0].bits, map.scalars()[0].offset), (65536, 64, 28));
//! assert_eq!(map.operands()[0].direction, Direction::Bidirectional); // the file does not tell
//! # Ok::<(), contigo::design::kernel::MapError>(())
//! ```

use super::builder::{Argument, Kind, UNKNOWN};
use super::{KernelMap, MapBuilder, MapError, MapRule, POINTER_BITS, Protocol, number};
use crate::{Tag, Text, next_tag as next};

/// A register while its tags are read.
#[derive(Clone, Copy, Default)]
struct Register<'a> {
    name: &'a str,
    description: &'a str,
    offset: Option<u32>,
    size: u32,
    /// The sum of its fields' widths.
    field_bits: u32,
    read_only: bool,
    /// Inside a field, which has its own properties; and its name.
    field: Option<&'a str>,
}

/// The map of the instance `instance` from `source`, the text of a `.hwh` file. An empty name
/// selects the first HLS kernel (`VLNV="xilinx.com:hls:…"`).
///
/// # Errors
/// [`MapError`]: no such instance, no registers, or what is not supported; with the line.
pub fn map<'a>(source: &'a [u8], instance: &str) -> Result<MapBuilder<'a>, MapError> {
    let mut text = super::text(source)?;
    let mut map = loop {
        let tag = next(&mut text)?.ok_or_else(|| {
            text.broken(MapRule::Missing("MODULE with this INSTANCE"), instance, 0)
        })?;
        if tag.name == "MODULE" && !tag.ends && is(&tag, instance) {
            break KernelMap::named(tag.get("INSTANCE").unwrap_or_default(), Protocol::Hs);
        }
    };
    let (mut register, mut control, mut blocks) = (None::<Register<'a>>, false, 0);
    loop {
        let here = text;
        let Some(tag) = next(&mut text)? else { return Err(text.expected("the end of MODULE")) };
        match (tag.name, tag.ends) {
            ("MODULE", true) => break,
            ("ADDRESSBLOCK", false) => {
                map = map.window(said(&here, "a number as RANGE", tag.text("RANGE"))?.unwrap_or(0))
            }
            ("REGISTERS", false) => {
                blocks += 1;
                if blocks > 1 {
                    return Err(here.broken(MapRule::SecondWindow, "", 0));
                }
            }
            ("REGISTER", false) => {
                here.mark(&mut map);
                register = Some(Register {
                    name: tag.get("NAME").unwrap_or_default(),
                    ..Register::default()
                });
            }
            ("REGISTER", true) => {
                if let Some(register) = register.take() {
                    control |= register.name == "CTRL";
                    register.is_complete(&mut map, &here)?;
                }
            }
            ("FIELD", ends) => {
                if let Some(register) = &mut register {
                    register.field = if ends || tag.alone { None } else { tag.get("NAME") };
                    if !ends && tag.get("NAME") == Some("AP_CONTINUE") {
                        map = map.protocol(Protocol::Chain);
                    }
                }
            }
            ("PROPERTY", false) => {
                if let (Some(register), Some(name), Some(value)) =
                    (&mut register, tag.get("NAME"), tag.get("VALUE"))
                {
                    register.property(&here, name, value)?;
                }
            }
            _ => {}
        }
    }
    if !control {
        return Err(text.broken(
            if blocks > 0 {
                MapRule::NoControl
            } else {
                MapRule::Missing("REGISTER of this instance")
            },
            instance,
            0,
        ));
    }
    for argument in map.all() {
        if matches!(argument.kind, Kind::Scalar) && argument.bits == POINTER_BITS {
            argument.kind = Kind::Pointer(UNKNOWN, "");
        }
    }
    Ok(map)
}

impl<'a> Register<'a> {
    fn property(&mut self, here: &Text<'a>, name: &str, value: &'a str) -> Result<(), MapError> {
        match (name, self.field) {
            ("BIT_WIDTH", Some(field)) if !field.starts_with("RESERVED") => {
                self.field_bits = self
                    .field_bits
                    .saturating_add(said(here, "a number as BIT_WIDTH", value)?.unwrap_or(0));
            }
            ("DESCRIPTION", None) => self.description = value,
            ("ADDRESS_OFFSET", None) => {
                self.offset = said(here, "a number as ADDRESS_OFFSET", value)?
            }
            ("SIZE", None) => self.size = said(here, "a number as SIZE", value)?.unwrap_or(0),
            ("ACCESS", None) => self.read_only = value == "read-only",
            _ => {}
        }
        Ok(())
    }

    /// Ends a register: an argument, the upper half of one, or neither.
    fn is_complete(&self, map: &mut MapBuilder<'a>, here: &Text<'a>) -> Result<(), MapError> {
        if self.name == "GIER" {
            *map = map.interrupt(true);
        }
        if self.name.starts_with("Memory_") {
            return Err(here.broken(
                MapRule::MemoryInWindow,
                self.name,
                self.offset.unwrap_or(0).into(),
            ));
        }
        let name = match self.description.strip_prefix("Data signal of ") {
            Some(name) => name.trim_ascii(),
            None if self.name == "ap_return" => self.name,
            None => return Ok(()),
        };
        let offset =
            self.offset.ok_or_else(|| here.broken(MapRule::Missing("ADDRESS_OFFSET"), name, 0))?;
        let bits = if self.field_bits > 0 { self.field_bits } else { self.size };
        // The words of an argument are consecutive, and all but the last are full.
        let goes_on = |last: &&mut Argument<'_>| {
            let full = last.bits > 0 && last.bits.is_multiple_of(32);
            last.name == name && full && offset.checked_sub(last.bits / 8) == Some(last.offset)
        };
        if let Some(last) = map.last().filter(goes_on) {
            last.bits = last.bits.saturating_add(bits);
            return Ok(());
        }
        let kind = if self.read_only || name == "ap_return" { Kind::Result } else { Kind::Scalar };
        *map = map.argument(name, offset, bits, kind);
        Ok(())
    }
}

/// A number that the file may leave empty.
fn said(here: &Text<'_>, what: &'static str, text: &str) -> Result<Option<u32>, MapError> {
    if text.trim_ascii().is_empty() {
        return Ok(None);
    }
    number(text).map(Some).ok_or_else(|| here.expected(what))
}

/// Whether it is the instance's module, or without a name one that HLS made.
fn is(tag: &Tag<'_>, instance: &str) -> bool {
    match instance {
        "" => tag.get("VLNV").is_some_and(|vlnv| vlnv.contains(":hls:")),
        name => tag.get("INSTANCE") == Some(name),
    }
}

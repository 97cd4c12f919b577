//! A core's registers, by their names.

use super::budget::ONE_PASS;
use super::module::Module;
use super::text::number;
use super::{Core, DesignError, DesignRule};

/// A register of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register<'a> {
    /// The interface whose window it is in: a [`Window`](super::Window)'s.
    pub interface: &'a str,
    /// Its name: `MM2S_DMACR`.
    pub name: &'a str,
    /// Its offset in the window, in bytes.
    pub offset: u32,
    /// Its width in bits.
    pub bits: u32,
    /// Whether it is read-only.
    pub read_only: bool,
    /// The HLS kernel's argument that it holds, whole or half.
    pub argument: Option<&'a str>,
}

impl<'a> Core<'_, 'a> {
    /// Its registers, in the file's order. Skips those that this configuration lacks, and those
    /// whose offset in a window is missing or empty.
    ///
    /// # Errors
    /// [`DesignRule::NotANumber`], with the line, instead of a register whose offset or size is not
    /// a number.
    pub fn registers(&self) -> impl Iterator<Item = Result<Register<'a>, DesignError>> {
        let module: Module<'a> = self.module;
        let mut tags = module.each_tag(ONE_PASS);
        let (mut interface, mut register, mut in_field) = ("", None::<Register<'a>>, false);
        let (mut enabled, mut placed) = (true, false);
        let mut wrong = None;
        core::iter::from_fn(move || {
            loop {
                let (tag, place) = tags.next()?;
                match (tag.name, tag.ends) {
                    ("ADDRESSBLOCK", false) => interface = tag.text("INTERFACE"),
                    ("REGISTER", false) => {
                        let name = tag.text("NAME");
                        register = Some(Register {
                            interface,
                            name,
                            offset: 0,
                            bits: 32,
                            read_only: false,
                            argument: None,
                        });
                        (enabled, placed, in_field, wrong) = (true, false, false, None);
                    }
                    ("REGISTER", true) => match register.take() {
                        Some(found) if enabled && placed => {
                            return Some(wrong.take().map_or(Ok(found), Err));
                        }
                        _ => {}
                    },
                    ("FIELD", ends) => in_field = !ends && !tag.alone,
                    ("PROPERTY", false) if !in_field => {
                        if let (Some(register), Some(value)) = (&mut register, tag.get("VALUE")) {
                            placed |= tag.get("NAME") == Some("ADDRESS_OFFSET")
                                && !value.trim_ascii().is_empty();
                            match tag.text("NAME") {
                                "IS_ENABLED" => enabled = !value.eq_ignore_ascii_case("false"),
                                key if register.property(key, value).is_none() => {
                                    let rule = DesignRule::NotANumber(if key == "SIZE" {
                                        "SIZE"
                                    } else {
                                        "ADDRESS_OFFSET"
                                    });
                                    wrong = Some(DesignError::at(&place, rule, register.name, 0));
                                }
                                _ => {}
                            }
                        }
                    }
                    _ => {}
                }
            }
        })
    }
}

impl<'a> Register<'a> {
    /// `None` for an invalid number.
    fn property(&mut self, key: &str, value: &'a str) -> Option<()> {
        let small = || number(value).and_then(|value| u32::try_from(value).ok());
        match key {
            // Empty: the file does not say it.
            "ADDRESS_OFFSET" | "SIZE" if value.trim_ascii().is_empty() => {}
            "ADDRESS_OFFSET" => self.offset = small()?,
            // An array in the window has more bits than a register.
            "SIZE" => self.bits = small()?.clamp(1, 64),
            "ACCESS" => self.read_only = value == "read-only",
            "DESCRIPTION" => {
                self.argument = value.strip_prefix("Data signal of ").map(str::trim_ascii)
            }
            _ => {}
        }
        Some(())
    }
}

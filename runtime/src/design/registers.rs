//! A core's registers, by their names.

use super::{Core, module::Module, text::number};

/// A register of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register<'a> {
    /// The interface whose window it is in: a [`Window`](super::Window)'s.
    pub interface: &'a str,
    /// Its name: `MM2S_DMACR`.
    pub name: &'a str,
    /// Where it is in the window, in bytes.
    pub offset: u32,
    /// How many bits it has.
    pub bits: u32,
    /// Can it only be read?
    pub read_only: bool,
    /// The argument of an HLS kernel that it holds, or half of.
    pub argument: Option<&'a str>,
}

impl<'a> Core<'_, 'a> {
    /// Its registers, in the file's order; those that this configuration leaves out are left out.
    pub fn registers(&self) -> impl Iterator<Item = Register<'a>> {
        let module: Module<'a> = self.module;
        let mut tags = module.each_tag();
        let (mut interface, mut register, mut enabled, mut in_field) = ("", None::<Register<'a>>, true, false);
        core::iter::from_fn(move || {
            loop {
                let tag = tags.next()?;
                match (tag.name, tag.ends) {
                    ("ADDRESSBLOCK", false) => interface = tag.text("INTERFACE"),
                    ("REGISTER", false) => {
                        let name = tag.text("NAME");
                        register = Some(Register { interface, name, offset: 0, bits: 32, read_only: false, argument: None });
                        (enabled, in_field) = (true, false);
                    }
                    ("REGISTER", true) => match register.take() {
                        Some(found) if enabled => return Some(found),
                        _ => {}
                    },
                    ("FIELD", ends) => in_field = !ends && !tag.alone,
                    ("PROPERTY", false) if !in_field => {
                        if let (Some(register), Some(value)) = (&mut register, tag.get("VALUE")) {
                            match tag.text("NAME") {
                                "IS_ENABLED" => enabled = !value.eq_ignore_ascii_case("false"),
                                key => register.property(key, value),
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
    fn property(&mut self, key: &str, value: &'a str) {
        let small = number(value).and_then(|value| u32::try_from(value).ok());
        match key {
            "ADDRESS_OFFSET" => self.offset = small.unwrap_or(0),
            "SIZE" => self.bits = small.unwrap_or(32).clamp(1, 64),
            "ACCESS" => self.read_only = value == "read-only",
            "DESCRIPTION" => self.argument = value.strip_prefix("Data signal of ").map(str::trim_ascii),
            _ => {}
        }
    }
}

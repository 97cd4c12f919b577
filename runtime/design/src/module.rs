//! An instance's tags.

use super::budget::{Budget, ONE_PASS};
use super::tag::{Tag, next};
use super::text::{Text, number};

/// Where an instance is in the file, and its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// From its `<MODULE` to behind its end.
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) name: &'a str,
    /// From the first to behind the last of the processor's ranges for it; both 0 without one.
    pub(super) ranges: (u32, u32),
}

/// An instance. The whole file was already read once, so an invalid tag only ends a walk here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Module<'a> {
    pub(super) text: Text<'a>,
    head: Option<Tag<'a>>,
}

/// A port of an instance: `<PORT>`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pin<'a> {
    pub(super) tag: Tag<'a>,
    inside: Text<'a>,
}

/// A bus of an instance: `<BUSINTERFACE>`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface<'a> {
    pub(super) tag: Tag<'a>,
    pub(super) place: Text<'a>,
    inside: Text<'a>,
}

impl<'a> Module<'a> {
    pub(super) fn at(text: Text<'a>, from: u32, to: u32) -> Self {
        let mut text = text.part(from, to);
        let head = next(&mut text).ok().flatten();
        Self { text, head }
    }

    pub(super) fn attribute(&self, name: &str) -> &'a str {
        self.head.map(|head| head.text(name)).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &'a str {
        self.attribute("INSTANCE")
    }

    /// Whether it is a processor's range, which stands for what is outside the block design.
    pub(super) fn is_outside(&self) -> bool {
        self.head.is_some_and(|head| head.name == "MEMRANGE")
    }

    /// Its name in the hierarchy: `/video/axi_vdma`. An interface that leads out has its name
    /// alone.
    pub(super) fn path(&self) -> &'a str {
        self.attribute(if self.is_outside() { "INSTANCE" } else { "FULLNAME" })
    }

    /// A part of `vendor:library:name:version`.
    pub(super) fn vlnv(&self, part: usize) -> &'a str {
        self.attribute("VLNV").split(':').nth(part).unwrap_or_default()
    }

    /// Its kind: the third part of its VLNV.
    pub(super) fn ip(&self) -> &'a str {
        self.vlnv(2)
    }

    /// Each tag called `name`, with the place after it.
    pub(super) fn each<'b>(
        &self,
        name: &'static str,
        budget: Option<&'b Budget>,
    ) -> impl Iterator<Item = (Tag<'a>, Text<'a>)> + use<'a, 'b> {
        tags(self.text, budget).filter(move |(tag, _)| tag.name == name && !tag.ends)
    }

    /// All of its tags, each with the place after it.
    pub(super) fn each_tag<'b>(
        &self,
        budget: Option<&'b Budget>,
    ) -> impl Iterator<Item = (Tag<'a>, Text<'a>)> + use<'a, 'b> {
        tags(self.text, budget)
    }

    pub(super) fn pins<'b>(
        &self,
        budget: Option<&'b Budget>,
    ) -> impl Iterator<Item = Pin<'a>> + use<'a, 'b> {
        self.each("PORT", budget).map(|(tag, inside)| Pin { tag, inside })
    }

    /// Its memory-mapped buses.
    pub(super) fn interfaces<'b>(
        &self,
        budget: Option<&'b Budget>,
    ) -> impl Iterator<Item = Interface<'a>> + use<'a, 'b> {
        let each = self.each("BUSINTERFACE", budget).map(|(tag, inside)| Interface {
            tag,
            place: inside,
            inside,
        });
        each.filter(|bus| bus.tag.text("VLNV").contains(":aximm:"))
    }

    /// The values of its own parameters, in one pass. Vivado writes some in both capitals and small
    /// letters: an exact match goes first.
    pub(super) fn values<const N: usize>(
        &self,
        names: [&str; N],
        budget: Option<&Budget>,
    ) -> [Option<&'a str>; N] {
        let mut found = [Found::None; N];
        for (key, value) in self.parameters(budget) {
            for (found, name) in found.iter_mut().zip(names) {
                found.look(key, value, name);
            }
        }
        found.map(Found::value)
    }

    /// The value of one parameter.
    pub(super) fn parameter(&self, name: &str, budget: Option<&Budget>) -> Option<&'a str> {
        let [value] = self.values([name], budget);
        value
    }

    /// All parameters of its own, as they stand.
    pub(super) fn parameters<'b>(
        &self,
        budget: Option<&'b Budget>,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a, 'b> {
        let own = tags(self.text, budget)
            .take_while(|(tag, _)| !matches!(tag.name, "PORTS" | "BUSINTERFACES" | "MEMORYMAP"));
        let own = own.filter(|(tag, _)| tag.name == "PARAMETER" && !tag.ends);
        own.filter_map(|(tag, _)| Some((tag.text("NAME"), tag.get("VALUE")?)))
    }
}

/// A parameter that is looked for.
#[derive(Clone, Copy)]
pub(super) enum Found<'a> {
    None,
    /// Its name differs in capitals.
    Alike(&'a str),
    Exact(&'a str),
}

impl<'a> Found<'a> {
    /// Whether this is a better match than the one found before.
    pub(super) fn look(&mut self, key: &str, value: &'a str, name: &str) {
        match self {
            Self::Exact(_) => {}
            _ if key == name => *self = Self::Exact(value),
            Self::None if key.eq_ignore_ascii_case(name) => *self = Self::Alike(value),
            _ => {}
        }
    }

    pub(super) fn value(self) -> Option<&'a str> {
        match self {
            Self::None => None,
            Self::Alike(value) | Self::Exact(value) => Some(value),
        }
    }
}

impl<'a> Pin<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.tag.text("NAME")
    }

    /// How many wires it has. `None` if its first or last one is not a number.
    pub(super) fn width(&self) -> Option<u32> {
        match (self.tag.get("LEFT"), self.tag.get("RIGHT")) {
            (None, _) | (_, None) | (Some(""), Some("")) => Some(1),
            (Some(left), Some(right)) => {
                u32::try_from(number(left)?.abs_diff(number(right)?)).ok()?.checked_add(1)
            }
        }
    }

    /// The pins that it is connected to: an instance and a name.
    pub(super) fn connections<'b>(
        &self,
        budget: Option<&'b Budget>,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a, 'b> {
        let inside = if self.tag.alone { Text::new(&[]) } else { self.inside };
        let these = tags(inside, budget).take_while(|(tag, _)| tag.name != "PORT");
        these
            .filter(|(tag, _)| tag.name == "CONNECTION" && !tag.ends)
            .map(|(tag, _)| (tag.text("INSTANCE"), tag.text("PORT")))
    }
}

impl<'a> Interface<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.tag.text("NAME")
    }

    pub(super) fn is_master(&self) -> bool {
        matches!(self.tag.text("TYPE"), "MASTER" | "INITIATOR")
    }

    /// The net that it is on.
    pub(super) fn net(&self) -> &'a str {
        self.tag.text("BUSNAME")
    }

    pub(super) fn parameter(&self, name: &str, budget: Option<&Budget>) -> Option<&'a str> {
        let inside = if self.tag.alone { Text::new(&[]) } else { self.inside };
        let mut these = tags(inside, budget).take_while(|(tag, _)| tag.name != "BUSINTERFACE");
        these
            .find(|(tag, _)| tag.name == "PARAMETER" && tag.get("NAME") == Some(name))
            .and_then(|(tag, _)| tag.get("VALUE"))
    }
}

/// The ranges of memory between two places.
pub(super) fn ranges<'a>(
    text: Text<'a>,
    (from, to): (u32, u32),
) -> impl Iterator<Item = (Tag<'a>, Text<'a>)> + use<'a> {
    tags(text.part(from, to), ONE_PASS).filter(|(tag, _)| tag.name == "MEMRANGE" && !tag.ends)
}

/// The tags from a place on, as far as the budget lasts.
fn tags<'a, 'b>(
    mut text: Text<'a>,
    budget: Option<&'b Budget>,
) -> impl Iterator<Item = (Tag<'a>, Text<'a>)> + use<'a, 'b> {
    core::iter::from_fn(move || {
        let from = text.at();
        let tag = next(&mut text).ok().flatten()?;
        let read = text.at().saturating_sub(from) as usize;
        budget.is_none_or(|budget| budget.spend(read)).then_some((tag, text))
    })
}

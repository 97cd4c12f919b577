//! An instance's tags.

use super::{
    tag::{Tag, next},
    text::{Text, number},
};

/// Where an instance is in the file: from its `<MODULE` to behind its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// An instance. The whole file was read once, so a tag that is none ends a walk here.
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
    pub(super) fn at(text: Text<'a>, place: Place) -> Self {
        let mut text = text.part(place.from, place.to);
        let head = next(&mut text).ok().flatten();
        Self { text, head }
    }

    pub(super) fn attribute(&self, name: &str) -> &'a str {
        self.head.map(|head| head.text(name)).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &'a str {
        self.attribute("INSTANCE")
    }

    /// Its name in the hierarchy: `/video/axi_vdma`.
    pub(super) fn path(&self) -> &'a str {
        self.attribute("FULLNAME")
    }

    /// A part of `vendor:library:name:version`.
    pub(super) fn vlnv(&self, part: usize) -> &'a str {
        self.attribute("VLNV").split(':').nth(part).unwrap_or_default()
    }

    /// Its kind: the third part of its VLNV.
    pub(super) fn ip(&self) -> &'a str {
        self.vlnv(2)
    }

    /// Each tag called `name`, with the place behind it.
    pub(super) fn each(&self, name: &'static str) -> impl Iterator<Item = (Tag<'a>, Text<'a>)> + use<'a> {
        tags(self.text).filter(move |(tag, _)| tag.name == name && !tag.ends)
    }

    /// All of its tags.
    pub(super) fn each_tag(&self) -> impl Iterator<Item = Tag<'a>> + use<'a> {
        tags(self.text).map(|(tag, _)| tag)
    }

    pub(super) fn pins(&self) -> impl Iterator<Item = Pin<'a>> + use<'a> {
        self.each("PORT").map(|(tag, inside)| Pin { tag, inside })
    }

    pub(super) fn pin(&self, name: &str) -> Option<Pin<'a>> {
        self.pins().find(|pin| pin.name() == name)
    }

    /// Its memory-mapped buses.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = Interface<'a>> + use<'a> {
        let each = self.each("BUSINTERFACE").map(|(tag, inside)| Interface { tag, place: inside, inside });
        each.filter(|bus| bus.tag.text("VLNV").contains(":aximm:"))
    }

    /// The value of a parameter of its own. Vivado writes some in capitals and in small letters:
    /// the same letters go first.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        let mut alike = None;
        for (key, value) in self.parameters() {
            if key == name {
                return Some(value);
            }
            if alike.is_none() && key.eq_ignore_ascii_case(name) {
                alike = Some(value);
            }
        }
        alike
    }

    /// All parameters of its own, as they stand.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let own = tags(self.text).take_while(|(tag, _)| !matches!(tag.name, "PORTS" | "BUSINTERFACES" | "MEMORYMAP"));
        let own = own.filter(|(tag, _)| tag.name == "PARAMETER" && !tag.ends);
        own.filter_map(|(tag, _)| Some((tag.text("NAME"), tag.get("VALUE")?)))
    }

    /// A parameter that is a number, as [`number`] has it.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        number(self.parameter(name)?)
    }
}

impl<'a> Pin<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.tag.text("NAME")
    }

    /// How many wires it has.
    pub(super) fn width(&self) -> u32 {
        let side = |name| self.tag.get(name).and_then(number);
        match (side("LEFT"), side("RIGHT")) {
            (Some(left), Some(right)) => u32::try_from(left.abs_diff(right)).unwrap_or(u32::MAX).saturating_add(1),
            _ => 1,
        }
    }

    /// The pins that it is connected with: an instance and a name.
    pub(super) fn connections(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let inside = if self.tag.alone { Text::new(&[]) } else { self.inside };
        let these = tags(inside).take_while(|(tag, _)| tag.name != "PORT");
        these.filter(|(tag, _)| tag.name == "CONNECTION" && !tag.ends).map(|(tag, _)| (tag.text("INSTANCE"), tag.text("PORT")))
    }
}

impl<'a> Interface<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.tag.text("NAME")
    }

    pub(super) fn is_master(&self) -> bool {
        matches!(self.tag.text("TYPE"), "MASTER" | "INITIATOR")
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        let inside = if self.tag.alone { Text::new(&[]) } else { self.inside };
        let mut these = tags(inside).take_while(|(tag, _)| tag.name != "BUSINTERFACE");
        these.find(|(tag, _)| tag.name == "PARAMETER" && tag.get("NAME") == Some(name)).and_then(|(tag, _)| tag.get("VALUE"))
    }
}

/// The tags from a place on.
fn tags<'a>(mut text: Text<'a>) -> impl Iterator<Item = (Tag<'a>, Text<'a>)> {
    core::iter::from_fn(move || next(&mut text).ok().flatten().map(|tag| (tag, text)))
}

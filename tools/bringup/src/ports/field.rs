//! One field of a register.

use super::Cores;

/// Who can make a field right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setter {
    /// `contigo board prepare`, while no program and no driver has a node of the fabric. A core
    /// that runs by itself is not seen.
    Prepare,
    /// The boot code alone, for this reason and in this way.
    Boot(&'static str),
}

/// The value that a field should have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want {
    /// The width that a design gives its port.
    Width {
        /// The parameter with the width, in bits.
        parameter: &'static str,
        /// The parameter that is 0 where the design does not have the port.
        used: &'static str,
    },
    /// This value while a bitstream runs.
    Running(u32),
    /// This value while a bitstream runs, where its design has one of them.
    Used {
        /// The value.
        value: u32,
        /// The parameters that are 1 where it has them.
        by: &'static [&'static str],
    },
    /// This value, where the tree has a core behind a port that snoops, and the design, if it is
    /// given, one of these ports.
    Coherent {
        /// The value.
        value: u32,
        /// The parameters that are 1 where the design has such a port.
        by: &'static [&'static str],
    },
    /// This value while a bitstream runs, where the tree has a core that needs it.
    Core {
        /// The value.
        value: u32,
        /// Whether the tree has one.
        has: fn(&Cores) -> bool,
    },
    /// At least the bits that the boot code left in this register for Linux, while a bitstream
    /// runs, where the tree asks for them. They are those of the design that the boot code was
    /// built for.
    Handoff {
        /// The register's physical address.
        addr: u64,
        /// Whether the tree asks for them.
        asked: fn(&Cores) -> bool,
    },
    /// Neither a design, nor the tree, nor the manager tells.
    Unknown,
}

/// A field of a register of the processor.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name: `HP0 read width`.
    pub name: &'static str,
    /// The register's physical address.
    pub addr: u64,
    /// Its bits in the register.
    pub mask: u32,
    /// Values, shifted down, and their meaning.
    pub words: &'static [(u32, &'static str)],
    /// Who can make it right.
    pub setter: Setter,
    /// The manual's table or the source that says all this.
    pub source: &'static str,
    pub(super) want: Want,
    /// The register and its bits that are set while the block is held in reset.
    pub(super) held: Option<(u64, u32)>,
    /// The register and its bits that are all set before this one may be reached, and a bitstream
    /// runs.
    pub(super) after: Option<(u64, u32)>,
}

impl Field {
    /// The field's value in a value of its register.
    #[must_use]
    pub const fn of(&self, register: u32) -> u32 {
        (register & self.mask) >> self.mask.trailing_zeros()
    }

    /// `register` with this value in the field.
    #[must_use]
    pub const fn with(&self, register: u32, value: u32) -> u32 {
        (register & !self.mask) | ((value << self.mask.trailing_zeros()) & self.mask)
    }

    /// A value in words: `32 bits`.
    #[must_use]
    pub fn say(&self, value: u32) -> String {
        let word = self.words.iter().find(|&&(known, _)| known == value).map(|&(_, word)| word);
        word.map_or_else(|| format!("{value:#x}"), str::to_owned)
    }
}

//! Types: how the bits of a value are read.

/// How the bits of a value are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) kind: Kind,
    pub(super) bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Read as unsigned.
    Bits,
    Unsigned,
    Signed,
}

use Kind::{Bits, Signed, Unsigned};

pub(super) const PREDICATE: Type = Type { kind: Bits, bits: 1 };

/// `u32`, `s8`, `b64`, `pred`.
pub(super) fn ty(name: &str) -> Option<Type> {
    if name == "pred" {
        return Some(PREDICATE);
    }
    let (kind, bits) = name.split_at_checked(1)?;
    let kind = match kind {
        "b" => Bits,
        "u" => Unsigned,
        "s" => Signed,
        _ => return None,
    };
    ["8", "16", "32", "64"].contains(&bits).then(|| Type { kind, bits: bits.parse().unwrap_or(8) })
}

impl Type {
    pub(super) const fn bytes(self) -> usize {
        self.bits as usize / 8
    }

    /// The value that `bits` are.
    pub(super) const fn value(self, bits: u64) -> i128 {
        self.cut(bits as i128)
    }

    /// The rest of a number in so many bits.
    pub(super) const fn cut(self, number: i128) -> i128 {
        let unused = 128 - self.bits;
        if matches!(self.kind, Signed) {
            number << unused >> unused
        } else {
            (number << unused).cast_unsigned().wrapping_shr(unused).cast_signed()
        }
    }
}

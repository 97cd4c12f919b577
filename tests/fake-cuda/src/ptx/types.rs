//! Types: how the bits of a value are read, and which instruction takes which.

/// How the bits of a value are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) kind: Kind,
    pub(super) bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Read as unsigned; arithmetic does not take it.
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
    /// Whether the instruction takes it, as ptxas 12.9 does.
    pub(super) fn suits(self, instruction: &str) -> bool {
        const ALL: &[Kind] = &[Bits, Unsigned, Signed];
        const NUMBERS: &[Kind] = &[Unsigned, Signed];
        let (kinds, widths): (&[Kind], &[u32]) = match instruction {
            "mov" => (ALL, &[1, 16, 32, 64]),
            "add" | "sub" | "mul.lo" | "mad.lo" | "div" | "rem" | "min" | "max" => (NUMBERS, &[16, 32, 64]),
            "mul.wide" | "mad.wide" => (NUMBERS, &[16, 32]),
            "and" | "or" | "xor" | "not" => (&[Bits], &[1, 16, 32, 64]),
            "shl" => (&[Bits], &[16, 32, 64]),
            "shr" | "setp" | "selp" => (ALL, &[16, 32, 64]),
            "bfe" => (&[Unsigned], &[32, 64]),
            "cvt" => (NUMBERS, &[8, 16, 32, 64]),
            "cvta.to.global" => (&[Unsigned], &[64]),
            "ld" | "st" => (ALL, &[8, 16, 32, 64]),
            _ => return false,
        };
        kinds.contains(&self.kind) && widths.contains(&self.bits)
    }

    pub(super) const fn bytes(self) -> usize {
        self.bits as usize / 8
    }

    /// The value that `bits` are.
    pub(super) const fn value(self, bits: u64) -> i128 {
        self.cut(bits as i128)
    }

    /// What is left of a number in so many bits.
    pub(super) const fn cut(self, number: i128) -> i128 {
        let unused = 128 - self.bits;
        if matches!(self.kind, Signed) {
            number << unused >> unused
        } else {
            (number << unused).cast_unsigned().wrapping_shr(unused).cast_signed()
        }
    }
}

//! A kernel's arguments: where their registers are, and how many bytes an operand must have.

use super::name::{Name, same};
use contigo_core::hw::mmio::{ReadWrite, Register};
use core::fmt;

/// One pointer: an operand of the kernel's jobs. Its direction, alignment and limits are the
/// [`OperandSpec`](contigo_core::OperandSpec) of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Pointer {
    /// Its name.
    pub name: Name,
    /// Where its low word is, in bytes from the window's first.
    pub offset: u32,
    /// The bits of a bus address that it holds: 32 or 64.
    pub bits: u32,
    pub(super) length: Length,
}

/// One number: a scalar that a job is given, or a result that its end leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Scalar {
    /// Its name.
    pub name: Name,
    /// Where its low word is, in bytes from the window's first.
    pub offset: u32,
    /// How many bits it has: 1 to 64.
    pub bits: u32,
}

impl Pointer {
    pub(super) const FILLER: Self =
        Self { name: Name::NONE, offset: 0, bits: 64, length: Length::NONE };
}

impl Scalar {
    pub(super) const FILLER: Self = Self { name: Name::NONE, offset: 0, bits: 32 };

    /// The number of its argument words and registers: 1, or 2 with the low one first.
    #[must_use]
    pub const fn words(&self) -> usize {
        if self.bits > 32 { 2 } else { 1 }
    }

    /// Its registers: one, or two where it has more than 32 bits, the low one first.
    pub fn registers(&self) -> impl Iterator<Item = Register<ReadWrite>> {
        let first = self.offset as usize;
        (0..self.words()).map(move |word| Register::at(first + 4 * word))
    }
}

/// The most scalars that one rule multiplies: rows, columns and channels.
const MAX_FACTORS: usize = 3;
/// No scalar.
const NONE: u8 = u8::MAX;

/// A rule for an operand's length in bytes: a number times at most three scalars, and perhaps a
/// number more, as `4*n`, `m*k`, `4096` or `4*n+120`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(super) struct Length {
    bytes: u64,
    more_bytes: u64,
    // INVARIANT: indices into the map's scalars, then `NONE`s.
    scalars: [u8; MAX_FACTORS],
}

/// Why a rule is invalid.
pub(super) enum BadRule<'a> {
    /// It is not `4*n` or `4*n+120`.
    Form,
    /// No scalar has this name.
    NoSuch(&'a str),
}

impl Length {
    /// No rule: only the program's claim.
    pub(super) const NONE: Self = Self { bytes: 0, more_bytes: 0, scalars: [NONE; MAX_FACTORS] };

    /// `rule` for a kernel that has `scalars`; an empty one is no rule.
    pub(super) const fn parse<'a>(rule: &'a str, scalars: &[Scalar]) -> Result<Self, BadRule<'a>> {
        if rule.is_empty() {
            return Ok(Self::NONE);
        }
        let mut length = Self { bytes: 1, more_bytes: 0, scalars: [NONE; MAX_FACTORS] };
        let (product, more) = until(rule, b'+');
        if let Some(more) = more {
            match number(more.trim_ascii()) {
                Some(more_bytes) => length.more_bytes = more_bytes,
                None => return Err(BadRule::Form),
            }
        }
        let mut places: &mut [u8] = &mut length.scalars;
        let mut left = Some(product);
        while let Some(text) = left {
            let (factor, rest) = until(text, b'*');
            left = rest;
            match (number(factor), factor.as_bytes()) {
                (Some(number), _) => match length.bytes.checked_mul(number) {
                    Some(bytes) => length.bytes = bytes,
                    None => return Err(BadRule::Form),
                },
                (None, [first, ..]) if first.is_ascii_alphabetic() || *first == b'_' => {
                    match (index_of(factor, scalars), places) {
                        (Some(index), [place, more @ ..]) => {
                            *place = index;
                            places = more;
                        }
                        (Some(_), []) => return Err(BadRule::Form),
                        (None, _) => return Err(BadRule::NoSuch(factor)),
                    }
                }
                _ => return Err(BadRule::Form),
            }
        }
        Ok(length)
    }

    /// The bytes for these values of the scalars; `u64::MAX` if they exceed 64 bits.
    pub(super) fn bytes(&self, scalars: &[u64]) -> u64 {
        let factors = self.scalars.iter().map_while(|index| scalars.get(usize::from(*index)));
        let product = factors.fold(self.bytes, |bytes, factor| bytes.saturating_mul(*factor));
        product.saturating_add(self.more_bytes)
    }

    /// Whether there is a rule.
    #[must_use]
    pub(super) const fn is_known(&self) -> bool {
        self.bytes != 0
    }

    /// As text, with the scalars' names.
    pub(super) fn write(&self, scalars: &[Scalar], to: &mut impl fmt::Write) -> fmt::Result {
        write!(to, "{}", self.bytes)?;
        let names = self.scalars.iter().map_while(|index| scalars.get(usize::from(*index)));
        names.map(|scalar| scalar.name).try_for_each(|name| write!(to, "*{name}"))?;
        if self.more_bytes > 0 { write!(to, "+{}", self.more_bytes) } else { Ok(()) }
    }
}

/// The text before the first `sign`, and the text after it.
const fn until(text: &str, sign: u8) -> (&str, Option<&str>) {
    let mut at = 0;
    let mut rest = text.as_bytes();
    while let [byte, more @ ..] = rest {
        if *byte == sign {
            return match (text.split_at_checked(at), text.split_at_checked(at + 1)) {
                (Some((before, _)), Some((_, behind))) => (before.trim_ascii(), Some(behind)),
                _ => ("", None),
            };
        }
        at += 1;
        rest = more;
    }
    (text.trim_ascii(), None)
}

/// A decimal number other than 0.
const fn number(text: &str) -> Option<u64> {
    // A sign would be read, too.
    match (text.as_bytes(), u64::from_str_radix(text, 10)) {
        ([b'+', ..], _) | (_, Ok(0) | Err(_)) => None,
        (_, Ok(number)) => Some(number),
    }
}

/// The index of the scalar with this name.
const fn index_of(name: &str, scalars: &[Scalar]) -> Option<u8> {
    let (mut index, mut left) = (0, scalars);
    while let [scalar, more @ ..] = left {
        if same(scalar.name.as_str(), name) {
            return Some(index);
        }
        index += 1;
        left = more;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_is_no_number_is_the_largest_one() {
        let n = Scalar { name: Name::clipped("n"), ..Scalar::FILLER };
        let length = Length::parse("4*n*n*n", &[n]).unwrap_or(Length::NONE);
        assert_eq!(length.bytes(&[3]), 108);
        assert_eq!(length.bytes(&[1 << 22]), u64::MAX, "2^68, whose low 64 bits are 0");
        assert_eq!(length.bytes(&[0]), 0);
        let length = Length::parse("2*n+30", &[n]).unwrap_or(Length::NONE);
        assert_eq!([length.bytes(&[0]), length.bytes(&[7])], [30, 44]);
        assert_eq!(length.bytes(&[u64::MAX]), u64::MAX);
        for wrong in ["2*n+", "2*n+n", "+30", "2*n+30+1", "30+n", "n+0", "2*n++5", "+2*n"] {
            assert!(Length::parse(wrong, &[n]).is_err(), "{wrong}");
        }
    }
}

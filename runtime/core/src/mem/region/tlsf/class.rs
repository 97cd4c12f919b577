//! The sizes of gaps in classes, each with a list: the two levels of the paper.

/// Bits of a size, below its highest one, that choose the second level: 5 of them make one 32-bit
/// word of flags per level.
const SL_BITS: u32 = 5;
/// Lists per power of two: the good-fit bound.
pub(super) const SL_COUNT: u32 = 1 << SL_BITS;
/// Powers of two: sizes below `2 * SL_COUNT` share the first, each size with a list of its own;
/// `u32::MAX` falls in the last.
pub(super) const FL_COUNT: usize = (u32::BITS - SL_BITS) as usize + 1;
/// All lists.
pub(super) const LISTS: usize = FL_COUNT * SL_COUNT as usize;

/// A list of gaps by its number, `fl * SL_COUNT + sl`: it grows with the size, and is 0 for no gap
/// at all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Class(pub(super) u32);

impl Class {
    /// No gap: the list of the size 0, which stays empty.
    pub(super) const NONE: Self = Self(0);

    pub(super) const fn new(fl: u32, sl: u32) -> Self {
        Self(fl * SL_COUNT + sl)
    }

    /// The list that a gap of `granules` is kept in. The highest bit of the size stays in the sum
    /// and counts as one more level.
    pub(super) const fn of(granules: u32) -> Self {
        // `ilog2` gives the same, but costs a tenth of an allocation more.
        let shift = u32::BITS - 1 - SL_BITS - (granules | SL_COUNT).leading_zeros();
        Self::new(shift, granules >> shift)
    }

    /// The first list of which every gap is at least `granules`, which is not 0.
    pub(super) const fn holding(granules: u32) -> Self {
        Self(Self::of(granules - 1).0 + 1)
    }

    pub(super) const fn fl(self) -> u32 {
        self.0 / SL_COUNT
    }

    pub(super) const fn sl(self) -> u32 {
        self.0 % SL_COUNT
    }
}

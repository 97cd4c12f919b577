//! Parts of texts that depend on the numbers.

use core::fmt;

/// The limits of a number: `2`, `between 1 and 8`, `a multiple of 4 between 4 and 64`.
pub(super) struct Limits {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) multiple_of: u64,
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { min, max, multiple_of } = *self;
        match multiple_of {
            0 | 1 if min == max => write!(f, "{min}"),
            0 | 1 => write!(f, "between {min} and {max}"),
            _ => write!(f, "a multiple of {multiple_of} between {min} and {max}"),
        }
    }
}

/// Names, one after the other; `none` where there are none.
pub(super) struct List(pub(super) &'static [&'static str]);

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, others)) = self.0.split_first() else { return f.write_str("none") };
        f.write_str(first)?;
        others.iter().try_for_each(|name| write!(f, ", {name}"))
    }
}

//! A kernel's jobs are refused here, before a cache line or a register is touched: the count of
//! words, a scalar's width, an operand's length.

use super::super::{KernelMap, map::MAX_SCALARS};
use crate::{
    mem::DevSlice,
    types::{Error, Result},
};

/// The name of a scalar in an error.
const SCALARS: [&str; MAX_SCALARS] = [
    "scalar 0",
    "scalar 1",
    "scalar 2",
    "scalar 3",
    "scalar 4",
    "scalar 5",
    "scalar 6",
    "scalar 7",
    "scalar 8",
    "scalar 9",
    "scalar 10",
    "scalar 11",
    "scalar 12",
    "scalar 13",
    "scalar 14",
    "scalar 15",
];

/// Compares a job with the map's rules.
pub(super) fn check(map: &KernelMap, operands: &[DevSlice], args: &[u32]) -> Result<()> {
    let Some(values) = map.values(args) else {
        let (value, words) = (args.len() as u64, map.words() as u64);
        return Err(Error::Argument { name: "the count of argument words", value, min: words, max: words, multiple_of: 1 });
    };
    for ((scalar, value), name) in map.scalars().iter().zip(values).zip(SCALARS) {
        let max = u64::MAX.checked_shr(u64::BITS - scalar.bits()).unwrap_or(u64::MAX);
        if value > max {
            return Err(Error::Argument { name, value, min: 0, max, multiple_of: 1 });
        }
    }
    for (index, slice) in operands.iter().enumerate() {
        let need_bytes = map.need_bytes(index, &values);
        if (slice.len_bytes as u64) < need_bytes {
            return Err(Error::BufferSize { index, need_bytes, have_bytes: slice.len_bytes });
        }
    }
    Ok(())
}

//! Which refusal a job must get, if any: the rules of `Queue::submit` and of gemm8's contract, in
//! plain numbers.

use crate::{machine::Part, reference::operand_bytes};
use contigo::{Direction, Error};
use contigo_gemm8::{Gemm, Output};
use std::ops::Range;

/// A job as it is started.
pub(crate) struct Attempted<'a> {
    /// What the queue says, whatever the job is.
    pub(crate) queue: Option<Error>,
    pub(crate) coherent: bool,
    pub(crate) line_bytes: usize,
    pub(crate) base: u64,
    pub(crate) parts: &'a [Part; 4],
    pub(crate) gemm: Gemm,
}

/// The first thing that is wrong, in the order in which a job is checked.
pub(crate) fn refusal(job: &Attempted<'_>) -> Option<Error> {
    let operand = |(index, part): (usize, &Part)| {
        let expected = if index == 3 { Direction::FromDevice } else { Direction::ToDevice };
        // The driver's error for an operand comes after the port's.
        let addr = job.base + part.absolute().start as u64;
        let misaligned = || {
            (!addr.is_multiple_of(64)).then_some(Error::BufferAlign {
                index,
                addr,
                align_bytes: 64,
            })
        };
        operand(index, part, expected, job.coherent, job.line_bytes).or_else(misaligned)
    };
    let arguments = || arguments(&job.gemm);
    let sizes = || {
        job.parts
            .iter()
            .zip(operand_bytes(&job.gemm))
            .enumerate()
            .find_map(|(index, (part, need))| size(index, part, need))
    };
    job.queue
        .or_else(|| job.parts.iter().enumerate().find_map(operand))
        .or_else(arguments)
        .or_else(sizes)
}

/// One operand against the port.
pub(crate) fn operand(
    index: usize,
    part: &Part,
    expected: Direction,
    coherent: bool,
    line_bytes: usize,
) -> Option<Error> {
    if part.direction != expected {
        return Some(Error::WrongDirection { index, expected });
    }
    let len_bytes = part.of.len();
    let Range { start, end } = part.range;
    if start > end || end > len_bytes {
        return Some(Error::OutOfRange { start, end, len_bytes });
    }
    if start == end {
        return Some(Error::BufferSize { index, need_bytes: 1, have_bytes: 0 });
    }
    let writes = expected == Direction::FromDevice;
    (writes && !coherent).then(|| shared_line(&part.absolute(), &part.extent, line_bytes)).flatten()
}

/// Does rounding these bytes out to lines leave the buffer's own?
fn shared_line(bytes: &Range<usize>, extent: &Range<usize>, line_bytes: usize) -> Option<Error> {
    let (first, last) =
        (bytes.start / line_bytes * line_bytes, bytes.end.div_ceil(line_bytes) * line_bytes);
    (first < extent.start || last > extent.end).then_some(Error::SharedLine {
        start: bytes.start,
        end: bytes.end,
        line_bytes,
    })
}

/// gemm8's own limits.
fn arguments(gemm: &Gemm) -> Option<Error> {
    let dimension = |name, value: u32, min: u32| {
        let fits = min <= value && value <= 4096 && value.is_multiple_of(min);
        let [value, min] = [u64::from(value), u64::from(min)];
        (!fits).then_some(Error::Argument { name, value, min, max: 4096, multiple_of: min })
    };
    let shift = match gemm.output {
        Output::Int8 { shift, .. } if shift > 31 => Some(Error::Argument {
            name: "shift",
            value: u64::from(shift),
            min: 0,
            max: 31,
            multiple_of: 1,
        }),
        _ => None,
    };
    dimension("m", gemm.m, 1)
        .or_else(|| dimension("n", gemm.n, 16))
        .or_else(|| dimension("k", gemm.k, 16))
        .or(shift)
}

/// Large enough.
fn size(index: usize, part: &Part, need_bytes: usize) -> Option<Error> {
    let have_bytes = part.range.len();
    (have_bytes < need_bytes).then_some(Error::BufferSize {
        index,
        need_bytes: need_bytes as u64,
        have_bytes,
    })
}

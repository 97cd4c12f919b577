//! gemm8 in plain integers, written from `examples/gemm8/README.md` and from nothing in the
//! runtime; and which refusal a job must get, if any.

use crate::machine::Part;
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

/// How many bytes A, B, bias and C have.
pub(crate) fn operand_bytes(gemm: &Gemm) -> [usize; 4] {
    let [m, n, k] = [gemm.m, gemm.n, gemm.k].map(|value| value as usize);
    let element_bytes = if matches!(gemm.output, Output::Int32 { .. }) { 4 } else { 1 };
    [m * k, k * n, n * 4, m * n * element_bytes]
}

/// C's bytes.
pub(crate) fn gemm8(gemm: &Gemm, a: &[u8], b: &[u8], bias: &[u8]) -> Vec<u8> {
    let [m, n, k] = [gemm.m, gemm.n, gemm.k].map(|value| value as usize);
    let mut c = Vec::new();
    for row in 0..m {
        for column in 0..n {
            let [w, x, y, z] = [0, 1, 2, 3].map(|byte| bias[4 * column + byte]);
            let mut sum = i64::from(i32::from_le_bytes([w, x, y, z]));
            for inner in 0..k {
                sum += i64::from(a[row * k + inner].cast_signed())
                    * i64::from(b[inner * n + column].cast_signed());
            }
            finish(sum, gemm.output, &mut c);
        }
    }
    c
}

/// Steps 1 to 3 of the contract's arithmetic: wrap to 32 bits, ReLU, then shift with rounding half
/// up and saturate.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the contract's sum wraps to 32 bits; the rest is in range by then"
)]
fn finish(sum: i64, output: Output, c: &mut Vec<u8>) {
    let wrapped = i64::from(sum as i32);
    let (relu, shift) = match output {
        Output::Int8 { relu, shift } => (relu, Some(shift)),
        Output::Int32 { relu } => (relu, None),
    };
    let positive = if relu { wrapped.max(0) } else { wrapped };
    match shift {
        None => c.extend((positive as i32).to_le_bytes()),
        Some(shift) => {
            let divisor = 1_i64 << shift;
            // floor((2 sum + divisor) / (2 divisor)): half up, also for a divisor of 1.
            let rounded = (2 * positive + divisor).div_euclid(2 * divisor);
            c.push((rounded.clamp(-128, 127) as i8).cast_unsigned());
        }
    }
}

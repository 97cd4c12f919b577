//! The arithmetic of one sum, in one place: the simulated engine and a program's own reference
//! agree by using it.

use crate::Output;

/// The result of one 32-bit sum: ReLU, then shift with rounding half up and saturation, or nothing
/// more (`examples/gemm8/README.md`, "Arithmetic"). It is an int8's value where the output is int8.
///
/// ```
/// use contigo_gemm8::{Output, requantize};
/// assert_eq!(requantize(5, Output::Int8 { relu: false, shift: 1 }), 3); // 2.5, up
/// assert_eq!(requantize(-5, Output::Int8 { relu: false, shift: 1 }), -2); // -2.5, up
/// assert_eq!(requantize(i32::MAX, Output::Int8 { relu: false, shift: 3 }), 127);
/// assert_eq!(requantize(-5, Output::Int32 { relu: true }), 0);
/// ```
#[must_use]
pub fn requantize(sum: i32, output: Output) -> i32 {
    match output {
        Output::Int32 { relu } => rectify(sum, relu),
        Output::Int8 { relu, shift } => {
            // 33 bits hold the sum and the rounding constant; the register has five bits of shift.
            let shift = shift & 31;
            let half = (1_i64 << shift) >> 1;
            let shifted = (i64::from(rectify(sum, relu)) + half) >> shift;
            i32::from(i8::try_from(shifted).unwrap_or(if shifted < 0 { i8::MIN } else { i8::MAX }))
        }
    }
}

const fn rectify(sum: i32, relu: bool) -> i32 {
    if relu && sum < 0 { 0 } else { sum }
}

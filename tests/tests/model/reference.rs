//! gemm8 in plain integers, written from `examples/gemm8/README.md` and from nothing in the
//! runtime: what every job is compared with.

use contigo_gemm8::{Gemm, Output};

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

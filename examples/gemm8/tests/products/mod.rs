//! Random products on any queue of a gemm8, every element compared. The tests of CUDA's kernels in
//! `tests/tests/cuda` and `tests/tests/gpu` have this file too.

use contigo::{Driver, Pool, Queue};
use contigo_gemm8::{Gemm, Output, requantize};
use core::time::Duration;
use fastrand::Rng;

const LIMIT: Duration = Duration::from_secs(20);
/// The most bytes of an operand here.
pub(crate) const OPERAND_BYTES: usize = 16_384;

/// How many bytes each operand has.
pub(crate) fn lens(gemm: &Gemm) -> [usize; 4] {
    gemm.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap())
}

/// C, as the contract says.
fn expected(gemm: &Gemm, a: &[i8], b: &[i8], bias: &[i32]) -> Vec<u8> {
    let [m, n, k] = [gemm.m, gemm.n, gemm.k].map(|size| size as usize);
    let mut bytes = Vec::new();
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let products =
            (0..k).map(|inner| i32::from(a[row * k + inner]) * i32::from(b[inner * n + column]));
        let sum = products.fold(bias[column], i32::wrapping_add);
        let value = requantize(sum, gemm.output).to_le_bytes();
        bytes.extend(value.iter().take(usize::try_from(gemm.output.element_bytes()).unwrap()));
    }
    bytes
}

/// Runs `jobs` products on slots of [`OPERAND_BYTES`]. Nothing is written behind C. Returns the
/// bytes of all operands.
pub(crate) fn products(queue: &mut Queue<impl Driver>, pool: &Pool, jobs: u32, seed: u64) -> u64 {
    let (mut rng, mut operand_bytes) = (Rng::with_seed(seed), 0);
    for job in 0..jobs {
        let output = match job % 3 {
            0 => Output::Int32 { relu: rng.bool() },
            _ => Output::Int8 { relu: rng.bool(), shift: rng.u32(0..=31) },
        };
        let gemm =
            Gemm { m: rng.u32(1..=16), n: 16 * rng.u32(1..=8), k: 16 * rng.u32(1..=8), output };
        let [a_len, b_len, bias_len, c_len] = lens(&gemm);
        let a: Vec<i8> = (0..a_len).map(|_| rng.i8(..)).collect();
        let b: Vec<i8> = (0..b_len).map(|_| rng.i8(..)).collect();
        // Every fourth time near the end, where sums wrap.
        let least = if job % 4 == 0 { i32::MAX - 9_999 } else { i32::MIN };
        let bias: Vec<i32> = (0..bias_len / 4).map(|_| rng.i32(least..)).collect();
        let [mut left, mut right, mut add, mut c] = [(); 4].map(|()| pool.take().unwrap());
        left.view_at_mut(..a_len).unwrap().copy_from_slice(&a);
        right.view_at_mut(..b_len).unwrap().copy_from_slice(&b);
        add.view_at_mut(..bias_len).unwrap().copy_from_slice(&bias);
        c.view_mut::<u8>().unwrap().fill(0xA5);
        let operands = [
            left.to_device(..a_len),
            right.to_device(..b_len),
            add.to_device(..bias_len),
            c.from_device(..c_len),
        ];
        let [.., c] = queue.run(operands, &gemm.words(), LIMIT).unwrap().buffers;
        let (found, behind) = c.view::<u8>().unwrap().split_at(c_len);
        assert_eq!(found, expected(&gemm, &a, &b, &bias), "{gemm:?}");
        assert!(behind.iter().all(|byte| *byte == 0xA5), "{gemm:?}: bytes behind C");
        operand_bytes += gemm.operand_bytes().iter().sum::<u64>();
    }
    operand_bytes
}

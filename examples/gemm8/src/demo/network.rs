//! The network: its shape, its two jobs for gemm8, and its weights as text.

use super::DemoError;
use crate::{Gemm, Output};
use std::str::FromStr;

/// Written by `data/train_digits.py`. Its first lines and `data/README.md` say what it holds and
/// how well it does.
const TEXT: &str = include_str!("../../data/digits-mlp.txt");

/// Pixels.
pub(crate) const INPUTS: usize = super::digits::PIXELS;
/// Values between the layers.
pub(crate) const HIDDEN: usize = 32;
/// Scores: ten digits, and six that only fill the engine's tile of 16.
pub const SCORES: usize = 16;
/// The scores that count.
pub(crate) const CLASSES: usize = 10;

/// One layer as the engine computes it: `k` inputs, `n` outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    weights: &'static str,
    bias: &'static str,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

/// 64 pixels to 32 hidden values.
pub(crate) const LAYER1: Layer =
    Layer { weights: "layer1.weights", bias: "layer1.bias", k: INPUTS, n: HIDDEN };
/// 32 hidden values to 16 scores.
pub(crate) const LAYER2: Layer =
    Layer { weights: "layer2.weights", bias: "layer2.bias", k: HIDDEN, n: SCORES };

impl Layer {
    /// Bytes of its weights: int8.
    pub(crate) const fn weight_bytes(self) -> usize {
        self.k * self.n
    }

    /// Bytes of its bias: int32.
    pub(crate) const fn bias_bytes(self) -> usize {
        self.n * size_of::<i32>()
    }

    /// Decodes the weights into `to`, which may be device memory: `k` rows of `n`.
    pub(crate) fn decode_weights(self, to: &mut [i8]) -> Result<(), DemoError> {
        record(self.weights, to)
    }

    /// Decodes the bias into `to`, which may be device memory.
    pub(crate) fn decode_bias(self, to: &mut [i32]) -> Result<(), DemoError> {
        record(self.bias, to)
    }

    /// The job: one row in, one row out.
    fn gemm(self, output: Output) -> Result<Gemm, DemoError> {
        let dimension = |value: usize| u32::try_from(value).map_err(|_| nonsense(0));
        Ok(Gemm { m: 1, n: dimension(self.n)?, k: dimension(self.k)?, output })
    }
}

/// By how many bits layer 1 shifts its sums.
pub(crate) fn shift() -> Result<u32, DemoError> {
    let mut shift = [0];
    record("layer1.shift", &mut shift)?;
    let [shift] = shift;
    Ok(shift)
}

/// The two jobs of one image: int8 with ReLU, then raw scores.
pub(crate) fn jobs() -> Result<[Gemm; 2], DemoError> {
    let hidden = Output::Int8 { relu: true, shift: shift()? };
    Ok([LAYER1.gemm(hidden)?, LAYER2.gemm(Output::Int32 { relu: false })?])
}

/// The best of the ten scores; the first of them if there is a tie.
#[must_use]
pub fn answer(scores: &[i32; SCORES]) -> u8 {
    let best = (0_u8..)
        .zip(scores.iter().take(CLASSES))
        .reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map_or(0, |(digit, _)| digit)
}

/// Reads the record `name` into `to`, which it must fill exactly. Allocates nothing.
fn record<T: FromStr>(name: &str, to: &mut [T]) -> Result<(), DemoError> {
    let mut lines = (1..).zip(TEXT.lines()).filter(|(_, text)| !text.starts_with('#'));
    let header = lines.by_ref().find(|(_, text)| text.split(' ').next() == Some(name));
    let (mut line, shape) = header.ok_or(nonsense(0))?;
    let count = shape
        .split(' ')
        .skip(1)
        .try_fold(1_usize, |count, size| size.parse::<usize>().ok()?.checked_mul(count));
    if count != Some(to.len()) {
        return Err(nonsense(line));
    }
    let mut to = to.iter_mut();
    while !to.as_slice().is_empty() {
        let (number, text) = lines.next().ok_or(nonsense(line))?;
        line = number;
        for field in text.split_ascii_whitespace() {
            *to.next().ok_or(nonsense(line))? = field.parse().map_err(|_| nonsense(line))?;
        }
    }
    Ok(())
}

const fn nonsense(line: usize) -> DemoError {
    DemoError::Data { file: "digits-mlp.txt", line }
}

/// How many of the held-out images the training script counted right, as the file's header says.
#[cfg(test)]
pub(crate) fn promised_correct() -> Option<usize> {
    let line = TEXT.lines().find_map(|line| line.strip_prefix("# held-out-correct: "))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_shape_or_name_is_refused() {
        assert!(LAYER1.decode_weights(&mut [0; 7]).is_err());
        assert!(record::<i8>("layer3.weights", &mut [0; 4]).is_err());
        assert!(
            record::<u8>("layer1.weights", &mut [0; INPUTS * HIDDEN]).is_err(),
            "there are negative weights"
        );
    }

    #[test]
    fn first_of_equal_scores_wins_among_ten() {
        let mut scores = [0; SCORES];
        assert_eq!(answer(&scores), 0);
        (scores[3], scores[7], scores[12]) = (5, 5, 9);
        assert_eq!(answer(&scores), 3);
        scores = [i32::MIN; SCORES];
        assert_eq!(answer(&scores), 0);
    }
}

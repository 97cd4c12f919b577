//! The expected scores, bit for bit: the same arithmetic in plain integers on the CPU.
//!
//! It knows neither the driver nor the engine's model, and shares no code with them: `README.md`
//! and `data/README.md` state the arithmetic, and this is a second reading of it.

use super::{
    DemoError,
    network::{self, HIDDEN, INPUTS, LAYER1, LAYER2, SCORES},
};
use std::{vec, vec::Vec};

/// The network's numbers in ordinary memory, wide enough that nothing overflows.
#[derive(Debug)]
pub struct Reference {
    weights1: Vec<i8>,
    bias1: Vec<i32>,
    shift: u32,
    weights2: Vec<i8>,
    bias2: Vec<i32>,
}

impl Reference {
    /// Reads them.
    ///
    /// # Errors
    /// [`DemoError::Data`] where the file is not what it should be.
    pub fn new() -> Result<Self, DemoError> {
        let (mut weights1, mut bias1) = (vec![0; INPUTS * HIDDEN], vec![0; HIDDEN]);
        LAYER1.decode_weights(&mut weights1)?;
        LAYER1.decode_bias(&mut bias1)?;
        let (mut weights2, mut bias2) = (vec![0; HIDDEN * SCORES], vec![0; SCORES]);
        LAYER2.decode_weights(&mut weights2)?;
        LAYER2.decode_bias(&mut bias2)?;
        Ok(Self { weights1, bias1, shift: network::shift()?, weights2, bias2 })
    }

    /// The sixteen scores of one image.
    ///
    /// # Errors
    /// [`DemoError::Data`] where a score is no int32.
    pub fn scores(&self, pixels: &[i8; INPUTS]) -> Result<[i32; SCORES], DemoError> {
        let mut hidden = [0_i64; HIDDEN];
        for (value, sum) in
            hidden.iter_mut().zip(sums(pixels.map(i64::from), &self.weights1, &self.bias1))
        {
            *value = rounded(sum.max(0), self.shift).clamp(-128, 127);
        }
        let mut scores = [0; SCORES];
        for (score, sum) in scores.iter_mut().zip(sums(hidden, &self.weights2, &self.bias2)) {
            *score = i32::try_from(sum)
                .map_err(|_| DemoError::Data { file: "digits-mlp.txt", line: 0 })?;
        }
        Ok(scores)
    }
}

/// For each column: its bias, and every input times its weight. There are as many columns as
/// biases.
fn sums<const K: usize>(
    inputs: [i64; K],
    weights: &[i8],
    bias: &[i32],
) -> impl Iterator<Item = i64> {
    bias.iter().enumerate().map(move |(column, &bias_of_column)| {
        let down = weights.iter().skip(column).step_by(bias.len());
        inputs.iter().zip(down).map(|(input, &weight)| input * i64::from(weight)).sum::<i64>()
            + i64::from(bias_of_column)
    })
}

/// `sum / 2^shift`, to the nearest integer, halves upward.
fn rounded(sum: i64, shift: u32) -> i64 {
    let unit = 1_i64 << shift;
    (2 * sum + unit).div_euclid(2 * unit)
}

#[cfg(test)]
mod tests {
    use super::super::digits::{self, PIXELS};
    use super::*;

    #[test]
    fn reference_is_as_right_as_training_says() -> Result<(), DemoError> {
        let reference = Reference::new()?;
        let mut correct = 0;
        for digit in digits::held_out() {
            let mut pixels = [0; PIXELS];
            digit.decode(&mut pixels)?;
            correct += usize::from(network::answer(&reference.scores(&pixels)?) == digit.label());
        }
        assert_eq!(Some(correct), network::promised_correct());
        Ok(())
    }
}

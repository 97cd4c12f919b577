//! A job's parameters, as `cuLaunchKernel` takes them.

use super::{Launch, Signature};
use crate::job::Argument;
use crate::types::Result;
use heapless::Vec;

/// A job's parameters, as a launch takes them.
pub(super) struct Packed {
    pub(super) launch: Launch,
    /// The parameters' values; each parameter begins in a new one.
    pub(super) values: [u64; MAX_VALUES],
    /// Where each parameter is in `values`.
    pub(super) at: Vec<usize, { Signature::MAX_PARAMETERS }>,
}

/// A parameter with an odd number of words leaves half of its last value unused.
const MAX_VALUES: usize = Signature::MAX_PARAMETERS + Signature::MAX_WORDS / 2;

impl Packed {
    /// The parameters of `signature`, with the operands at `addrs`.
    pub(super) fn new(
        signature: &Signature,
        addrs: impl IntoIterator<Item = u64>,
        words: &[u32],
    ) -> Result<Self> {
        let (launch, arguments) = signature.arguments(words)?;
        let mut packed = Self { launch, values: [0; MAX_VALUES], at: Vec::new() };
        let (mut addrs, mut free) = (addrs.into_iter(), 0);
        let mut put = |value| {
            if let Some(place) = packed.values.get_mut(free) {
                *place = value;
            }
            free += 1;
            free - 1
        };
        for argument in arguments {
            let first = match argument {
                Argument::Operand(_) => put(addrs.next().unwrap_or(0)),
                Argument::Words(words) => {
                    // The low word comes first, as in the memory of every CPU with a GPU.
                    let pair = |pair: &[u32]| {
                        pair.iter().rev().fold(0, |value, word| value << 32 | u64::from(*word))
                    };
                    words.chunks(2).map(|words| put(pair(words))).fold(usize::MAX, usize::min)
                }
            };
            // There is room for as many parameters as the kernel has.
            let _ = packed.at.push(first);
        }
        Ok(packed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use crate::OperandSpec;
    use crate::cuda::Parameter;

    #[test]
    fn parameters_lie_where_driver_looks() {
        const OPERAND: Parameter = Parameter::Operand(OperandSpec::in_out());
        let parameters =
            [Parameter::Words(1), OPERAND, Parameter::Words(3), OPERAND, Parameter::Words(2)];
        let signature = Signature::new("mixed", &parameters).unwrap();
        let words = Launch { grid: [1, 2, 3], block: [4, 5, 6], shared_bytes: 7 }
            .with(&[10, 20, 21, 22, 30, 31]);
        let packed = Packed::new(&signature, [0xA, 0xB], &words).unwrap();
        assert_eq!(
            (packed.launch.words(), packed.at.as_slice()),
            ([1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 4, 5].as_slice())
        );
        assert_eq!(
            packed.values.get(..6).unwrap(),
            [10, 0xA, 21 << 32 | 20, 22, 0xB, 31 << 32 | 30]
        );

        // The largest signature that is possible.
        let parameters: Vec<_, 32> = core::iter::once(OPERAND)
            .chain([Parameter::Words(2); 26])
            .chain([Parameter::Words(1); 5])
            .collect();
        let signature = Signature::new("largest", &parameters).unwrap();
        assert_eq!(Packed::new(&signature, [1], &[9; 64]).unwrap().at.last(), Some(&31));
    }
}

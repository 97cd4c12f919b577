//! The parameters of a GPU's kernel, as data: for CUDA, Vulkan and OpenCL alike.

use crate::job::{MAX_OPERANDS, OperandSpec};
use crate::mem::DevSlice;
use crate::types::{Error, Result};
use heapless::Vec;

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Shared memory of a block, in bytes, beside what the kernel declares.
    pub shared_bytes: u32,
}

/// Argument words: as many as a kernel's job can have, and one more.
pub type Words = Vec<u32, { Signature::MAX_WORDS + 1 }>;

impl Launch {
    /// `blocks` blocks of `threads` threads, in one dimension.
    #[must_use]
    pub const fn of(blocks: u32, threads: u32) -> Self {
        Self { grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes: 0 }
    }

    /// The first seven argument words of a job: grid, block, bytes of shared memory.
    #[must_use]
    pub(crate) const fn words(&self) -> [u32; 7] {
        let ([gx, gy, gz], [bx, by, bz]) = (self.grid, self.block);
        [gx, gy, gz, bx, by, bz, self.shared_bytes]
    }

    /// All argument words of a job: the launch, then `scalars`. If there are more than any kernel
    /// takes, it keeps one too many, and the job is refused for that.
    #[must_use]
    pub fn with(&self, scalars: &[u32]) -> Words {
        collected(self.words().iter().chain(scalars))
    }
}

/// Collects as many of `words` as there is room for: one more than any kernel has, so that a check
/// notices too many.
#[must_use]
pub(crate) fn collected<'w>(words: impl Iterator<Item = &'w u32>) -> Words {
    words.take(Signature::MAX_WORDS + 1).copied().collect()
}

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A pointer: the address of the job's next operand.
    Operand(OperandSpec),
    /// A scalar, or a structure by value: so many of the job's next argument words, the low one
    /// first. Only the low bytes count of a scalar that is narrower than a word.
    Words(usize),
}

/// **A kernel, as data**: its parameters in the order of their declaration, how large its operands
/// must be, and how it is launched. With it a program launches any kernel without a type for it,
/// also in C or Python.
///
/// ```
/// use contigo::{OperandSpec, job::{Launch, Parameter::{Operand, Words}, Signature}};
/// // __global__ void scale(const float *from, float *to, unsigned count, float by)
/// let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
/// let signature = Signature::new("scale", &[from, to, Words(1), Words(1)])?
///     .sized(0, 4, &[0])? // operand 0 has 4 bytes for each that scalar 0 counts
///     .sized(1, 4, &[0])?;
/// // Each job says how it is launched, because nothing was said here.
/// let (count, by) = (1_000_u32, 0.5_f32);
/// let words = Launch::of(count.div_ceil(256), 256).with(&[count, by.to_bits()]);
/// assert_eq!(words, [4, 1, 1, 256, 1, 1, 0, 1_000, 0x3F00_0000]);
/// # let _ = signature;
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    name: &'static str,
    operands: Vec<OperandSpec, MAX_OPERANDS>,
    /// In declaration order: 0 for an operand, otherwise the number of words.
    parameters: Vec<u8, { Self::MAX_PARAMETERS }>,
    sizes: Vec<Size, MAX_OPERANDS>,
    /// `None`: each job's first seven words are its launch.
    launch: Option<Launch>,
}

/// The size of an operand: `element_bytes` times the product of these scalars.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Size {
    operand: usize,
    element_bytes: u64,
    counts: Vec<usize, 4>,
}

/// A parameter's value in one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'w> {
    /// The operand of this number.
    Operand(usize),
    /// These words, the low one first.
    Words(&'w [u32]),
}

impl Signature {
    /// The most parameters of a kernel.
    pub const MAX_PARAMETERS: usize = 32;
    /// The most argument words of a job, the seven of its launch among them.
    pub const MAX_WORDS: usize = 64;

    /// A kernel with these parameters. `name` is for messages.
    ///
    /// # Errors
    /// [`Error::TooMany`]: more than 32 parameters, 16 operands or 64 words. [`Error::Argument`]:
    /// no operand, or a parameter of no words.
    pub fn new(name: &'static str, parameters: &[Parameter]) -> Result<Self> {
        const NONE: Error = Error::Argument {
            name: "words of a parameter",
            value: 0,
            min: 1,
            max: 64,
            multiple_of: 1,
        };
        let too_many = |what, most: usize| Error::TooMany { what, most: most as u64 };
        let launch = None;
        let mut this =
            Self { name, operands: Vec::new(), parameters: Vec::new(), sizes: Vec::new(), launch };
        for parameter in parameters {
            let words = match *parameter {
                Parameter::Operand(spec) => {
                    this.operands
                        .push(spec)
                        .map_err(|_| too_many("operands of a kernel", MAX_OPERANDS))?;
                    0
                }
                Parameter::Words(0) => return Err(NONE),
                Parameter::Words(words) => u8::try_from(words).unwrap_or(u8::MAX),
            };
            this.parameters
                .push(words)
                .map_err(|_| too_many("parameters of a kernel", Self::MAX_PARAMETERS))?;
        }
        if this.words() > Self::MAX_WORDS {
            return Err(too_many("argument words of a kernel", Self::MAX_WORDS));
        }
        if this.operands.is_empty() {
            let max = MAX_OPERANDS as u64;
            return Err(Error::Argument {
                name: "the count of operands",
                value: 0,
                min: 1,
                max,
                multiple_of: 1,
            });
        }
        Ok(this)
    }

    /// Refuses a job whose operand `operand` has fewer than `element_bytes` for each element. The
    /// count of elements is the product of the scalars `counts`. A scalar's number is its place
    /// among the [`Parameter::Words`]; it has one or two words.
    ///
    /// # Errors
    /// [`Error::Argument`]: there is no such operand or scalar. [`Error::TooMany`]: more than 4
    /// scalars, or 16 sizes.
    pub fn sized(mut self, operand: usize, element_bytes: u64, counts: &[usize]) -> Result<Self> {
        let known = |name, value: usize, many: usize| match value < many {
            true => Ok(()),
            false => Err(Error::Argument {
                name,
                value: value as u64,
                min: 0,
                max: many.saturating_sub(1) as u64,
                multiple_of: 1,
            }),
        };
        known("the operand whose size is given", operand, self.operands.len())?;
        for count in counts {
            known("the scalar that counts elements", *count, self.scalars().count())?;
            let words = self.scalars().nth(*count).unwrap_or(0);
            known(
                "one less than the words of a scalar that counts elements",
                words.saturating_sub(1),
                2,
            )?;
        }
        let too_many = |what, most| Error::TooMany { what, most };
        let counts = Vec::from_slice(counts)
            .map_err(|_| too_many("scalars that count the elements of an operand", 4))?;
        let size = Size { operand, element_bytes, counts };
        self.sizes.push(size).map_err(|_| too_many("sizes of operands", MAX_OPERANDS as u64))?;
        Ok(self)
    }

    /// Launches each job by `launch`: its words are the scalars alone.
    #[must_use]
    pub fn launched(self, launch: Launch) -> Self {
        Self { launch: Some(launch), ..self }
    }

    /// How many argument words a job has.
    #[must_use]
    pub fn words(&self) -> usize {
        let launch = if self.launch.is_none() { 7 } else { 0 };
        self.scalars().sum::<usize>() + launch
    }

    /// The number of words of each scalar.
    fn scalars(&self) -> impl Iterator<Item = usize> {
        self.parameters.iter().filter(|words| **words != 0).map(|words| usize::from(*words))
    }

    /// Splits a job's words into its launch and the words of its scalars.
    fn split<'w>(&self, words: &'w [u32]) -> Result<(Launch, &'w [u32])> {
        let (value, n) = (words.len() as u64, self.words() as u64);
        if value != n {
            return Err(Error::Argument {
                name: "the count of argument words",
                value,
                min: n,
                max: n,
                multiple_of: 1,
            });
        }
        Ok(match (self.launch, words) {
            (None, [gx, gy, gz, bx, by, bz, shared, scalars @ ..]) => (
                Launch { grid: [*gx, *gy, *gz], block: [*bx, *by, *bz], shared_bytes: *shared },
                scalars,
            ),
            (launch, scalars) => (launch.unwrap_or(Launch::of(0, 0)), scalars),
        })
    }

    /// The kernel's name, for messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its operands, in their order.
    #[must_use]
    pub fn operands(&self) -> &[OperandSpec] {
        &self.operands
    }

    /// Checks whether the kernel takes these operands and words.
    ///
    /// # Errors
    /// [`Error::Argument`]: too many or too few words, or an empty launch. [`Error::BufferSize`].
    pub fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        let (launch, scalars) = self.split(words)?;
        if launch.grid.contains(&0) || launch.block.contains(&0) {
            let max = u32::MAX.into();
            return Err(Error::Argument {
                name: "blocks and threads of a launch",
                value: 0,
                min: 1,
                max,
                multiple_of: 1,
            });
        }
        for Size { operand, element_bytes, counts } in &self.sizes {
            let need_bytes = counts.iter().fold(*element_bytes, |bytes, count| {
                bytes.saturating_mul(self.scalar(*count, scalars))
            });
            let have_bytes = operands.get(*operand).map_or(0, |operand| operand.len_bytes);
            if (have_bytes as u64) < need_bytes {
                return Err(Error::BufferSize { index: *operand, need_bytes, have_bytes });
            }
        }
        Ok(())
    }

    /// The value of scalar number `index`, which has one or two words.
    fn scalar(&self, index: usize, scalars: &[u32]) -> u64 {
        let (begin, words) =
            (self.scalars().take(index).sum::<usize>(), self.scalars().nth(index).unwrap_or(0));
        let value = |at: usize| scalars.get(at).copied().map_or(0, u64::from);
        value(begin) | if words == 2 { value(begin + 1) << 32 } else { 0 }
    }

    /// A job's launch, and the value of each parameter in the order of the declaration: what a
    /// driver of kernels passes to its device.
    ///
    /// # Errors
    /// [`Error::Argument`]: there are too many words or too few.
    pub fn arguments<'w>(
        &self,
        words: &'w [u32],
    ) -> Result<(Launch, impl Iterator<Item = Argument<'w>>)> {
        let (launch, mut scalars) = self.split(words)?;
        let mut operand = 0;
        let arguments = self.parameters.iter().map(move |words| match usize::from(*words) {
            0 => {
                operand += 1;
                Argument::Operand(operand - 1)
            }
            words => {
                let (these, rest) = scalars.split_at(words.min(scalars.len()));
                scalars = rest;
                Argument::Words(these)
            }
        });
        Ok((launch, arguments))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    const OPERAND: Parameter = Parameter::Operand(OperandSpec::in_out());

    #[test]
    fn parameters_lie_where_driver_looks() {
        let parameters =
            [Parameter::Words(1), OPERAND, Parameter::Words(3), OPERAND, Parameter::Words(2)];
        let signature = Signature::new("mixed", &parameters).unwrap();
        assert_eq!((signature.words(), signature.operands.len()), (13, 2));
        let words = Launch { grid: [1, 2, 3], block: [4, 5, 6], shared_bytes: 7 }
            .with(&[10, 20, 21, 22, 30, 31]);
        let (launch, arguments) = signature.arguments(&words).unwrap();
        assert_eq!(launch.words(), [1, 2, 3, 4, 5, 6, 7]);
        let expected = [
            Argument::Words(&[10]),
            Argument::Operand(0),
            Argument::Words(&[20, 21, 22]),
            Argument::Operand(1),
            Argument::Words(&[30, 31]),
        ];
        assert!(arguments.eq(expected));
        assert!(signature.arguments(words.get(1..).unwrap()).is_err());

        // The most operands and words that a signature can have.
        let parameters: Vec<_, 32> = core::iter::once(OPERAND)
            .chain([Parameter::Words(2); 26])
            .chain([Parameter::Words(1); 5])
            .collect();
        let signature = Signature::new("largest", &parameters).unwrap();
        assert_eq!(signature.words(), Signature::MAX_WORDS);
        assert_eq!(signature.arguments(&[9; 64]).unwrap().1.last(), Some(Argument::Words(&[9])));
    }

    #[test]
    fn what_no_kernel_takes_is_refused() {
        let new = |parameters: &[Parameter]| Signature::new("refused", parameters);
        assert!(matches!(new(&[OPERAND; 17]), Err(Error::TooMany { most: 16, .. })));
        assert!(matches!(new(&[Parameter::Words(1); 33]), Err(Error::TooMany { most: 32, .. })));
        assert!(matches!(
            new(&[OPERAND, Parameter::Words(58)]),
            Err(Error::TooMany { most: 64, .. })
        ));
        assert!(matches!(
            new(&[Parameter::Words(1)]),
            Err(Error::Argument { min: 1, max: 16, .. })
        ));
        assert!(matches!(
            new(&[OPERAND, Parameter::Words(0)]),
            Err(Error::Argument { min: 1, max: 64, .. })
        ));
        let sized = |operand, counts: &[usize]| {
            new(&[OPERAND, Parameter::Words(3), Parameter::Words(1)])?.sized(operand, 1, counts)
        };
        assert!(matches!(sized(1, &[1]), Err(Error::Argument { value: 1, max: 0, .. })));
        assert!(matches!(sized(0, &[2]), Err(Error::Argument { value: 2, max: 1, .. })));
        assert!(matches!(sized(0, &[0]), Err(Error::Argument { value: 2, max: 1, .. })));
        assert!(matches!(sized(0, &[1; 5]), Err(Error::TooMany { most: 4, .. })));
    }
}

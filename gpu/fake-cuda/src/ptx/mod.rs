//! PTX, as far as `examples/gemm8/kernels/gemm8.ptx` and kernels like it use it: integers, global
//! memory, branches. A kernel does as its text says, thread by thread, one after the other. An
//! instruction that is not here is refused when the module is loaded. Whether a GPU takes the text
//! is another question, which `examples/gemm8/kernels/ptx --assemble` asks ptxas.
//!
//! A launch can be run in slices, and goes on where the last one ended. A slice works on copies of
//! the memory, which are made when it begins. Its writes are put back at its end, from the first
//! written byte to the last. Another writer's bytes between those two are lost meanwhile. A thread
//! that waits for one behind it waits for ever.
//!
//! Source: NVIDIA's "Parallel Thread Execution ISA", 9.7.1 (integer arithmetic) to 9.7.9 (data
//! movement).

mod parse;
mod run;
#[cfg(test)]
mod tests;

pub use self::parse::parse;
pub use self::run::{Progress, Window};

/// A kernel that the host can launch.
#[derive(Debug)]
pub struct Entry {
    /// The name by which it is found.
    pub name: String,
    /// The bytes of each parameter, in order.
    pub params: Vec<usize>,
    /// May it wait for the CPU? Such a kernel reads volatile memory.
    pub(crate) waits: bool,
    code: Vec<Step>,
    registers: usize,
}

/// A statement, and when it is done.
#[derive(Debug)]
struct Step {
    /// A predicate, and the value that it has to have.
    guard: Option<(usize, bool)>,
    op: Op,
}

#[derive(Debug)]
enum Op {
    Load {
        ty: Type,
        to: Vec<Register>,
        at: Address,
    },
    Store {
        ty: Type,
        from: Vec<Operand>,
        at: Address,
    },
    Compute {
        what: Compute,
        to: Register,
        /// The type to which the result is cut.
        ty: Type,
        operands: Vec<(Operand, Type)>,
    },
    Branch(usize),
    Return,
}

/// From operands read as their types, and the bits of the result, whose caller cuts it. `None`: a
/// division by zero.
type Compute = fn([i128; 3], i128) -> Option<i128>;

#[derive(Clone, Copy, Debug)]
struct Register {
    index: usize,
    bits: u32,
}

/// A thread's knowledge of itself is in its first registers, in three dimensions each.
const SPECIAL: [&str; 4] = ["%tid", "%ntid", "%ctaid", "%nctaid"];
/// Its parameters are in the registers behind them.
const FIRST_PARAM: usize = 3 * SPECIAL.len();

#[derive(Clone, Copy, Debug)]
enum Operand {
    Register(Register),
    Number(i128),
}

/// A register and a number of bytes.
#[derive(Clone, Copy, Debug)]
struct Address {
    base: Register,
    offset: i128,
}

/// How the bits of a value are read.
#[derive(Clone, Copy, Debug)]
struct Type {
    signed: bool,
    bits: u32,
}

impl Type {
    const PREDICATE: Self = Self { signed: false, bits: 1 };

    /// `u32`, `s8`, `b64`, `pred`.
    fn named(name: &str) -> Option<Self> {
        if name == "pred" {
            return Some(Self::PREDICATE);
        }
        let (kind, bits) = name.split_at_checked(1)?;
        let bits = bits.parse().ok().filter(|bits| [8, 16, 32, 64].contains(bits))?;
        ["b", "u", "s"].contains(&kind).then_some(Self { signed: kind == "s", bits })
    }

    const fn bytes(self) -> usize {
        self.bits as usize / 8
    }

    /// The value that the low bits of a number are.
    const fn cut(self, number: i128) -> i128 {
        let unused = 128 - self.bits;
        if self.signed {
            number << unused >> unused
        } else {
            (number << unused).cast_unsigned().wrapping_shr(unused).cast_signed()
        }
    }
}

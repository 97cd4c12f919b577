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
//! movement); messages as ptxas 12.9 words them.

mod instruction;
mod parse;
mod run;
#[cfg(test)]
mod tests;
mod types;

use self::types::Type;
pub use self::{
    parse::{Refused, parse},
    run::{Grid, Progress, Window},
};

/// A kernel that the host can launch.
#[derive(Debug)]
pub struct Entry {
    name: String,
    params: Vec<usize>,
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
    /// From a parameter.
    Param {
        to: Register,
        ty: Type,
        index: usize,
    },
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compute {
    Move,
    Add,
    Sub,
    Mul,
    Mad,
    Div,
    Rem,
    Min,
    Max,
    And,
    Or,
    ShiftLeft,
    ShiftRight,
    /// A field of bits: value, position, length.
    Extract,
    Compare(Comparison),
    /// The first of two, where the predicate holds.
    Select,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Register {
    index: usize,
    bits: u32,
}

#[derive(Clone, Copy, Debug)]
enum Operand {
    Register(Register),
    Number(i128),
    Special(Special, usize),
}

/// A thread's knowledge of itself, in three dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    Thread,
    Threads,
    Block,
    Blocks,
}

/// A register and a number of bytes.
#[derive(Clone, Copy, Debug)]
struct Address {
    base: Register,
    offset: i128,
}

impl Entry {
    /// The name by which it is found.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes of each parameter, in order.
    #[must_use]
    pub fn params(&self) -> &[usize] {
        &self.params
    }
}

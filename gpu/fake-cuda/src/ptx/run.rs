//! A launch: every thread in turn, from its first statement to its return.

use super::{Address, Entry, FIRST_PARAM, Op, Operand, Register, Type};
use crate::state::Answer;
use crate::{Launch, code};
use std::ops::Range;

/// The value of a register before its first write: none that a test expects.
const UNSET: u64 = 0xA5A5_A5A5_A5A5_A5A5;

/// Memory that a kernel may use; there is no other.
#[derive(Debug)]
pub struct Window {
    addr: u64,
    bytes: Vec<u8>,
    writable: bool,
    /// From the first byte that was written to the last.
    written: Range<usize>,
}

/// A launch that has begun: its thread, and how far that is.
#[derive(Clone, Debug)]
pub struct Progress {
    launch: Launch,
    block: [u32; 3],
    thread: [u32; 3],
    /// The thread's next statement; none before its first.
    next: Option<usize>,
    registers: Vec<u64>,
    ended: bool,
}

/// One thread, and what all of them share.
struct Thread<'l> {
    params: &'l [u64],
    windows: &'l mut [Window],
    at: &'l mut Progress,
}

/// Goes on to the next coordinates below `size`, x first; whether there were any.
fn step(at: &mut [u32; 3], size: [u32; 3]) -> bool {
    at.iter_mut().zip(size).any(|(at, size)| {
        *at = if *at + 1 < size { *at + 1 } else { 0 };
        *at > 0
    })
}

impl Progress {
    /// To the next thread, or to the end.
    fn step(&mut self) {
        self.next = None;
        self.ended =
            !step(&mut self.thread, self.launch.block) && !step(&mut self.block, self.launch.grid);
    }
}

impl Window {
    /// Memory that a kernel finds at `addr`, and whether it may write it.
    #[must_use]
    pub const fn new(addr: u64, bytes: Vec<u8>, writable: bool) -> Self {
        Self { addr, bytes, writable, written: 0..0 }
    }

    /// What is there.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The written bytes, with their address; bytes between them that were not written keep their
    /// values.
    #[must_use]
    pub fn written(&self) -> (u64, &[u8]) {
        (
            self.addr + self.written.start as u64,
            self.bytes.get(self.written.clone()).unwrap_or_default(),
        )
    }

    /// The bytes of one access, where all of them are here.
    fn access(&mut self, addr: u64, len: usize, writes: bool) -> Option<&mut [u8]> {
        let from = usize::try_from(addr.checked_sub(self.addr)?).ok()?;
        let range = from..from.checked_add(len)?;
        let bytes = self.bytes.get_mut(range.clone()).filter(|_| self.writable || !writes)?;
        if writes {
            let old = if self.written.is_empty() { range.clone() } else { self.written.clone() };
            self.written = old.start.min(range.start)..old.end.max(range.end);
        }
        Some(bytes)
    }
}

impl Entry {
    /// A launch, of which no thread has run.
    #[must_use]
    pub fn start(&self, launch: Launch) -> Progress {
        let ended = launch.grid.iter().chain(&launch.block).any(|size| *size == 0);
        Progress {
            launch,
            block: [0; 3],
            thread: [0; 3],
            next: None,
            registers: vec![UNSET; self.registers],
            ended,
        }
    }

    /// Goes on for at most `statements_max`, of which each thread takes one: whether all of them
    /// have ended. `params` has a value for each parameter.
    ///
    /// # Errors
    /// A `CUresult`: `ILLEGAL_ADDRESS`, memory beside `windows` or a write to one that is not
    /// writable; `MISALIGNED_ADDRESS`, an access not aligned to its size; `LAUNCH_FAILED`, a
    /// division by zero.
    pub fn run(
        &self,
        progress: &mut Progress,
        params: &[u64],
        windows: &mut [Window],
        statements_max: u64,
    ) -> Result<bool, i32> {
        let mut left = statements_max;
        let mut own = Thread { params, windows, at: progress };
        while !own.at.ended {
            if !own.run(self, &mut left)? {
                return Ok(false);
            }
            own.at.step();
        }
        Ok(true)
    }
}

impl Thread<'_> {
    /// Whether it has ended.
    fn run(&mut self, entry: &Entry, left: &mut u64) -> Answer<bool> {
        let mut next = if let Some(next) = self.at.next {
            next
        } else {
            let Some(fewer) = left.checked_sub(1) else { return Ok(false) };
            *left = fewer;
            self.begin();
            0
        };
        // A text's end is a return.
        while let Some(step) = entry.code.get(next) {
            let Some(fewer) = left.checked_sub(1) else {
                self.at.next = Some(next);
                return Ok(false);
            };
            *left = fewer;
            next += 1;
            if step.guard.is_some_and(|(register, wanted)| (self.bits(register) != 0) != wanted) {
                continue;
            }
            match &step.op {
                Op::Return => break,
                Op::Branch(to) => next = *to,
                Op::Load { ty, to, at } => {
                    let bytes = self.memory(*at, ty.bytes() * to.len(), false)?;
                    let mut words = [0; 4];
                    for (word, bytes) in words.iter_mut().zip(bytes.chunks(ty.bytes())) {
                        *word =
                            bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                    }
                    to.iter().zip(words).for_each(|(to, word)| self.set(*to, *ty, word.into()));
                }
                Op::Store { ty, from, at } => {
                    let words: Vec<_> = from.iter().map(|from| self.value(*from, *ty)).collect();
                    let bytes = self.memory(*at, ty.bytes() * from.len(), true)?;
                    for (to, word) in bytes.chunks_mut(ty.bytes()).zip(words) {
                        to.iter_mut().zip(word.to_le_bytes()).for_each(|(to, byte)| *to = byte);
                    }
                }
                Op::Compute { what, to, ty, operands } => {
                    let mut values = [0; 3];
                    for (value, (operand, ty)) in values.iter_mut().zip(operands) {
                        *value = self.value(*operand, *ty);
                    }
                    // A GPU's answer to a division by zero is not specified, so that nothing may
                    // rely on it.
                    let result = what(values, ty.bits.into()).ok_or(code::LAUNCH_FAILED)?;
                    self.set(*to, *ty, result);
                }
            }
        }
        Ok(true)
    }

    /// What it knows of itself, and its parameters.
    fn begin(&mut self) {
        let Progress { launch, block, thread, registers, .. } = &mut *self.at;
        registers.fill(UNSET);
        let special = [*thread, launch.block, *block, launch.grid];
        let known = special.as_flattened().iter().map(|value| u64::from(*value));
        debug_assert_eq!(known.len(), FIRST_PARAM, "as they are declared");
        registers
            .iter_mut()
            .zip(known.chain(self.params.iter().copied()))
            .for_each(|(register, value)| *register = value);
    }

    fn bits(&self, register: usize) -> u64 {
        self.at.registers.get(register).copied().unwrap_or_default()
    }

    fn value(&self, operand: Operand, ty: Type) -> i128 {
        match operand {
            Operand::Register(register) => ty.cut(self.bits(register.index).into()),
            Operand::Number(number) => ty.cut(number),
        }
    }

    /// A register wider than the type takes its sign or zeros.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a register keeps its bits"
    )]
    fn set(&mut self, to: Register, ty: Type, number: i128) {
        let whole = Type { signed: false, bits: to.bits };
        if let Some(register) = self.at.registers.get_mut(to.index) {
            *register = whole.cut(ty.cut(number)) as u64;
        }
    }

    /// The bytes of one access: all in one window, and aligned to their number.
    fn memory(&mut self, at: Address, len: usize, writes: bool) -> Answer<&mut [u8]> {
        let address = Type { signed: false, bits: 64 };
        let addr = address.cut(i128::from(self.bits(at.base.index)) + at.offset);
        let addr = u64::try_from(addr).map_err(|_| code::ILLEGAL_ADDRESS)?;
        if !addr.is_multiple_of(len as u64) {
            return Err(code::MISALIGNED_ADDRESS);
        }
        let found = self.windows.iter_mut().find_map(|window| window.access(addr, len, writes));
        found.ok_or(code::ILLEGAL_ADDRESS)
    }
}

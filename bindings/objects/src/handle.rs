//! A handle: what a C program holds instead of an object. A number, checked at every call.

use crate::{GENERATION_BITS, GENERATION_MAX, Refusal};
use core::fmt;

/// Bits of the index: the largest table, the buffers', has 4,096 entries.
pub const INDEX_BITS: u32 = 12;
const KIND_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;

/// The kind of object that a handle is for. Its number is in the handle's highest four bits, so
/// that small numbers are no handles.
#[allow(missing_docs, reason = "each is called as its objects are")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Sim = 1,
    Port = 2,
    Region = 4,
    Pool = 5,
    Buf = 6,
    Engine = 7,
    Job = 8,
    Device = 10,
    Registers = 11,
    Kernel = 12,
    Module = 13,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Sim,
        Self::Port,
        Self::Region,
        Self::Pool,
        Self::Buf,
        Self::Engine,
        Self::Job,
        Self::Device,
        Self::Registers,
        Self::Kernel,
        Self::Module,
    ];

    /// That of a number, which is one's.
    #[allow(
        clippy::indexing_slicing,
        reason = "it runs in the compiler, which refuses a number that is none's"
    )]
    pub(crate) const fn of(number: u8) -> Self {
        let mut index = 0;
        loop {
            if Self::ALL[index] as u8 == number {
                return Self::ALL[index];
            }
            index += 1;
        }
    }

    /// As a text says that it is one: `an engine`, `a port`.
    #[must_use]
    pub fn with_article(self) -> impl fmt::Display {
        let article = match self {
            Self::Engine => "an ",
            Self::Registers => "",
            _ => "a ",
        };
        struct One(&'static str, Kind);
        impl fmt::Display for One {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", self.0, self.1)
            }
        }
        One(article, self)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sim => "simulated board",
            Self::Port => "port",
            Self::Region => "region",
            Self::Pool => "pool",
            Self::Buf => "buffer",
            Self::Engine => "engine",
            Self::Job => "job",
            Self::Device => "device",
            Self::Registers => "registers",
            Self::Kernel => "kernel",
            Self::Module => "module",
        })
    }
}

/// Which entry of a table, and in which of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The entry.
    pub index: usize,
    /// The life.
    pub generation: u64,
}

impl Handle {
    /// The number that a C program gets: kind, generation, index, from the highest bit.
    #[must_use]
    pub const fn raw(self, kind: Kind) -> u64 {
        (kind as u64) << KIND_SHIFT
            | (self.generation & GENERATION_MAX) << INDEX_BITS
            | (self.index as u64 & ((1 << INDEX_BITS) - 1))
    }

    /// Reads a number from a C program, which may be any.
    ///
    /// # Errors
    /// [`Refusal::NoHandle`], [`Refusal::WrongKind`].
    #[inline]
    pub fn of(raw: u64, expected: Kind) -> Result<Self, Refusal> {
        if raw >> KIND_SHIFT == expected as u64 {
            #[allow(clippy::cast_possible_truncation, reason = "12 bits")]
            let index = (raw & ((1 << INDEX_BITS) - 1)) as usize;
            return Ok(Self { index, generation: raw >> INDEX_BITS & GENERATION_MAX });
        }
        Err(Self::not(raw, expected))
    }

    /// Why it is none of those.
    #[cold]
    fn not(raw: u64, expected: Kind) -> Refusal {
        match Kind::ALL.into_iter().find(|&kind| kind as u64 == raw >> KIND_SHIFT) {
            Some(found) => Refusal::WrongKind { expected, found },
            None => Refusal::NoHandle { raw, expected },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_as_it_was() {
        for (kind, index, generation) in
            [(Kind::Sim, 0, 1), (Kind::Buf, 4095, GENERATION_MAX), (Kind::Job, 7, 1 << 33)]
        {
            let handle = Handle { index, generation };
            assert_eq!(Handle::of(handle.raw(kind), kind), Ok(handle));
        }
    }

    #[test]
    fn numbers_that_are_no_handles_are_refused() {
        for raw in [0, 1, 4096, 1 << 59, u64::MAX] {
            assert_eq!(
                Handle::of(raw, Kind::Buf),
                Err(Refusal::NoHandle { raw, expected: Kind::Buf })
            );
        }
        let region = Handle { index: 1, generation: 1 }.raw(Kind::Region);
        assert_eq!(
            Handle::of(region, Kind::Buf),
            Err(Refusal::WrongKind { expected: Kind::Buf, found: Kind::Region })
        );
    }
}

//! The assembler: one copy as a program of the DMA-330. Pure arithmetic, no register.
//!
//! **The parts of a copy.** Blocks whose size is a power of two and whose two addresses are both
//! multiples of it, each loaded by one burst and stored by one burst. So no burst is unaligned, and
//! none crosses a 4 KiB boundary (Arm IHI 0022, A3.4.1). None straddles more words of the data
//! buffer than it fills. A load and its store always move the same bytes. Nothing here rests on how
//! the controller realigns data, or splits a burst. Linux (`drivers/dma/pl330.c`,
//! `pl330_prep_dma_memcpy`) and AMD's driver (`embeddedsw`, `xdmaps.c`, `XDmaPs_BuildDmaProg`) also
//! take bursts no larger than both addresses allow.
//!
//! The price: two addresses that differ in their lowest bit are copied byte by byte. Buffers at
//! multiples of a cache line are copied in bursts of a line or more.

use super::regs;
use crate::types::{Error, Result};

/// The longest program: 2 DMAMOV (12 bytes), 8 blocks of 10 bytes on each side (160), the middle (6
/// + 8 + 31 * 4 + 12 + 8), the end (4), which is 334. Rounded up to whole cache lines.
pub(super) const PROGRAM_BYTES: usize = 384;
const PROGRAM_WORDS: usize = PROGRAM_BYTES / 4;

/// A loop counter has 8 bits and counts 1 to 256 rounds (Arm DDI 0424C, 3.3.16, 4.3.9).
const ROUNDS: u32 = 256;
/// How often a pair of nested loops may be repeated inside itself: its jump back over 32 times 4
/// bytes fits 8 bits.
const REPEATS: u32 = 32;
/// The most blocks of the largest size in one program. At one byte each, 2 MiB; at 128 bytes, 256
/// MiB.
pub(super) const BLOCKS_MAX: u32 = REPEATS * ROUNDS * ROUNDS;

/// The most beats in a burst: CCR's fields have 4 bits (Arm DDI 0424C, 3.3.15).
const BEATS_MAX: u32 = 16;

/// DMAMOV's register numbers (Arm DDI 0424C, 4.3.12).
const SAR: u8 = 0;
const CCR: u8 = 1;
const DAR: u8 = 2;

/// CCR: both addresses count up.
const INCREMENT: u32 = 1 << 0 | 1 << 14;
/// CCR: AxPROT[1] of both sides, which a Non-secure channel must set.
const NONSECURE: u32 = 1 << 9 | 1 << 23;
/// CCR: AxCACHE[1] of both sides. A port that snoops looks into the caches only for such accesses
/// (UG585, 3.5.1). AxCACHE[0] is always 0, not bufferable: no write is answered before it has
/// arrived (Arm IHI 0022, A4.4 "Memory types").
const CACHEABLE: u32 = 1 << 12 | 1 << 26;

/// The facts of the controller for the assembler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Core {
    /// The widest beat: 4, 8 or 16 bytes.
    pub(super) bus_bytes: u32,
    /// How many beats of that width its data buffer holds.
    pub(super) buffer_words: u32,
    /// The channel is in the Non-secure state.
    pub(super) nonsecure: bool,
    /// The port snoops.
    pub(super) coherent: bool,
    /// Revision r0p0, which locks up where a load overtakes a store: Linux puts barriers between
    /// (`_ldst_memtomem`).
    pub(super) barriers: bool,
    /// The event that says that the program is done.
    pub(super) event: u8,
}

impl Core {
    /// The largest block of a copy between these addresses: no larger than a burst, than the data
    /// buffer, and than the lowest bit in which the addresses differ.
    pub(super) fn block_bytes(&self, from: u32, to: u32) -> u32 {
        let beats = 1 << self.buffer_words.clamp(1, BEATS_MAX).ilog2();
        match (from ^ to).trailing_zeros() {
            low @ 0..=30 => (1 << low).min(beats * self.bus_bytes),
            _ => beats * self.bus_bytes,
        }
    }

    /// CCR for blocks of `block_bytes`, at most 16 beats. Protection and caches apart, both sides
    /// are the same.
    fn ccr(&self, block_bytes: u32) -> u32 {
        let beat_bytes = block_bytes.min(self.bus_bytes);
        let side = beat_bytes.ilog2() << 1 | (block_bytes / beat_bytes - 1) << 4;
        let nonsecure = if self.nonsecure { NONSECURE } else { 0 };
        let cacheable = if self.coherent { CACHEABLE } else { 0 };
        INCREMENT | side | side << 14 | nonsecure | cacheable
    }
}

/// A program, assembled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    words: [u32; PROGRAM_WORDS],
    len_bytes: usize,
}

/// A copy of `len_bytes` bytes, at most [`BLOCKS_MAX`] blocks, then the event.
///
/// # Errors
/// [`Error::OutOfRange`] where it does not fit, which the limits keep from happening.
pub(super) fn copy(core: &Core, from: u32, to: u32, len_bytes: u32) -> Result<Program> {
    let mut program = Program { words: [0; PROGRAM_WORDS], len_bytes: 0 };
    program.load_register(SAR, from)?;
    program.load_register(DAR, to)?;
    let largest = core.block_bytes(from, to);
    let (mut at, mut left) = (from, len_bytes);
    // Up to the first multiple of the largest block, by growing blocks. Both addresses agree in the
    // bits below it.
    let mut block_bytes = 1;
    while block_bytes < largest && left >= block_bytes {
        if at & block_bytes != 0 {
            program.blocks(core, block_bytes, 1)?;
            at = at.wrapping_add(block_bytes);
            left -= block_bytes;
        }
        block_bytes *= 2;
    }
    // Here either `at` is a multiple of the largest block, or fewer than `block_bytes` are left and
    // it is a multiple of those.
    program.blocks(core, largest, left / largest)?;
    left %= largest;
    block_bytes = largest;
    while block_bytes > 1 {
        block_bytes /= 2;
        program.blocks(core, block_bytes, left / block_bytes)?;
        left %= block_bytes;
    }
    program.done(core)?;
    Ok(program)
}

impl Program {
    /// As the words that the controller fetches, the last one filled up with DMAEND.
    pub(super) fn words(&self) -> &[u32] {
        self.words.get(..self.len_bytes.div_ceil(4)).unwrap_or_default()
    }

    fn put(&mut self, code: &[u8]) -> Result<()> {
        for &byte in code {
            let past_the_end = Error::OutOfRange { start: self.len_bytes, end: self.len_bytes + 1, len_bytes: PROGRAM_BYTES };
            *self.words.get_mut(self.len_bytes / 4).ok_or(past_the_end)? |= u32::from(byte) << (8 * (self.len_bytes % 4));
            self.len_bytes += 1;
        }
        Ok(())
    }

    /// DMAMOV (4.3.12).
    fn load_register(&mut self, register: u8, value: u32) -> Result<()> {
        let [b0, b1, b2, b3] = value.to_le_bytes();
        self.put(&[0xBC, register, b0, b1, b2, b3])
    }

    /// `count` blocks of `block_bytes`, one after the other.
    fn blocks(&mut self, core: &Core, block_bytes: u32, count: u32) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.load_register(CCR, core.ccr(block_bytes))?;
        self.nested(core, ROUNDS, ROUNDS, count / (ROUNDS * ROUNDS))?;
        self.nested(core, count / ROUNDS % ROUNDS, ROUNDS, 1)?;
        self.nested(core, 1, count % ROUNDS, 1)
    }

    /// `outer` times `inner` times: `repeats` blocks. DMALP and DMALPEND (4.3.9, 4.3.10): the
    /// counter holds the rounds less one, and the jump counts back from DMALPEND to the loop's
    /// first instruction.
    fn nested(&mut self, core: &Core, outer: u32, inner: u32, repeats: u32) -> Result<()> {
        if outer == 0 || inner == 0 || repeats == 0 {
            return Ok(());
        }
        if outer > 1 {
            self.put(&[0x22, low_byte(outer - 1)])?;
        }
        let outer_start = self.len_bytes;
        if inner > 1 {
            self.put(&[0x20, low_byte(inner - 1)])?;
        }
        let inner_start = self.len_bytes;
        for _ in 0..repeats {
            // DMALD, DMAST (4.3.7, 4.3.16); DMARMB, DMAWMB (4.3.14, 4.3.21).
            self.put(if core.barriers { &[0x04, 0x12, 0x08, 0x13] } else { &[0x04, 0x08] })?;
        }
        if inner > 1 {
            self.put(&[0x38, jump(self.len_bytes - inner_start)])?;
        }
        if outer > 1 {
            self.put(&[0x3C, jump(self.len_bytes - outer_start)])?;
        }
        Ok(())
    }

    /// DMAWMB, DMASEV, DMAEND (4.3.21, 4.3.15, 4.3.3): the event after the answer to the last
    /// write.
    fn done(&mut self, core: &Core) -> Result<()> {
        self.put(&[0x13, 0x34, core.event << 3, 0x00])
    }
}

#[allow(clippy::cast_possible_truncation, reason = "at most 255: see ROUNDS")]
const fn low_byte(value: u32) -> u8 {
    value as u8
}

#[allow(clippy::cast_possible_truncation, reason = "at most 2 + 4 * REPEATS + 2 = 132 bytes")]
const fn jump(distance: usize) -> u8 {
    distance as u8
}

const _: () = assert!(2 + 4 * REPEATS + 2 <= 255, "a jump back has 8 bits");
const _: () = assert!(regs::CHANNELS_MAX <= 8, "DMAGO's field has 3 bits");

#[cfg(test)]
mod tests;

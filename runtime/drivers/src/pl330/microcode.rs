//! The assembler: one copy as a program of the DMA-330. Arithmetic only.
//!
//! **The parts of a copy.** A block's size is a power of two that divides both of its addresses;
//! one burst loads it and one burst stores it. So no burst is unaligned or crosses a 4 KiB boundary
//! (Arm IHI 0022, A3.4.1), and none straddles more words of the data buffer than it fills. A load
//! and its store always move the same bytes. Nothing here depends on how the controller realigns
//! data or splits a burst. Linux (`drivers/dma/pl330.c`, `pl330_prep_dma_memcpy`) and AMD's driver
//! (`embeddedsw`, `xdmaps.c`, `XDmaPs_BuildDmaProg`) also take bursts no larger than both addresses
//! allow.
//!
//! The cost: between two addresses that differ in their lowest bit it copies byte by byte. Buffers
//! at multiples of a cache line are copied in bursts of a line or more.

use super::regs;
use contigo_core::types::{Error, Result};

/// The longest program: 2 DMAMOV (12 bytes), 8 blocks of 10 bytes on each side (160), the middle (6
/// + 8 + 31 * 4 + 12 + 8), the end (4), which is 334. Rounded up to whole cache lines.
pub const PROGRAM_BYTES: usize = 384;
const PROGRAM_WORDS: usize = PROGRAM_BYTES / 4;

/// A loop counter has 8 bits and counts 1 to 256 rounds (Arm DDI 0424C, 3.3.16, 4.3.9).
const ROUNDS: u32 = 256;
/// The most repeats of a block inside a pair of nested loops: the jump back over 32 times 4 bytes
/// fits 8 bits.
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
/// CCR: AxCACHE[1] of both sides. A snooping port looks up the caches only for such accesses
/// (UG585, 3.5.1). AxCACHE[0] is always 0, not bufferable: no write is answered before it has
/// arrived (Arm IHI 0022, A4.4 "Memory types").
const CACHEABLE: u32 = 1 << 12 | 1 << 26;

/// The controller's parameters for the assembler.
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
    /// Revision r0p0, which locks up when a load overtakes a store: Linux inserts barriers
    /// (`_ldst_memtomem`).
    pub(super) barriers: bool,
    /// The event that signals the program's end.
    pub(super) event: u8,
}

impl Core {
    /// The largest block of a copy between these addresses: no larger than a burst, the data
    /// buffer, or the lowest bit in which the addresses differ.
    pub(super) fn block_bytes(&self, from: u32, to: u32) -> u32 {
        let beats = 1 << self.buffer_words.clamp(1, BEATS_MAX).ilog2();
        match (from ^ to).trailing_zeros() {
            low @ 0..=30 => (1 << low).min(beats * self.bus_bytes),
            _ => beats * self.bus_bytes,
        }
    }

    /// CCR for blocks of `block_bytes`, at most 16 beats. Both sides are the same, except for
    /// protection and caches.
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
/// [`Error::OutOfRange`] if it does not fit, which the limits prevent.
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
    // Now `at` is a multiple of the largest block, or fewer than `block_bytes` are left and `at` is
    // a multiple of those.
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
    /// The words that the controller fetches, the last one padded with DMAEND.
    pub(super) fn words(&self) -> &[u32] {
        self.words.get(..self.len_bytes.div_ceil(4)).unwrap_or_default()
    }

    fn put(&mut self, code: &[u8]) -> Result<()> {
        for &byte in code {
            let past_the_end = Error::OutOfRange {
                start: self.len_bytes,
                end: self.len_bytes + 1,
                len_bytes: PROGRAM_BYTES,
            };
            *self.words.get_mut(self.len_bytes / 4).ok_or(past_the_end)? |=
                u32::from(byte) << (8 * (self.len_bytes % 4));
            self.len_bytes += 1;
        }
        Ok(())
    }

    /// DMAMOV (4.3.12).
    fn load_register(&mut self, register: u8, value: u32) -> Result<()> {
        let [b0, b1, b2, b3] = value.to_le_bytes();
        self.put(&[0xBC, register, b0, b1, b2, b3])
    }

    /// `count` consecutive blocks of `block_bytes`.
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
    /// counter holds the rounds less one, and the jump is relative from DMALPEND back to the loop's
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

/// Executes each program on a model of the instructions that it uses.
#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed, which is its purpose; random numbers are cut to size"
)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// All of them on build machines; elsewhere an emulator does the same arithmetic.
    const STEP: usize = if cfg!(target_arch = "x86_64") { 1 } else { 5 };

    const CORE: Core = Core {
        bus_bytes: 8,
        buffer_words: 128,
        nonsecure: false,
        coherent: false,
        barriers: false,
        event: 3,
    };

    /// The copies of a program as runs of bytes, in order, by a decoder independent of the
    /// assembler.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Done {
        moved_bytes: u64,
        bursts: u64,
        widest_burst: u32,
        /// The copy's start; also checks that each burst continues where the last one ended.
        from: Option<u32>,
        to: Option<u32>,
        events: Vec<u8>,
        barriers: u64,
    }

    /// Executes `words` up to DMAEND, and panics at anything that could upset real silicon.
    fn run(words: &[u32]) -> Done {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (mut pc, mut done) = (0_usize, Done::default());
        let (mut sar, mut dar, mut ccr, mut lc) = (0_u32, 0_u32, 0_u32, [0_u8; 2]);
        let mut loaded: Option<u32> = None;
        loop {
            let operand = |n: usize| code[pc + n];
            match code[pc] {
                0xBC => {
                    let value =
                        u32::from_le_bytes([operand(2), operand(3), operand(4), operand(5)]);
                    match operand(1) {
                        0 => sar = value,
                        1 => ccr = value,
                        2 => dar = value,
                        other => panic!("DMAMOV to {other}"),
                    }
                    assert_eq!(loaded, None, "a register changes while data is in the buffer");
                    pc += 6;
                }
                0x04 => {
                    assert_eq!(loaded, None, "a load on top of a load");
                    let (size, beats) = (1 << (ccr >> 1 & 7), (ccr >> 4 & 15) + 1);
                    assert_eq!(ccr & 1, 1, "the source counts up");
                    burst(sar, size, beats);
                    done.from.get_or_insert(sar);
                    loaded = Some(size * beats);
                    done.bursts += 1;
                    done.widest_burst = done.widest_burst.max(size * beats);
                    sar = sar.wrapping_add(size * beats);
                    pc += 1;
                }
                0x08 => {
                    let (size, beats) = (1 << (ccr >> 15 & 7), (ccr >> 18 & 15) + 1);
                    assert_eq!(ccr >> 14 & 1, 1, "the destination counts up");
                    burst(dar, size, beats);
                    done.to.get_or_insert(dar);
                    assert_eq!(
                        loaded.take(),
                        Some(size * beats),
                        "a store takes what its load brought"
                    );
                    done.moved_bytes += u64::from(size * beats);
                    dar = dar.wrapping_add(size * beats);
                    pc += 1;
                }
                0x12 | 0x13 => {
                    done.barriers += 1;
                    pc += 1;
                }
                0x20 | 0x22 => {
                    lc[usize::from(code[pc] >> 1 & 1)] = operand(1);
                    pc += 2;
                }
                0x38 | 0x3C => {
                    let counter = &mut lc[usize::from(code[pc] >> 2 & 1)];
                    if *counter == 0 {
                        pc += 2;
                    } else {
                        *counter -= 1;
                        pc -= usize::from(operand(1));
                    }
                }
                0x34 => {
                    assert_eq!(operand(1) & 7, 0);
                    done.events.push(operand(1) >> 3);
                    assert_eq!(code[pc - 1], 0x13, "the event waits for the writes");
                    pc += 2;
                }
                0x00 => {
                    assert_eq!(loaded, None);
                    assert!(
                        code[pc + 1..].iter().all(|&byte| byte == 0),
                        "only DMAEND to the end of the last word"
                    );
                    return done;
                }
                other => panic!("instruction {other:#x} at {pc}"),
            }
        }
    }

    /// Every burst must be a power of two of bytes, at a multiple of itself, so within one page of
    /// 4 KiB.
    fn burst(addr: u32, size: u32, beats: u32) {
        let bytes = size * beats;
        assert!(bytes.is_power_of_two() && beats <= 16 && bytes <= 4096, "{beats} beats of {size}");
        assert_eq!(addr % bytes, 0, "a burst of {bytes} at {addr:#x}");
    }

    fn expect(core: &Core, from: u32, to: u32, len_bytes: u32) -> (Done, usize) {
        let program = copy(core, from, to, len_bytes).unwrap();
        let done = run(program.words());
        assert_eq!(
            done.moved_bytes,
            u64::from(len_bytes),
            "{from:#x} to {to:#x}, {len_bytes} bytes"
        );
        assert_eq!((done.from, done.to), (Some(from), Some(to)));
        assert_eq!(done.events, vec![core.event]);
        assert!(program.words().len() * 4 <= PROGRAM_BYTES);
        (done, program.len_bytes)
    }

    #[test]
    fn every_small_copy_moves_each_byte_once() {
        for from in (0..32).step_by(STEP) {
            for to in (0..32).step_by(STEP) {
                for len_bytes in 1..=300 {
                    expect(&CORE, 0x1000_0FF0 + from, 0x2000_0FF0 + to, len_bytes);
                }
            }
        }
    }

    #[test]
    fn every_core_gets_bursts_that_it_can_hold() {
        // Splitmix64: reproducible numbers.
        let mut state = 1_u64;
        let mut below = |bound: u32| -> u32 {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            (mixed >> 32) as u32 % bound
        };
        for bus_bytes in [4, 8, 16] {
            for buffer_words in [1, 2, 3, 4, 7, 8, 16, 17, 128, 1024] {
                for barriers in [false, true] {
                    let core = Core { bus_bytes, buffer_words, barriers, ..CORE };
                    for _ in (0..400).step_by(STEP) {
                        let (from, to) = (below(0x7FF0_0000), 0x8000_0000 + below(0x7FF0_0000));
                        // Low bits that are equal as often as not.
                        let to = if below(2) == 0 { to & !0xFFF | from & 0xFFF } else { to };
                        let (done, _) = expect(&core, from, to, 1 + below(20_000));
                        assert!(
                            done.widest_burst <= buffer_words * bus_bytes
                                && done.widest_burst <= 16 * bus_bytes
                        );
                        assert_eq!(done.barriers, 1 + if barriers { 2 * done.bursts } else { 0 });
                    }
                }
            }
        }
    }

    #[test]
    fn loops_count_right_at_their_edges() {
        for around in [
            256,
            2 * 256,
            65_536 - 256,
            65_536,
            65_536 + 256,
            2 * 65_536,
            5 * 65_536,
            BLOCKS_MAX - 256,
        ] {
            for count in around - 1..=around + 1 {
                // Byte by byte, and in whole bursts.
                expect(&CORE, 0x1000_0000, 0x2000_0001, count);
                if count < 100_000 {
                    let (done, _) = expect(&CORE, 0x1000_0000, 0x2000_0000, count * 128);
                    assert_eq!(done.bursts, u64::from(count));
                }
            }
        }
        expect(&CORE, 1, 2, BLOCKS_MAX);
    }

    #[test]
    fn the_longest_program() {
        // 16 bytes wide, so the largest block is 256: eight blocks before it and eight after, all
        // three loops, and barriers.
        let core = Core {
            bus_bytes: 16,
            nonsecure: true,
            coherent: true,
            barriers: true,
            event: 31,
            ..CORE
        };
        let middle = (REPEATS - 1) * ROUNDS * ROUNDS + (ROUNDS - 1) * ROUNDS + (ROUNDS - 1);
        let program = copy(&core, 1, 0x8000_0001, 255 + middle * 256 + 255).unwrap();
        assert_eq!(program.len_bytes, 334, "the sum beside PROGRAM_BYTES");
        // With one more round of the nested loops, the others have none.
        assert!(
            copy(&core, 1, 0x8000_0001, 255 + (middle + 1) * 256 + 255).unwrap().len_bytes < 334
        );
    }

    #[test]
    fn line_aligned_copy_uses_line_bursts() {
        assert_eq!(CORE.block_bytes(0x1000, 0x2040), 64);
        assert_eq!(CORE.block_bytes(0x1000, 0x2080), 128);
        assert_eq!(CORE.block_bytes(0x1003, 0x2083), 128, "it is the difference that counts");
        assert_eq!(CORE.block_bytes(0x1000, 0x2001), 1);
        assert_eq!(CORE.block_bytes(0x1000, 0x1000), 128);
        assert_eq!(CORE.block_bytes(0, 0x8000_0000), 128);
        let (done, len_bytes) = expect(&CORE, 0x1000_0000, 0x2000_0000, 1 << 20);
        assert_eq!((done.bursts, len_bytes), (8192, 32));
    }

    #[test]
    fn every_block_has_security_and_caching() {
        let ccrs = |core: &Core| -> Vec<u32> {
            let program = copy(core, 0x1001, 0x2001, 300).unwrap();
            let code: Vec<u8> =
                program.words().iter().flat_map(|word| word.to_le_bytes()).collect();
            code.windows(6)
                .filter(|code| code[..2] == [0xBC, 1])
                .map(|c| u32::from_le_bytes([c[2], c[3], c[4], c[5]]))
                .collect()
        };
        let bits =
            |ccr: u32| [ccr >> 8 & 7, ccr >> 11 & 7, ccr >> 22 & 7, ccr >> 25 & 7, ccr >> 28];
        assert!(ccrs(&CORE).len() > 8);
        assert!(ccrs(&CORE).iter().all(|&ccr| bits(ccr) == [0; 5]));
        assert!(
            ccrs(&Core { nonsecure: true, ..CORE }).iter().all(|&ccr| bits(ccr) == [2, 0, 2, 0, 0])
        );
        assert!(
            ccrs(&Core { coherent: true, ..CORE }).iter().all(|&ccr| bits(ccr) == [0, 2, 0, 2, 0])
        );
    }
}

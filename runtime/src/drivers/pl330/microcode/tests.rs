//! Each program, executed by a model of the instructions that it uses.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed, which is its purpose; random numbers are cut to size"
)]

use super::*;
use std::{vec, vec::Vec};

/// All on the machines that build. On others the same arithmetic is done by an emulator.
const STEP: usize = if cfg!(target_arch = "x86_64") { 1 } else { 5 };

const CORE: Core = Core { bus_bytes: 8, buffer_words: 128, nonsecure: false, coherent: false, barriers: false, event: 3 };

/// The copies of a program, by a decoder that knows nothing of the assembler: runs of bytes, in
/// order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Done {
    moved_bytes: u64,
    bursts: u64,
    widest_burst: u32,
    /// Where the copy began, and that each burst went on where the last one had ended.
    from: Option<u32>,
    to: Option<u32>,
    events: Vec<u8>,
    barriers: u64,
}

/// Executes `words` to its DMAEND, and panics at whatever a silicon controller could take
/// badly.
fn run(words: &[u32]) -> Done {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (mut pc, mut done) = (0_usize, Done::default());
    let (mut sar, mut dar, mut ccr, mut lc) = (0_u32, 0_u32, 0_u32, [0_u8; 2]);
    let mut loaded: Option<u32> = None;
    loop {
        let operand = |n: usize| code[pc + n];
        match code[pc] {
            0xBC => {
                let value = u32::from_le_bytes([operand(2), operand(3), operand(4), operand(5)]);
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
                assert_eq!(loaded.take(), Some(size * beats), "a store takes what its load brought");
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
                assert!(code[pc + 1..].iter().all(|&byte| byte == 0), "only DMAEND to the end of the last word");
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
    assert_eq!(done.moved_bytes, u64::from(len_bytes), "{from:#x} to {to:#x}, {len_bytes} bytes");
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
    // Splitmix64: the same numbers for ever.
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
                    // As often equal in their low bits as not.
                    let to = if below(2) == 0 { to & !0xFFF | from & 0xFFF } else { to };
                    let (done, _) = expect(&core, from, to, 1 + below(20_000));
                    assert!(done.widest_burst <= buffer_words * bus_bytes && done.widest_burst <= 16 * bus_bytes);
                    assert_eq!(done.barriers, 1 + if barriers { 2 * done.bursts } else { 0 });
                }
            }
        }
    }
}

#[test]
fn loops_count_right_at_their_edges() {
    for around in [256, 2 * 256, 65_536 - 256, 65_536, 65_536 + 256, 2 * 65_536, 5 * 65_536, BLOCKS_MAX - 256] {
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
    let core = Core { bus_bytes: 16, nonsecure: true, coherent: true, barriers: true, event: 31, ..CORE };
    let middle = (REPEATS - 1) * ROUNDS * ROUNDS + (ROUNDS - 1) * ROUNDS + (ROUNDS - 1);
    let program = copy(&core, 1, 0x8000_0001, 255 + middle * 256 + 255).unwrap();
    assert_eq!(program.len_bytes, 334, "the sum beside PROGRAM_BYTES");
    // One more round of the nested loops leaves none for the others.
    assert!(copy(&core, 1, 0x8000_0001, 255 + (middle + 1) * 256 + 255).unwrap().len_bytes < 334);
}

#[test]
fn buffers_at_lines_are_copied_in_bursts_of_lines() {
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
fn what_the_channel_may_and_how_the_port_looks_is_in_every_block() {
    let ccrs = |core: &Core| -> Vec<u32> {
        let program = copy(core, 0x1001, 0x2001, 300).unwrap();
        let code: Vec<u8> = program.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        code.windows(6).filter(|code| code[..2] == [0xBC, 1]).map(|c| u32::from_le_bytes([c[2], c[3], c[4], c[5]])).collect()
    };
    let bits = |ccr: u32| [ccr >> 8 & 7, ccr >> 11 & 7, ccr >> 22 & 7, ccr >> 25 & 7, ccr >> 28];
    assert!(ccrs(&CORE).len() > 8);
    assert!(ccrs(&CORE).iter().all(|&ccr| bits(ccr) == [0; 5]));
    assert!(ccrs(&Core { nonsecure: true, ..CORE }).iter().all(|&ccr| bits(ccr) == [2, 0, 2, 0, 0]));
    assert!(ccrs(&Core { coherent: true, ..CORE }).iter().all(|&ccr| bits(ccr) == [0, 2, 0, 2, 0]));
}

#![allow(
    clippy::indexing_slicing,
    reason = "each index is below a memory's depth: `at` sees to it"
)]
//! VTA's memories and its arithmetic. Numbers are those of `config/pynq_sample.json`: a batch of 1,
//! blocks of 16, inputs and weights of 8 bits, accumulators of 32.

use super::insn::{ACC, Access, INP, Insn, Loop, UOP, WGT, indices};
use contigo::{
    DevAddr,
    sim::{BusError, SimBus},
};

/// `VTA_LOG_BLOCK` 4.
const BLOCK: usize = 16;
/// `VTA_LOG_UOP_BUFF_SIZE` 15, with micro-operations of 4 bytes.
const UOPS: usize = (1 << 15) / 4;
/// `VTA_LOG_INP_BUFF_SIZE` 15, with elements of 16 bytes.
const INPUTS: usize = (1 << 15) / BLOCK;
/// `VTA_LOG_WGT_BUFF_SIZE` 18, with elements of 256 bytes.
const WEIGHTS: usize = (1 << 18) / (BLOCK * BLOCK);
/// `VTA_LOG_ACC_BUFF_SIZE` 17, with elements of 64 bytes.
const ACCUMULATORS: usize = (1 << 17) / (4 * BLOCK);

/// The addresses that accesses count from, as the registers have them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bases {
    pub(super) uop: u32,
    pub(super) inp: u32,
    pub(super) wgt: u32,
    pub(super) acc: u32,
    pub(super) out: u32,
}

/// The memories on the chip.
#[derive(Debug)]
pub(super) struct Core {
    uop: Vec<u32>,
    inp: Vec<i8>,
    wgt: Vec<i8>,
    acc: Vec<i32>,
    out: Vec<i8>,
}

impl Core {
    pub(super) fn new() -> Self {
        let acc = ACCUMULATORS * BLOCK;
        Self {
            uop: vec![0; UOPS],
            inp: vec![0; INPUTS * BLOCK],
            wgt: vec![0; WEIGHTS * BLOCK * BLOCK],
            acc: vec![0; acc],
            out: vec![0; acc],
        }
    }

    /// A LOAD into the memory that it names.
    pub(super) fn load(
        &mut self,
        insn: Insn,
        bases: &Bases,
        bus: &mut SimBus<'_>,
    ) -> Result<(), BusError> {
        let access = insn.access();
        let elements = access.columns;
        match access.memory {
            UOP => {
                let bytes = row(bases.uop, access.dram, elements, 4, bus)?;
                for (at, word) in bytes.as_chunks::<4>().0.iter().enumerate() {
                    self.uop[(access.sram + at) % UOPS] = u32::from_le_bytes(*word);
                }
                Ok(())
            }
            // Weights are not padded.
            WGT => {
                let access =
                    Access { pad_top: 0, pad_bottom: 0, pad_left: 0, pad_right: 0, ..access };
                fill(&access, bases.wgt, BLOCK * BLOCK, bus, |element, bytes| {
                    let at = element % WEIGHTS * BLOCK * BLOCK;
                    signed(&mut self.wgt[at..at + BLOCK * BLOCK], bytes);
                })
            }
            INP => fill(&access, bases.inp, BLOCK, bus, |element, bytes| {
                let at = element % INPUTS * BLOCK;
                signed(&mut self.inp[at..at + BLOCK], bytes);
            }),
            ACC => fill(&access, bases.acc, 4 * BLOCK, bus, |element, bytes| {
                let at = element % ACCUMULATORS * BLOCK;
                for (to, word) in self.acc[at..at + BLOCK].iter_mut().zip(bytes.as_chunks().0) {
                    *to = i32::from_le_bytes(*word);
                }
            }),
            _ => Ok(()),
        }
    }

    /// A STORE of the outputs.
    pub(super) fn store(
        &self,
        insn: Insn,
        bases: &Bases,
        bus: &mut SimBus<'_>,
    ) -> Result<(), BusError> {
        let access = insn.access();
        for y in 0..access.rows {
            for x in 0..access.columns {
                let at = (access.sram + y * access.columns + x) % ACCUMULATORS * BLOCK;
                let bytes: Vec<u8> =
                    self.out[at..at + BLOCK].iter().map(|each| each.cast_unsigned()).collect();
                bus.write(address(bases.out, access.dram + y * access.stride + x, BLOCK), &bytes)?;
            }
        }
        Ok(())
    }

    /// GEMM: an input times a weight's block, added to an accumulator.
    pub(super) fn gemm(&mut self, insn: Insn) {
        let (outer, inner) = insn.weight_factors();
        let looped = insn.looped();
        for (step, dst, src, wgt) in self.steps(&looped) {
            let weight = (wgt + step.0 * outer + step.1 * inner) % WEIGHTS * BLOCK * BLOCK;
            for column in 0..BLOCK {
                let weights = &self.wgt[weight + column * BLOCK..][..BLOCK];
                let inputs = &self.inp[src % INPUTS * BLOCK..][..BLOCK];
                let sum: i32 =
                    weights.iter().zip(inputs).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
                let sum = self.acc[dst * BLOCK + column].wrapping_add(sum);
                self.put(dst * BLOCK + column, if looped.resets { 0 } else { sum }, sum);
            }
        }
    }

    /// An operation of two accumulators, or of one and an immediate.
    pub(super) fn alu(&mut self, insn: Insn) {
        let (operation, immediate) = insn.operation();
        for (_, dst, src, _) in self.steps(&insn.looped()) {
            for column in 0..BLOCK {
                let left = self.acc[dst * BLOCK + column];
                let right =
                    immediate.unwrap_or_else(|| self.acc[src % ACCUMULATORS * BLOCK + column]);
                // `ap_int<5>`: a negative shift goes to the left.
                let by = right << 27 >> 27;
                let value = match operation {
                    0 => left.min(right),
                    1 => left.max(right),
                    2 => left.wrapping_add(right),
                    3 if by >= 0 => left >> by,
                    3 => left.wrapping_shl(by.unsigned_abs()),
                    _ => left.wrapping_mul(right << 24 >> 24),
                };
                self.put(dst * BLOCK + column, value, value);
            }
        }
    }

    /// An accumulator, and the output beside it, which has its low byte.
    fn put(&mut self, at: usize, acc: i32, out: i32) {
        self.acc[at] = acc;
        #[allow(clippy::cast_possible_truncation, reason = "the hardware keeps the low bits")]
        let byte = out as i8;
        self.out[at] = byte;
    }

    /// Every step of both loops: their counters, and the indices of accumulator, source and weight.
    fn steps(&self, looped: &Loop) -> Vec<((usize, usize), usize, usize, usize)> {
        let mut steps = Vec::new();
        for outer in 0..looped.outer {
            for inner in 0..looped.inner {
                for at in looped.uops.0..looped.uops.1 {
                    let (dst, src, wgt) = indices(self.uop[at % UOPS]);
                    let dst = (dst + outer * looped.dst.0 + inner * looped.dst.1) % ACCUMULATORS;
                    steps.push((
                        (outer, inner),
                        dst,
                        src + outer * looped.src.0 + inner * looped.src.1,
                        wgt,
                    ));
                }
            }
        }
        steps
    }
}

/// The bus address of an element: addresses have 32 bits.
fn address(base: u32, element: usize, bytes: usize) -> DevAddr {
    DevAddr(u64::from(base).wrapping_add(element as u64 * bytes as u64) & 0xFFFF_FFFF)
}

/// Elements that follow each other in memory.
fn row(
    base: u32,
    first: usize,
    elements: usize,
    bytes: usize,
    bus: &mut SimBus<'_>,
) -> Result<Vec<u8>, BusError> {
    let mut row = vec![0; elements * bytes];
    if !row.is_empty() {
        bus.read(address(base, first, bytes), &mut row)?;
    }
    Ok(row)
}

/// A 2D access with zeros around it: `put` gets each element and its bytes.
fn fill(
    access: &Access,
    base: u32,
    bytes: usize,
    bus: &mut SimBus<'_>,
    mut put: impl FnMut(usize, &[u8]),
) -> Result<(), BusError> {
    let zero = vec![0; bytes];
    let width = access.pad_left + access.columns + access.pad_right;
    let mut element = access.sram;
    let zeros = |element: &mut usize, count: usize, put: &mut dyn FnMut(usize, &[u8])| {
        for _ in 0..count {
            put(*element, &zero);
            *element += 1;
        }
    };
    zeros(&mut element, width * access.pad_top, &mut put);
    for y in 0..access.rows {
        zeros(&mut element, access.pad_left, &mut put);
        for part in
            row(base, access.dram + y * access.stride, access.columns, bytes, bus)?.chunks(bytes)
        {
            put(element, part);
            element += 1;
        }
        zeros(&mut element, access.pad_right, &mut put);
    }
    zeros(&mut element, width * access.pad_bottom, &mut put);
    Ok(())
}

fn signed(to: &mut [i8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.cast_signed();
    }
}

//! Instructions as VTA has them, transcribed from the structures of apache/tvm-vta,
//! `include/vta/hw_spec.h`, for `config/pynq_sample.json`: bits from the lowest on.

/// An instruction: `VTA_LOG_INS_WIDTH` 7.
pub(super) const BYTES: usize = 16;

/// The bits `from..from + bits` of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Insn(u128);

impl Insn {
    pub(super) const fn new(bytes: [u8; BYTES]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    #[allow(clippy::cast_possible_truncation, reason = "no field has more than 32 bits")]
    const fn field(self, from: u32, bits: u32) -> usize {
        (self.0 >> from & ((1 << bits) - 1)) as usize
    }

    pub(super) const fn opcode(self) -> Option<Opcode> {
        match self.field(0, 3) {
            0 => Some(Opcode::Load),
            1 => Some(Opcode::Store),
            2 => Some(Opcode::Gemm),
            3 => Some(Opcode::Finish),
            4 => Some(Opcode::Alu),
            _ => None,
        }
    }
    pub(super) const fn pops_prev(self) -> bool {
        self.field(3, 1) != 0
    }
    pub(super) const fn pops_next(self) -> bool {
        self.field(4, 1) != 0
    }
    pub(super) const fn pushes_prev(self) -> bool {
        self.field(5, 1) != 0
    }
    pub(super) const fn pushes_next(self) -> bool {
        self.field(6, 1) != 0
    }

    /// `VTAMemInsn`: the fields behind the 58th bit begin with the second word.
    pub(super) const fn access(self) -> Access {
        Access {
            memory: self.field(7, 3),
            sram: self.field(10, 16),
            dram: self.field(26, 32),
            rows: self.field(64, 16),
            columns: self.field(80, 16),
            stride: self.field(96, 16),
            pad_top: self.field(112, 4),
            pad_bottom: self.field(116, 4),
            pad_left: self.field(120, 4),
            pad_right: self.field(124, 4),
        }
    }

    /// The fields that `VTAGemInsn` and `VTAAluInsn` share. The depths of memories: 2^13
    /// micro-operations, 2^11 accumulators, 2^11 inputs, 2^10 weights.
    pub(super) const fn looped(self) -> Loop {
        Loop {
            resets: self.field(7, 1) != 0,
            uops: (self.field(8, 13), self.field(21, 14)),
            outer: self.field(35, 14),
            inner: self.field(49, 14),
            dst: (self.field(64, 11), self.field(75, 11)),
            src: (self.field(86, 11), self.field(97, 11)),
        }
    }

    /// `VTAGemInsn`'s last two fields.
    pub(super) const fn weight_factors(self) -> (usize, usize) {
        (self.field(108, 10), self.field(118, 10))
    }

    /// `VTAAluInsn`'s operation, and its immediate where it has one.
    pub(super) fn operation(self) -> (usize, Option<i32>) {
        #[allow(clippy::cast_possible_truncation, reason = "16 bits")]
        let immediate = i32::from(self.field(112, 16) as u16 as i16);
        (self.field(108, 3), (self.field(111, 1) != 0).then_some(immediate))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opcode {
    Load,
    Store,
    Gemm,
    Finish,
    Alu,
}

/// `VTA_MEM_ID_UOP`, `_WGT`, `_INP`, `_ACC`.
pub(super) const UOP: usize = 0;
pub(super) const WGT: usize = 1;
pub(super) const INP: usize = 2;
pub(super) const ACC: usize = 3;

/// A 2D access to memory, in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) memory: usize,
    pub(super) sram: usize,
    pub(super) dram: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) stride: usize,
    pub(super) pad_top: usize,
    pub(super) pad_bottom: usize,
    pub(super) pad_left: usize,
    pub(super) pad_right: usize,
}

/// Two loops around a range of micro-operations; factors are (outer, inner).
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub(super) resets: bool,
    pub(super) uops: (usize, usize),
    pub(super) outer: usize,
    pub(super) inner: usize,
    pub(super) dst: (usize, usize),
    pub(super) src: (usize, usize),
}

/// A micro-operation's indices: 11 bits, 11 bits, 10 bits.
pub(super) const fn indices(uop: u32) -> (usize, usize, usize) {
    ((uop & 0x7FF) as usize, (uop >> 11 & 0x7FF) as usize, (uop >> 22) as usize)
}

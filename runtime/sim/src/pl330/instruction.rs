//! The instructions that the model executes, by Arm DDI 0424C, 4.3.

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// DMAEND.
    End,
    /// DMANOP, and DMARMB: here every load finishes before the next instruction.
    Nothing,
    /// DMAWMB.
    WriteBarrier,
    /// DMALD, unconditional.
    Load,
    /// DMAST, unconditional.
    Store,
    /// DMASEV.
    Event(u8),
    /// DMAWFE.
    WaitForEvent(u8),
    /// DMALP: the counter, and the number of rounds less one.
    Loop(usize, u8),
    /// DMALPEND: the counter (`None` for DMALPFE's endless loop), and the jump's distance back.
    LoopEnd(Option<usize>, u8),
    /// DMAMOV: SAR, CCR or DAR, by their numbers.
    Move(u8, u32),
}

/// Returns the length of the instruction with this first byte; `None`: it is undefined, or not
/// modelled.
pub(super) const fn len_bytes(opcode: u8) -> Option<usize> {
    match opcode {
        0x00 | 0x04 | 0x08 | 0x12 | 0x13 | 0x18 => Some(1),
        0x20 | 0x22 | 0x28 | 0x34 | 0x36 | 0x38 | 0x3C => Some(2),
        0xBC => Some(6),
        _ => None,
    }
}

/// Decodes the instruction in `code`, whose length follows from its first byte; `None`: an operand
/// that must be 0 is not.
pub(super) const fn decode(code: [u8; 6]) -> Option<Instruction> {
    let [opcode, operand, b0, b1, b2, b3] = code;
    Some(match opcode {
        0x00 => Instruction::End,
        0x04 => Instruction::Load,
        0x08 => Instruction::Store,
        0x13 => Instruction::WriteBarrier,
        0x20 => Instruction::Loop(0, operand),
        0x22 => Instruction::Loop(1, operand),
        0x28 => Instruction::LoopEnd(None, operand),
        0x38 => Instruction::LoopEnd(Some(0), operand),
        0x3C => Instruction::LoopEnd(Some(1), operand),
        0x34 if operand & 7 == 0 => Instruction::Event(operand >> 3),
        0x36 if operand & 7 == 0 => Instruction::WaitForEvent(operand >> 3),
        0xBC if operand <= 2 => Instruction::Move(operand, u32::from_le_bytes([b0, b1, b2, b3])),
        0x12 | 0x18 => Instruction::Nothing,
        _ => return None,
    })
}

//! A job of a simulated kernel, for a function that gets whole operands: a callback of C, a
//! function of Python.

use contigo::sim::ap_ctrl::{KernelCall, KernelError};
use contigo::{Direction, OperandSpec};

/// The words that a kernel returns.
pub type Results = [u32; contigo::design::kernel::MAX_RESULTS];

/// A job of a simulated kernel, copied out of the board's memory.
#[derive(Debug)]
pub struct KernelJob {
    /// No other job of the kernel has this number.
    pub number: u64,
    /// The scalars, in the map's order.
    pub scalars: Vec<u64>,
    /// The bytes of each operand, in the map's order. Of one that the kernel only writes: those
    /// that are there before.
    pub operands: Vec<Vec<u8>>,
}

impl KernelJob {
    /// Reads the operands' bytes, as the kernel does.
    ///
    /// # Errors
    /// Those of [`KernelCall::read`].
    pub fn of(call: &mut KernelCall<'_, '_>) -> Result<Self, KernelError> {
        let scalars = (0..call.map().scalars().len()).map(|index| call.scalar(index)).collect();
        let operands = (0..call.map().operands().len())
            .map(|index| {
                let len_bytes = call.len_bytes(index);
                let Some(last) = len_bytes.checked_sub(1) else { return Ok(Vec::new()) };
                // Before memory is taken for a length that a program made up.
                call.probe(index, last, &mut [0])?;
                let mut bytes = vec![0; usize::try_from(len_bytes).unwrap_or(usize::MAX)];
                match direction(call, index) {
                    Direction::FromDevice => call.probe(index, 0, &mut bytes)?,
                    _ => call.read(index, 0, &mut bytes)?,
                }
                Ok(bytes)
            })
            .collect::<Result<_, KernelError>>()?;
        Ok(Self { number: call.number(), scalars, operands })
    }

    /// Writes the operands that the kernel writes.
    ///
    /// # Errors
    /// Those of [`KernelCall::write`]. [`KernelError::Failed`]: an operand has another length.
    pub fn store(operands: &[Vec<u8>], call: &mut KernelCall<'_, '_>) -> Result<(), KernelError> {
        for (index, bytes) in operands.iter().enumerate() {
            if call.len_bytes(index) != bytes.len() as u64 {
                return Err(KernelError::Failed);
            }
            if !bytes.is_empty() && direction(call, index).device_writes() {
                call.write(index, 0, bytes)?;
            }
        }
        Ok(())
    }
}

fn direction(call: &KernelCall<'_, '_>, index: usize) -> Direction {
    call.map()
        .operands()
        .get(index)
        .map_or(Direction::ToDevice, |OperandSpec { direction, .. }| *direction)
}

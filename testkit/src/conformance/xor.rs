//! The smallest accelerator: the last operand becomes the exclusive or of all operands that it reads, and a key.
#![allow(unsafe_code, reason = "implementing `Accelerator` is a promise about the hardware")]

use super::Harness;
use contigo::{Accelerator, DevSlice, Direction, Error, Port, Result, Timeout};

/// With one operand it works in place, with two it copies, with three it mixes.
#[derive(Debug)]
pub struct Xor<'h, H> {
    device: &'h H,
    port: Port,
    job: Option<(Vec<DevSlice>, u8)>,
    start_fails: bool,
    /// Bytes that it writes behind its output.
    overrun_bytes: usize,
    /// It says that it has stopped, and goes on.
    lies: bool,
}

impl<'h, H: Harness> Xor<'h, H> {
    /// An accelerator whose memory accesses `device` makes.
    pub fn new(device: &'h H) -> Self {
        Self::behind(device, device.port())
    }

    /// One that says that it is behind `port`.
    pub fn behind(device: &'h H, port: Port) -> Self {
        Self { device, port, job: None, start_fails: false, overrun_bytes: 0, lies: false }
    }

    /// An accelerator whose `start` reports a fault when all of its job is done already: the doorbell was rung.
    pub fn with_a_start_that_fails(device: &'h H) -> Self {
        Self { start_fails: true, ..Self::new(device) }
    }

    /// One that writes so many bytes behind its output, in a block where nobody has a view of them.
    #[must_use]
    pub fn with_overrun(self, overrun_bytes: usize) -> Self {
        Self { overrun_bytes, ..self }
    }

    /// One whose `quiesce` says that it has stopped while it has not: [`run_on`](Self::run_on).
    #[must_use]
    pub fn that_lies_of_its_end(self) -> Self {
        Self { lies: true, ..self }
    }

    /// Does what is left of a job that was said to be over.
    pub fn run_on(&self) {
        if let Some((operands, key)) = &self.job {
            let _ = self.run(operands, *key);
        }
    }

    /// What the device does when it runs: as late as it can, in the poll that finds it done.
    fn run(&self, operands: &[DevSlice], key: u8) -> Result<()> {
        let fault = |status, what| move |_| Error::Fault { device: "xor", status, what };
        let Some((output, inputs)) = operands.split_last() else { return Ok(()) };
        let inputs = if inputs.is_empty() { operands } else { inputs };
        let mut result = vec![key; output.len_bytes + self.overrun_bytes];
        for input in inputs {
            let mut bytes = vec![0; input.len_bytes];
            self.device.device_read(input.addr, &mut bytes).map_err(fault(1, "a bus error while reading"))?;
            for (sum, byte) in result.iter_mut().zip(bytes) {
                *sum ^= byte;
            }
        }
        self.device.device_write(output.addr, &result).map_err(fault(2, "a bus error while writing"))
    }

    fn check(operands: &[DevSlice]) -> Result<()> {
        let Some((output, inputs)) = operands.split_last() else { return Ok(()) };
        match inputs.iter().zip(0..).find(|(input, _)| input.len_bytes != output.len_bytes) {
            Some((input, index)) => Err(Error::BufferSize { index, need_bytes: output.len_bytes as u64, have_bytes: input.len_bytes }),
            None => Ok(()),
        }
    }
}

/// What a start that fails says.
pub const START_FAILED: Error = Error::Fault { device: "xor", status: 3, what: "a doorbell that was answered with an error" };
const READ: Direction = Direction::ToDevice;
const WRITE: Direction = Direction::FromDevice;

macro_rules! operands {
    ($($count:literal: $directions:expr;)*) => {$(
        // SAFETY: 1. `run` touches the operands' bytes and no others, and writes only the last. 2. It runs inside `poll`,
        // and not after `quiesce`, which takes the job away. 3. `check` compares numbers. 4. The port is the harness's.
        unsafe impl<H: Harness> Accelerator<$count> for Xor<'_, H> {
            type Args = u8;
            const NAME: &'static str = "xor";
            const ADDR_BITS: u32 = 64;
            const DIRECTIONS: [Direction; $count] = $directions;

            fn port(&self) -> &Port {
                &self.port
            }

            fn check(&self, buffers: &[DevSlice; $count], _key: &u8) -> Result<()> {
                Self::check(buffers)
            }

            unsafe fn start(&mut self, buffers: &[DevSlice; $count], key: &u8) -> Result<()> {
                if self.start_fails {
                    self.run(buffers, *key)?;
                    return Err(START_FAILED);
                }
                self.job = Some((buffers.to_vec(), *key));
                Ok(())
            }

            fn poll(&mut self, _timeout: Timeout) -> Result<bool> {
                if let Some((operands, key)) = self.job.take() {
                    self.run(&operands, key)?;
                }
                Ok(true)
            }

            fn quiesce(&mut self) -> Result<()> {
                if !self.lies {
                    self.job = None;
                }
                Ok(())
            }
        }
    )*};
}
operands! {
    1: [Direction::Bidirectional];
    2: [READ, WRITE];
    3: [READ, READ, WRITE];
}

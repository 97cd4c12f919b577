//! The smallest driver: the last operand becomes the exclusive or of all operands that it reads,
//! and a key.
#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]

use super::Harness;
use contigo::job::exactly;
use contigo::mem::DevSlice;
use contigo::{Completion, Driver, Error, OperandSpec, Port, Result};
use std::time::Duration;

/// With one operand it works in place, with two it copies, with three it mixes.
#[derive(Debug)]
pub struct Xor<'h, H, const OPERANDS: usize> {
    device: &'h H,
    port: Port,
    job: Option<(Vec<DevSlice>, u32)>,
    start_fails: bool,
    /// Bytes that it writes behind its output.
    overrun_bytes: usize,
    /// It says that it has stopped, and goes on.
    lies: bool,
}

impl<'h, H: Harness, const OPERANDS: usize> Xor<'h, H, OPERANDS> {
    /// A driver whose memory accesses `device` makes.
    pub fn new(device: &'h H) -> Self {
        Self::behind(device, device.port())
    }

    /// One that says that it is behind `port`.
    pub fn behind(device: &'h H, port: Port) -> Self {
        const { assert!(1 <= OPERANDS && OPERANDS <= 3, "it works in place, copies, or mixes") };
        Self { device, port, job: None, start_fails: false, overrun_bytes: 0, lies: false }
    }

    /// One whose `submit` reports a fault when all of its job is done already: the doorbell was
    /// rung.
    pub fn with_a_start_that_fails(device: &'h H) -> Self {
        Self { start_fails: true, ..Self::new(device) }
    }

    /// One that writes so many bytes behind its output, in a block where no view covers them.
    pub fn with_overrun(self, overrun_bytes: usize) -> Self {
        Self { overrun_bytes, ..self }
    }

    /// One whose `stop` says that it has stopped while it has not: [`run_on`](Self::run_on).
    pub fn that_lies_of_its_end(self) -> Self {
        Self { lies: true, ..self }
    }

    /// Does what is left of a job that was said to be over.
    pub fn run_on(&self) {
        if let Some((operands, key)) = &self.job {
            let _ = self.run(operands, *key);
        }
    }

    /// The device's work when it runs: as late as it can, in the poll that finds it done.
    #[allow(clippy::cast_possible_truncation, reason = "the key is a byte")]
    fn run(&self, operands: &[DevSlice], key: u32) -> Result<()> {
        let fault = |status, what| move |_| Error::Fault { device: "xor", status, what };
        let Some((output, inputs)) = operands.split_last() else { return Ok(()) };
        let inputs = if inputs.is_empty() { operands } else { inputs };
        let mut result = vec![key as u8; output.len_bytes + self.overrun_bytes];
        for input in inputs {
            let mut bytes = vec![0; input.len_bytes];
            self.device
                .device_read(input.addr, &mut bytes)
                .map_err(fault(1, "a bus error while reading"))?;
            for (sum, byte) in result.iter_mut().zip(bytes) {
                *sum ^= byte;
            }
        }
        self.device
            .device_write(output.addr, &result)
            .map_err(fault(2, "a bus error while writing"))
    }
}

/// The error of a start that fails.
pub const START_FAILED: Error =
    Error::Fault { device: "xor", status: 3, what: "a doorbell that was answered with an error" };

// SAFETY: 1. `run` touches the operands' bytes and no others, and writes only the last. 2. It runs
// inside `poll`, and not after `stop`, which takes the job away. 4. `check` compares numbers. 5.
// The port is that of the harness.
unsafe impl<H: Harness, const OPERANDS: usize> Driver for Xor<'_, H, OPERANDS> {
    fn name(&self) -> &'static str {
        "xor"
    }

    fn port(&self) -> &Port {
        &self.port
    }

    fn addr_bits(&self) -> u32 {
        64
    }

    fn operands(&self) -> &[OperandSpec] {
        const READ: OperandSpec = OperandSpec::to_device();
        const WRITE: OperandSpec = OperandSpec::from_device();
        match OPERANDS {
            1 => const { &[OperandSpec::in_out()] },
            2 => const { &[READ, WRITE] },
            _ => const { &[READ, READ, WRITE] },
        }
    }

    fn check(&self, operands: &[DevSlice], _key: &[u32]) -> Result<()> {
        let Some((output, inputs)) = operands.split_last() else { return Ok(()) };
        match inputs.iter().zip(0..).find(|(input, _)| input.len_bytes != output.len_bytes) {
            Some((input, index)) => Err(Error::BufferSize {
                index,
                need_bytes: output.len_bytes as u64,
                have_bytes: input.len_bytes,
            }),
            None => Ok(()),
        }
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], key: &[u32]) -> Result<()> {
        let [key] = *exactly(key)?;
        if self.start_fails {
            self.run(operands, key)?;
            return Err(START_FAILED);
        }
        self.job = Some((operands.to_vec(), key));
        Ok(())
    }

    fn poll(&mut self, _timeout: Duration) -> Result<Option<Completion>> {
        let Some((operands, key)) = self.job.take() else { return Ok(None) };
        self.run(&operands, key).map(|()| Some(Completion::of(0)))
    }

    fn stop(&mut self) -> Result<()> {
        if !self.lies {
            self.job = None;
        }
        Ok(())
    }
}

#![allow(
    unsafe_code,
    reason = "implementing `Driver` is a promise about a device, and there is none"
)]
//! A device that touches nothing, and gives the answers of a test.

use contigo::mem::DevSlice;
use contigo::{Completion, Driver, OperandSpec, Port, Result};
use std::time::Duration;

/// A driver of a device that is not there.
#[derive(Debug)]
pub struct Scripted {
    /// Its way to memory.
    pub port: Port,
    /// The one operand of its jobs.
    pub operand: [OperandSpec; 1],
    /// How many jobs it has at once.
    pub depth: usize,
    /// The answer to each start.
    pub start: Result<()>,
    /// The answer to each look.
    pub poll: Result<Option<Completion>>,
}

impl Scripted {
    /// A device behind `port` that takes one job at a time, and never ends it.
    pub const fn new(port: Port, operand: OperandSpec) -> Self {
        Self { port, operand: [operand], depth: 1, start: Ok(()), poll: Ok(None) }
    }
}

// SAFETY: it touches no memory.
unsafe impl Driver for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn port(&self) -> &Port {
        &self.port
    }
    fn addr_bits(&self) -> u32 {
        64
    }
    fn operands(&self) -> &[OperandSpec] {
        &self.operand
    }
    fn depth(&self) -> usize {
        self.depth
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<()> {
        Ok(())
    }
    unsafe fn submit(&mut self, _: usize, _: &[DevSlice], _: &[u32]) -> Result<()> {
        self.start
    }
    fn poll(&mut self, _: Duration) -> Result<Option<Completion>> {
        self.poll
    }
    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
}

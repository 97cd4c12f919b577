//! A device that does what the calls say, and its driver.

use contigo::mem::DevSlice;
use contigo::{Completion, Driver, Error, OperandSpec, Port, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Jobs that the device takes at once.
pub(super) const DEPTH: usize = 3;

/// What the device does.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// Slots of the jobs at work, the oldest first.
    pub(super) running: VecDeque<usize>,
    /// Ends that it has not reported; did the job fail?
    pub(super) done: VecDeque<(usize, bool)>,
    /// A look finds a fault of the channel: before the ends that it has not reported, or behind
    /// them.
    pub(super) is_faulty: bool,
    pub(super) fault_is_first: bool,
    /// The look for more ends behind one finds the fault, before the ends that are left.
    pub(super) fault_is_beside: bool,
    /// The next job is refused by the device itself.
    pub(super) refuses: bool,
    /// How often it does not stop.
    pub(super) sticks: u8,
}

pub(super) const FAULT: Error =
    Error::Fault { device: "script", status: 1, what: "a fault of the channel" };
pub(super) const REFUSED: Error = Error::Fault { device: "script", status: 2, what: "refused" };
pub(super) const STUCK: Error = Error::WillNotStop { device: "script", waited_us: 1, status: 0 };

/// Its driver.
pub(super) struct Scripted {
    pub(super) port: Port,
    pub(super) script: Arc<Mutex<Script>>,
}

// SAFETY: it touches no memory.
unsafe impl Driver for Scripted {
    fn name(&self) -> &'static str {
        "script"
    }
    fn port(&self) -> &Port {
        &self.port
    }
    fn addr_bits(&self) -> u32 {
        64
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::in_out(), OperandSpec::in_out()] }
    }
    fn depth(&self) -> usize {
        DEPTH
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<()> {
        Ok(())
    }
    unsafe fn submit(&mut self, slot: usize, _: &[DevSlice], _: &[u32]) -> Result<()> {
        let mut script = self.script.lock().unwrap();
        if std::mem::take(&mut script.refuses) {
            return Err(REFUSED);
        }
        script.running.push_back(slot);
        Ok(())
    }
    fn poll(&mut self, _: Duration) -> Result<Option<Completion>> {
        let mut script = self.script.lock().unwrap();
        if script.is_faulty && (script.fault_is_first || script.done.is_empty()) {
            script.is_faulty = false;
            return Err(FAULT);
        }
        let end = script.done.pop_front();
        Ok(end.map(|(slot, failed)| Completion {
            failed: failed.then_some("alone"),
            ..Completion::of(slot)
        }))
    }
    fn poll_again(&mut self) -> Result<Option<Completion>> {
        match std::mem::take(&mut self.script.lock().unwrap().fault_is_beside) {
            true => Err(FAULT),
            false => Ok(None),
        }
    }
    fn stop(&mut self) -> Result<()> {
        let mut script = self.script.lock().unwrap();
        if script.sticks > 0 {
            script.sticks -= 1;
            return Err(STUCK);
        }
        script.running.clear();
        script.is_faulty = false;
        Ok(())
    }
}

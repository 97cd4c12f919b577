#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! A self-test of a broken engine must fail, and report how to reproduce the failure.

use super::engine::{Chosen, Registers, copier};
use super::report::Report;
use super::run::{Task, Tested, drive};
use crate::failure::Failure;
use contigo::drivers::zdma::Zdma;
use contigo::job::exactly;
use contigo::mem::DevSlice;
use contigo::names::NameError;
use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{SimBoard, SimDevice};
use contigo::{Completion, Device, Driver, OperandSpec, Queue, Region, Result};
use contigo_exerciser::{Ground, Line};
use std::time::Duration;

/// An engine that, from the tenth copy on, leaves out the last byte of all but the shortest copies.
struct Broken<A> {
    inner: A,
    jobs: u32,
}

// SAFETY: it is the inner engine, on fewer bytes.
unsafe impl<D: Device> Driver for Broken<Zdma<D>> {
    fn name(&self) -> &'static str {
        "broken"
    }
    fn addr_bits(&self) -> u32 {
        32
    }
    fn operands(&self) -> &[OperandSpec] {
        self.inner.operands()
    }
    contigo::forward!(|this| this.inner => port, simulated);
    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        self.inner.check(operands, args)
    }
    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        self.jobs += 1;
        let left = usize::from(self.jobs >= 10 && from.len_bytes > 1);
        let from = DevSlice { len_bytes: from.len_bytes - left, ..*from };
        // SAFETY: the caller's promise, which also holds for fewer bytes.
        unsafe { self.inner.submit(slot, &[from, *to], args) }
    }
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        self.inner.poll(timeout)
    }
    fn stop(&mut self) -> Result<()> {
        self.inner.stop()
    }
}

fn tested(task: &Task<'_>) -> Result<Tested, Failure> {
    let board = SimBoard::new(task.seed);
    let region = Region::new(board.memory(Ground::REGION_BYTES)?)?;
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let queue = Queue::new(Broken { inner: channel.window()?.simple()?, jobs: 0 }, 1)?;
    drive(&region, queue, Line::None, task)
}

fn report(jobs: u64) -> Result<Report, Failure> {
    Ok(both(jobs)?.1)
}

fn both(jobs: u64) -> Result<(Tested, Report), Failure> {
    let name = |error: NameError| Failure::Runtime(error.into());
    let registers = Registers::Device("sim:zdma".parse().map_err(name)?);
    let chosen = Chosen::of(copier("zdma")?, registers);
    let task = Task { seed: 3, jobs, time: None, settings: "" };
    let tested = tested(&task)?;
    let report = Report::new(&"sim".parse().map_err(name)?, &chosen, &task, &tested);
    Ok((tested, report))
}

fn why(report: &Report) -> String {
    report.verdict().err().map(|failure| failure.to_string()).unwrap_or_default()
}

#[test]
fn broken_engine_fails_with_how_to_repeat() -> Result<(), Failure> {
    let failed = report(200)?;
    let text = failed.to_string();
    assert!(
        text.contains("no interrupt: polled only") && text.contains("FAILED: polled: "),
        "{text}"
    );
    let why = why(&failed);
    assert!(why.contains("seed 3, job ") && why.contains("where a job wrote"), "{why}");
    // The failure shows again with the reported number of jobs, and not before the first broken
    // job, the tenth.
    let number = why
        .rsplit_once("(again: --jobs ")
        .and_then(|(_, rest)| rest.strip_suffix(')')?.parse().ok());
    let number: u64 = number.unwrap_or_default();
    assert!(number >= 10, "{why}");
    assert!(report(number)?.verdict().is_err() && report(9)?.verdict().is_ok(), "{why}");
    Ok(())
}

/// For the doctor: wrong bytes are the port's fault.
#[test]
fn a_port_that_loses_bytes_is_not_right() -> Result<(), Failure> {
    for (jobs, right, said) in [(200, false, "where a job wrote"), (9, true, "copies")] {
        let (tested, report) = both(jobs)?;
        let probed = super::judged(&tested, &report, "sim:zdma");
        assert!(probed.port.starts_with("sim") && probed.found.contains(said), "{}", probed.found);
        assert_eq!(probed.right, right);
    }
    Ok(())
}

#![allow(unsafe_code, reason = "implementing `Accelerator` is a promise about the hardware")]
//! A self-test of a broken engine must fail, and say enough to meet the failure again.

use super::{
    engine::Chosen,
    report::Report,
    run::{Line, Outcome, Task, drive},
};
use crate::{failure::Failure, heap::Heap};
use contigo::{
    Accelerator, DevSlice, Device, Direction, Engine, Port, Region, Result, Timeout,
    accel::zdma::Zdma,
    sim::{SimBoard, SimZdma},
};
use contigo_boards::DmaKind;

/// An engine that leaves the last byte of every copy but the shortest, from the tenth on.
struct Short<A>(A, u32);

// SAFETY: the inner engine, on fewer bytes.
unsafe impl<D: Device> Accelerator<2> for Short<Zdma<'_, D>> {
    type Args = ();
    const NAME: &'static str = "short";
    const ADDR_BITS: u32 = 32;
    const DIRECTIONS: [Direction; 2] = [Direction::ToDevice, Direction::FromDevice];

    fn port(&self) -> &Port {
        self.0.port()
    }
    fn check(&self, buffers: &[DevSlice; 2], args: &()) -> Result<()> {
        self.0.check(buffers, args)
    }
    unsafe fn start(&mut self, [from, to]: &[DevSlice; 2], args: &()) -> Result<()> {
        self.1 += 1;
        let left = usize::from(self.1 >= 10 && from.len_bytes > 1);
        let from = DevSlice { len_bytes: from.len_bytes - left, ..*from };
        // SAFETY: the caller's promise, for fewer bytes.
        unsafe { self.0.start(&[from, *to], args) }
    }
    fn poll(&mut self, timeout: Timeout) -> Result<bool> {
        self.0.poll(timeout)
    }
    fn quiesce(&mut self) -> Result<()> {
        self.0.quiesce()
    }
}

fn outcome(task: &Task) -> Result<Outcome, Failure> {
    let board = SimBoard::new(task.seed);
    let region = Region::new(board.memory(super::REGION_BYTES)?)?;
    let channel = SimZdma::new(&board, board.port());
    let engine = Engine::new(Short(Zdma::simple(channel.window()?)?, 0))?;
    drive(&region, engine, &Line::None, task)
}

#[test]
fn a_broken_engine_fails_the_test_and_the_failure_says_how_to_meet_it_again() -> Result<(), Failure> {
    let chosen = Chosen::Sim { kind: DmaKind::Zdma, why: String::new() };
    let report = |jobs| {
        let task = Task { seed: 3, jobs, time: None };
        Ok::<_, Failure>(Report::new(&Heap::Sim, &chosen, &task, &outcome(&task)?))
    };
    let failed = report(200)?;
    let text = failed.to_string();
    assert!(text.contains("no interrupt: polled only") && text.contains("FAILED: polled: "), "{text}");
    let why = failed.verdict().err().map(|failure| failure.to_string()).unwrap_or_default();
    assert!(why.contains("seed 3, job ") && why.contains("where a job wrote"), "{why}");
    // The first wrong job is the last of as many as it says.
    let number = why.rsplit_once("(again: --jobs ").and_then(|(_, rest)| rest.strip_suffix(')')?.parse().ok());
    let number: u64 = number.ok_or(Failure::NotCounting)?;
    assert!(number >= 10, "{why}");
    assert!(report(number)?.verdict().is_err() && report(number - 1)?.verdict().is_ok(), "{why}");
    Ok(())
}

#![allow(
    unsafe_code,
    reason = "a stop program writes registers beside their driver, as a kernel does"
)]
//! The stop program of a driver, which the kernel runs when the program that drove the device is
//! gone: after its success the device accesses no memory.

use super::bench::{Bench, draw};
use super::{Subject, Way};
use crate::conformance::{Failure, Verdict};
use crate::ensure;
use contigo::job::StopProgram;
use contigo::sim::{Faults, Model, SimDevice};
use contigo::{Driver, Error, Mmio, Queue, Result, Wait};
use fastrand::Rng;
use std::time::Duration;

/// Jobs in flight, or in the queue.
const DEPTH: usize = 8;
/// All jobs in flight have ended by then.
const LONG_US: u32 = 5_000;
/// Between two polls of a program.
const STEP_US: u32 = 5;
/// When the program runs: after the jobs are given.
const CUTS_US: [u32; 6] = [0, 1, 2, 5, 10, 30];
/// A device whose first job hangs until a stop, or that does not stop before a reset from outside.
const HANGS: Faults = Faults { hang: 1000, ..Faults::NONE };
const STUCK: Faults = Faults { stuck: 1000, ..Faults::NONE };

/// The registers of a device beside its driver's window.
struct Beside<'d, M>(&'d SimDevice<M>);

// SAFETY: the registers of one device, in which the driver writes nothing while a program runs.
unsafe impl<M: Model> Mmio for Beside<'_, M> {
    fn len_bytes(&self) -> usize {
        self.0.len_bytes()
    }
    fn read32(&self, offset: usize) -> u32 {
        self.0.read32(offset)
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.0.write32(offset, value) }
    }
}

impl<M: Model> Wait for Beside<'_, M> {
    fn now_us(&self) -> u64 {
        self.0.now_us()
    }
    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.0.run_for(timeout_us)
    }
}

/// Runs the stop program with jobs under way, at several times, also on a device that hangs, and on
/// one that does not stop. A driver without a program passes.
pub(super) fn program<S: Subject>(subject: &S) -> Verdict {
    for cut_us in CUTS_US {
        one(subject, Faults::NONE, cut_us)?;
    }
    one(subject, HANGS, 1)?;
    one(subject, STUCK, 1)
}

fn one<S: Subject>(subject: &S, faults: Faults, cut_us: u32) -> Verdict {
    let bench = Bench::new(subject, subject.model(), (1, faults), Way::Plain, 2 * DEPTH)?;
    let (device, mut rng) = (&bench.device, Rng::with_seed(1));
    let told = bench.open(subject, |driver| {
        let program = driver.stop_program();
        if program == StopProgram::NONE {
            return Ok(None);
        }
        let mut queue =
            Queue::new(driver, DEPTH).map_err(|refused| Failure::from(refused.error))?;
        for tag in 0..DEPTH {
            let (mut operands, words, job) = draw(subject, &bench.pool, &mut rng, tag)?;
            queue.submit_list(&mut operands, &words, job.tag())?;
        }
        device.run_for(cut_us)?;
        // SAFETY: a driver's program starts nothing (`Driver`, 7), and the driver does nothing
        // meanwhile.
        let ran = unsafe { program.run(&Beside(device), STEP_US) };
        let counts = || bench.board.counts();
        let touched = || (counts().bytes_read, counts().bytes_written);
        let before = touched();
        device.run_for(LONG_US)?;
        let after = (ran, before, touched());
        Ok(Some((after, recover::<S>(device, &mut queue))))
    })?;
    let Some(((ran, before, after), recovered)) = told else { return Ok(()) };
    let when = format!("{}, {faults:?}, its stop program after {cut_us} us", subject.name());
    ensure!(
        ran.is_err() || before == after,
        "{when}: the device read {} bytes and wrote {} after its success",
        after.0 - before.0,
        after.1 - before.1
    );
    if let (Err(status), true) = (ran, faults == Faults::NONE) {
        return Err(Failure::Wrong(format!("{when} fails: the register has {status:#x}")));
    }
    recovered
}

/// The driver does not know of the program: it stops what it started, by a reset from outside where
/// that is needed.
fn recover<S: Subject>(
    device: &SimDevice<S::Model>,
    queue: &mut Queue<&mut (dyn Driver + '_)>,
) -> Verdict {
    if let Err(Error::WillNotStop { .. }) = queue.stop() {
        device.reset()?;
        queue.stop()?;
    }
    while let Ok(Some(_)) = queue.wait_each(Duration::ZERO, |_, _, _| ()) {}
    while queue.take_back_each(|_, _, _| ()).is_some() {}
    Ok(())
}

//! The energy of a job on each rail that the kernel measures: polled copies of 4 KiB one after the
//! other, between buffers that stay the device's. The processor that looks for their ends is in it.

use super::latency::{handed_over, polled};
use crate::row::{Name, Row, Status};
use crate::setup::{Bench, Place};
use contigo::{Driver, Error, Queue, Region};
use contigo_bringup::machine::Machine;
use contigo_bringup::power::{self, Rail, STEP};
use contigo_exerciser::Line;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Long enough for a hundred readings.
const WORK: Duration = Duration::from_secs(2);
/// As much as the slowest engine here takes at once.
const LEN_BYTES: usize = 4096;
/// Reading the clock is a system call on some processors.
const JOBS_PER_LOOK_AT_THE_CLOCK: u32 = 4;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Energy {
    rail: String,
    memory: String,
    engine: String,
    jobs: u64,
    len_bytes: usize,
    readings: u32,
    idle_microwatts: i64,
    /// From the first to the last reading, the idle power in it.
    microjoules: u64,
    nanojoules_per_job: u64,
}

pub(crate) fn is_measured() -> bool {
    !power::rails(&Machine::this()).is_empty()
}

pub(crate) fn row(name: &Name, place: &Place) -> Row {
    let rails = power::rails(&Machine::this());
    let begun = Instant::now();
    let (jobs, measured) = match place.run(false, Worked { rails: &rails }) {
        Ok((Ok(jobs), measured)) => (jobs, measured),
        Ok((Err(error), _)) | Err(error) => return Row::unopened(name, error),
    };
    let rails: Vec<_> = measured.iter().filter_map(|rail| Energy::of(name, rail, jobs)).collect();
    let said =
        rails.iter().map(|rail| format!("{}: {} nJ a job", rail.rail, rail.nanojoules_per_job));
    let why = measured
        .iter()
        .filter_map(|rail| rail.error.as_ref().map(|error| format!("{}: {error}", rail.rail)));
    let said: Vec<_> = said.chain(why).collect();
    let status = if rails.is_empty() { Status::Skipped } else { Status::Passed };
    let seconds = begun.elapsed().as_secs_f64();
    Row {
        jobs,
        seconds,
        energy: (!rails.is_empty()).then_some(rails),
        ..Row::new(name, status, said.join("; "))
    }
}

struct Worked<'r> {
    rails: &'r [Rail],
}

impl Bench for Worked<'_> {
    type Out = (Result<u64, Error>, Vec<power::Energy>);

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, _line: Line<'_>) -> Self::Out {
        let first = handed_over(region, &mut queue, LEN_BYTES);
        let mut buffers = match first {
            Ok(buffers) => buffers,
            Err(error) => return (Err(error), Vec::new()),
        };
        power::beside(self.rails, STEP, || {
            let (until, mut jobs) = (Instant::now() + WORK, 0);
            while Instant::now() < until {
                for _ in 0..JOBS_PER_LOOK_AT_THE_CLOCK {
                    buffers = polled(&mut queue, buffers, LEN_BYTES)?;
                    jobs += 1;
                }
            }
            Ok(jobs)
        })
    }
}

impl Energy {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "microjoules of some seconds"
    )]
    fn of(name: &Name, rail: &power::Energy, jobs: u64) -> Option<Self> {
        let microjoules = (rail.joules()? * 1e6).max(0.0) as u64;
        Some(Self {
            rail: rail.rail.clone(),
            memory: name.memory.clone(),
            engine: name.engine.clone(),
            jobs,
            len_bytes: LEN_BYTES,
            readings: rail.readings,
            idle_microwatts: rail.idle_microwatts,
            microjoules,
            nanojoules_per_job: microjoules.saturating_mul(1000).checked_div(jobs)?,
        })
    }
}

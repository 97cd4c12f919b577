//! How long the shortest job takes, from the call that starts it to the program's return; and
//! beside it, how late the kernel wakes a program by its clock alone.

use crate::jobs::SLOW_JOBS;
use crate::row::{Name, Row, Status};
use crate::setup::{Bench, Place};
use crate::verdict::others;
use contigo::{Align, DevBuf, Driver, Error, Queue, Region};
use contigo_exerciser::{Events, JOB_TIMEOUT, Line};
use serde::{Deserialize, Serialize};
use std::hint;
use std::time::{Duration, Instant};

pub(crate) const DEFINITION: &str = "A copy of 64 bytes between two buffers that stay the \
    device's, so that no cache is maintained. The interrupt is made ready before the clock is \
    read. Then the job is started, whose last access is the doorbell. Its end is waited for by \
    the interrupt, or by looks without pause. The clock is read again when the wait has returned. \
    The engine's own time is in both, so that the interrupt's cost is the difference. \
    without_interrupt counts jobs whose end was seen with no interrupt, which are left out.";

/// One line of memory, and no driver splits it.
const LEN_BYTES: usize = 64;
const MARK: u8 = 0x5A;
/// The samples, each a number of 64 bits: more would change no percentile here.
const SAMPLES_MAX: u64 = 10_000;
const WARM_UP: u64 = 100;
const SLOW_WARM_UP: u64 = 2;
/// Looks at one job when polled: as the exerciser's.
const LOOKS_MAX: u32 = 20_000_000;
/// Pairs of readings that tell what the clock resolves.
const READINGS: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Latency {
    memory: String,
    engine: String,
    mode: String,
    len_bytes: usize,
    n: u64,
    without_interrupt: u64,
    /// The smallest step of the clock that was seen.
    resolution_ns: u64,
    /// Half of all readings of the clock took no longer: it is in each sample once.
    clock_read_ns: u64,
    min_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

pub(crate) fn row(name: &Name, place: &Place, interrupt: bool, jobs: u64) -> Row {
    let begun = Instant::now();
    let slow = place.engine.is_slow();
    let n = if slow { jobs.min(SLOW_JOBS) } else { jobs.min(SAMPLES_MAX) };
    let warm_up = if slow { SLOW_WARM_UP } else { WARM_UP };
    let row = match place.run(interrupt, Timed { interrupt, n, warm_up }) {
        Ok(Ok(samples)) => match Latency::of(name, samples.ns, samples.without_interrupt) {
            Some(latency) => {
                Row { jobs: n, latency: Some(latency), ..Row::new(name, Status::Passed, "") }
            }
            None => {
                let why = format!("each of {n} jobs was over before its interrupt");
                Row::new(name, Status::Skipped, why)
            }
        },
        Ok(Err(error @ Error::NotFound { .. })) | Err(error @ Error::NotFound { .. })
            if interrupt =>
        {
            Row::new(name, Status::Skipped, error.to_string())
        }
        Ok(Err(error)) | Err(error) => Row::unopened(name, error),
    };
    let reason = row.latency.as_ref().map_or(row.reason.clone(), ToString::to_string);
    Row { seconds: begun.elapsed().as_secs_f64(), reason, ..row }
}

impl std::fmt::Display for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { p50_ns, p99_ns, max_ns, n, .. } = self;
        write!(f, "p50 {p50_ns} ns, p99 {p99_ns} ns, max {max_ns} ns of {n}")
    }
}

struct Timed {
    interrupt: bool,
    n: u64,
    warm_up: u64,
}

struct Samples {
    ns: Vec<u64>,
    without_interrupt: u64,
}

impl Bench for Timed {
    type Out = Result<Samples, Error>;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, line: Line<'_>) -> Self::Out {
        if self.interrupt && line.came().is_none() {
            return Err(Error::NotFound { what: "interrupt of this engine", among: 0.into() });
        }
        let mut buffers = handed_over(region, &mut queue, LEN_BYTES)?;
        let ns = Vec::with_capacity(usize::try_from(self.n).unwrap_or(0));
        let mut samples = Samples { ns, without_interrupt: 0 };
        for turn in 0..self.warm_up + self.n {
            if let (true, Line::Events(events)) = (self.interrupt, line) {
                events.arm()?;
            }
            let came = line.came();
            let begun = Instant::now();
            buffers = if self.interrupt {
                by_interrupt(&mut queue, buffers, line)?
            } else {
                polled(&mut queue, buffers, LEN_BYTES)?
            };
            let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let silent = self.interrupt && line.came() == came;
            if turn >= self.warm_up && silent {
                samples.without_interrupt += 1;
            } else if turn >= self.warm_up {
                samples.ns.push(took);
            }
        }
        let [_, to] = buffers;
        if others(to.into_cpu()?.view_at(..LEN_BYTES)?, MARK) > 0 {
            return Err(Error::NotFound { what: "byte that the engine copied", among: 0.into() });
        }
        Ok(samples)
    }
}

pub(crate) type Buffers = [DevBuf; 2];

/// Two buffers of `len` bytes, which are the device's from the first copy on.
pub(crate) fn handed_over<D: Driver>(
    region: &Region,
    queue: &mut Queue<D>,
    len: usize,
) -> Result<Buffers, Error> {
    let [mut from, mut to] = [region.alloc(len, Align::PAGE)?, region.alloc(len, Align::PAGE)?];
    from.view_mut::<u8>()?.fill(MARK);
    to.view_mut::<u8>()?.fill(!MARK);
    queue.submit([from.to_device(..len), to.from_device(..len)], &[])?;
    ended(queue, JOB_TIMEOUT)
}

/// The only job's buffers. One that does not end is an error, and the caller drops the queue, which
/// stops the device.
fn ended<D: Driver>(queue: &mut Queue<D>, timeout: Duration) -> Result<Buffers, Error> {
    let late = Error::Timeout { timeout_us: contigo::types::timeout_us(timeout)? };
    Ok(queue.wait_device(timeout)?.ok_or(late)?.buffers)
}

fn by_interrupt<D: Driver>(
    queue: &mut Queue<D>,
    [from, to]: Buffers,
    line: Line<'_>,
) -> Result<Buffers, Error> {
    queue.submit([from.to_device(..LEN_BYTES), to.from_device(..LEN_BYTES)], &[])?;
    if let Line::Events(events) = line {
        events.wait(JOB_TIMEOUT)?;
    }
    ended(queue, JOB_TIMEOUT)
}

/// One copy of `len` bytes, which is looked at without pause.
pub(crate) fn polled<D: Driver>(
    queue: &mut Queue<D>,
    [from, to]: Buffers,
    len: usize,
) -> Result<Buffers, Error> {
    queue.submit([from.to_device(..len), to.from_device(..len)], &[])?;
    for _ in 0..LOOKS_MAX {
        if let Some(done) = queue.wait_device(Duration::ZERO)? {
            return Ok(done.buffers);
        }
        hint::spin_loop();
    }
    ended(queue, Duration::ZERO)
}

impl Latency {
    /// Of samples in any order; `None` of none.
    fn of(name: &Name, mut ns: Vec<u64>, without_interrupt: u64) -> Option<Self> {
        ns.sort_unstable();
        let (resolution_ns, clock_read_ns) = clock();
        Some(Self {
            memory: name.memory.clone(),
            engine: name.engine.clone(),
            mode: name.mode.clone().into_owned(),
            len_bytes: LEN_BYTES,
            n: ns.len() as u64,
            without_interrupt,
            resolution_ns,
            clock_read_ns,
            min_ns: *ns.first()?,
            p50_ns: percentile(&ns, 50)?,
            p99_ns: percentile(&ns, 99)?,
            max_ns: *ns.last()?,
        })
    }
}

/// The nearest rank: the smallest sample that `percent` of all are not above.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    sorted.get((sorted.len() * percent).div_ceil(100).checked_sub(1)?).copied()
}

/// The smallest step that the clock was seen to make, and the median time of a reading.
fn clock() -> (u64, u64) {
    let mut steps: Vec<_> = (0..READINGS)
        .map(|_| {
            let first = Instant::now();
            u64::try_from(first.elapsed().as_nanos()).unwrap_or(u64::MAX)
        })
        .collect();
    steps.sort_unstable();
    let median = percentile(&steps, 50).unwrap_or(0);
    // Each difference is a multiple of the clock's step, and some differ by one step.
    let between = steps
        .windows(2)
        .filter_map(|pair| pair.last()?.checked_sub(*pair.first()?))
        .filter(|&step| step > 0)
        .min();
    let smallest = steps.iter().copied().find(|&step| step > 0);
    (between.into_iter().chain(smallest).min().unwrap_or(1), median)
}

/// `cyclictest` is a program of rt-tests, which a board has or has not.
pub(crate) mod cyclictest {
    use serde::Serialize;
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    /// Wakes, a millisecond apart: five seconds.
    const LOOPS: &str = "5000";
    const ARGUMENTS: [&str; 7] = ["-q", "-m", "-p80", "-i1000", "-t1", "-l", LOOPS];
    /// It takes five seconds where nothing is wrong.
    const LIMIT: Duration = Duration::from_secs(30);

    #[derive(Debug, PartialEq, Eq, Serialize)]
    pub(crate) struct Cyclictest {
        arguments: Vec<&'static str>,
        pub(super) n: u64,
        pub(super) min_us: u64,
        pub(super) mean_us: u64,
        pub(super) max_us: u64,
    }

    pub(crate) fn run() -> Result<Cyclictest, String> {
        let said = within(Command::new("cyclictest").args(ARGUMENTS))?;
        let other = || format!("cyclictest printed no summary, but {}", said.trim());
        figures(&said).ok_or_else(other)
    }

    fn within(command: &mut Command) -> Result<String, String> {
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child =
            child.map_err(|error| format!("cyclictest (of rt-tests) cannot be run: {error}"))?;
        let deadline = Instant::now() + LIMIT;
        // Its summary is a line, which the pipe holds.
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < deadline => sleep(Duration::from_millis(20)),
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("cyclictest did not end within {} s", LIMIT.as_secs()));
                }
            }
        };
        let mut said = String::new();
        let _ = child.stdout.take().map(|mut stdout| stdout.read_to_string(&mut said));
        let wants = "it wants root, or the right to priority 80";
        if status.success() { Ok(said) } else { Err(format!("cyclictest: {status}: {wants}")) }
    }

    /// Of `T: 0 ( 123) P:80 I:1000 C:   5000 Min:      2 Act:    3 Avg:    3 Max:      20`.
    pub(super) fn figures(said: &str) -> Option<Cyclictest> {
        let line = said.lines().find(|line| line.trim_start().starts_with("T:"))?;
        let after =
            |key: &str| line.split_once(key)?.1.split_ascii_whitespace().next()?.parse().ok();
        Some(Cyclictest {
            arguments: ARGUMENTS.into(),
            n: after("C:")?,
            min_us: after("Min:")?,
            mean_us: after("Avg:")?,
            max_us: after("Max:")?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let name = Name::figures("latency", "m", "e", "polled");
        let latency = Latency::of(&name, (1..=200).rev().collect(), 3).unwrap();
        let Latency { n, min_ns, p50_ns, p99_ns, max_ns, .. } = latency;
        assert_eq!((n, min_ns, p50_ns, p99_ns, max_ns), (200, 1, 100, 198, 200));
        assert_eq!((latency.without_interrupt, latency.mode.as_str()), (3, "polled"));
        let one = Latency::of(&name, vec![7], 0).unwrap();
        assert_eq!((one.p50_ns, one.p99_ns, one.max_ns), (7, 7, 7));
        assert_eq!(Latency::of(&name, Vec::new(), 9), None);
    }

    #[test]
    fn the_clock_has_a_step() {
        let (step, read) = clock();
        assert!(step > 0 && step <= read.max(1_000_000), "{step} {read}");
    }

    #[test]
    fn its_summary_is_read_and_another_line_is_not() {
        let said = "# /dev/cpu_dma_latency set to 0us\n\
                    T: 0 ( 1234) P:80 I:1000 C:   5000 Min:      2 Act:    3 Avg:    4 Max:      57\n";
        let read = cyclictest::figures(said).unwrap();
        assert_eq!((read.n, read.min_us, read.mean_us, read.max_us), (5000, 2, 4, 57));
        assert_eq!(cyclictest::figures("T: 0 ( 1234) P:80 I:1000 C:   5000 Min:  x"), None);
        assert_eq!(cyclictest::figures(""), None);
    }
}

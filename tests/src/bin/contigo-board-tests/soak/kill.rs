//! A process is killed at work: the module stops its engine, and the next round works.

use crate::{
    checks::{Wrong, killed_while},
    row::{Name, Row, Status},
    setup::{Bench, Place},
};
use contigo::{Driver, Error, Queue, Region};
use contigo_exerciser::{Budget, Exerciser, Ground, Limits, Line};
use std::{
    io::{PipeWriter, Write},
    time::{Duration, Instant},
};

/// Longer than any kill is waited for.
const AT_WORK: Duration = Duration::from_secs(30);

struct AtWork {
    tell: PipeWriter,
    seed: u64,
    interrupt: bool,
    limits: Limits,
}

impl Bench for AtWork {
    type Out = Result<(), Error>;

    fn on<D: Driver>(mut self, region: &Region, mut queue: Queue<D>, line: Line<'_>) -> Self::Out {
        let mut exerciser = Exerciser::new(Ground::new(region)?, self.limits, self.seed)?;
        let _ = self.tell.write_all(&[1]);
        exerciser
            .measure(
                &mut queue,
                line,
                self.interrupt,
                Budget::until(Instant::now() + AT_WORK, u64::MAX),
            )
            .ended
            .map_err(|stopped| stopped.error)
    }
}

pub(super) fn row(name: &Name, place: &Place, seed: u64, interrupt: bool, after: Duration) -> Row {
    let limits = if place.engine.is_slow() { crate::jobs::SLOW_LIMITS } else { Limits::NONE };
    match killed_while(|tell| place.run(interrupt, AtWork { tell, seed, interrupt, limits }), after)
    {
        Ok((true, _)) => Row::new(name, Status::Passed, ""),
        Ok((false, _)) => {
            Row::new(name, Status::Failed, format!("seed {seed}: it ended before it was killed"))
        }
        Err(Wrong::Failed(why) | Wrong::Skipped(why)) => {
            Row::new(name, Status::Failed, format!("seed {seed}: {why}"))
        }
    }
}

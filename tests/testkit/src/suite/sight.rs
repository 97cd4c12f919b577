//! What a run must have seen to have checked anything.

use super::{Subject, Tally};
use crate::conformance::Verdict;
use crate::ensure;

/// So many seeds show everything that a core does at all: half of them have each kind of fault, in
/// every tenth of their jobs or so.
const SEEDS: u64 = 64;

/// Something that a run of many seeds has seen, unless the core never does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// A late interrupt.
    LateIrq,
    /// A lost interrupt.
    LostIrq,
    /// A job that failed by the core's word.
    Error,
    /// A job of which a part was done.
    Short,
    /// A job that hung until the device was stopped.
    Hang,
    /// A device that had to be reset from outside.
    Stuck,
    /// A job that was stopped under way with nothing else wrong: a model that needs no time has
    /// none.
    Stopped,
}

impl Sight {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::LateIrq,
        Self::LostIrq,
        Self::Error,
        Self::Short,
        Self::Hang,
        Self::Stuck,
        Self::Stopped,
    ];

    /// Was it seen, in the core's faults and in their effect?
    const fn is_in(self, tally: &Tally, tells_failures: bool) -> bool {
        let Tally { struck, .. } = tally;
        match self {
            Self::LateIrq => struck.late_irq > 0,
            Self::LostIrq => struck.lost_irq > 0,
            Self::Error => struck.error > 0 && (tally.failed > 0 || !tells_failures),
            Self::Short => struck.short > 0,
            Self::Hang => struck.hang > 0 && tally.hung > 0,
            Self::Stuck => struck.stuck > 0 && tally.resets > 0,
            Self::Stopped => tally.stopped > 0,
        }
    }

    const fn cure(self) -> &'static str {
        match self {
            Self::LateIrq => "ask bus.strikes(bus.faults().late_irq)",
            Self::LostIrq => "ask bus.strikes(bus.faults().lost_irq)",
            Self::Error => "ask bus.strikes(bus.faults().error), and fail the job",
            Self::Short => "ask bus.strikes(bus.faults().short)",
            Self::Hang => "ask bus.strikes(bus.faults().hang), and do nothing until a stop",
            Self::Stuck => "ask bus.strikes(bus.faults().stuck), and do nothing until a reset",
            Self::Stopped => "let a job take time",
        }
    }
}

/// Of a run of many seeds: everything was seen, except for what the core never does.
pub(super) fn all_seen<S: Subject>(subject: &S, seeds: u64, tally: &Tally) -> Verdict {
    let seen = |sight: &Sight| sight.is_in(tally, subject.tells_failures());
    let stale: Vec<_> = subject.never().iter().filter(|sight| seen(sight)).collect();
    ensure!(stale.is_empty(), "{}: Subject::never has {stale:?}, which happened", subject.name());
    let unseen: Vec<_> = Sight::ALL
        .into_iter()
        .filter(|sight| !seen(sight) && !subject.never().contains(sight))
        .collect();
    if seeds < SEEDS {
        return Ok(());
    }
    let cures: Vec<_> = unseen.iter().map(|sight| format!("{sight:?}: {}", sight.cure())).collect();
    ensure!(
        unseen.is_empty(),
        "{}: {seeds} seeds never saw {unseen:?}, so nothing was checked there. In the model, or \
         in Subject::never: {}",
        subject.name(),
        cures.join("; ")
    );
    Ok(())
}

//! The kernel's summary of its clocks, and its comparison with a design's clocks.

use super::control::TOLERANCE;
use super::{ClockError, Fabric};
use crate::machine::Machine;
use std::fmt;

const SUMMARY: &str = "sys/kernel/debug/clk/clk_summary";

/// More levels than any clock tree has: Zynq-7000's has 6, ZynqMP's 8.
const LEVELS_MAX: usize = 32;
/// A clock's name has some tens of letters. Each clock copies its parent's name, so that a long
/// name would be stored once for each child.
const NAME_MAX_BYTES: usize = 256;

/// A clock, in the kernel's view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The kernel's name: `fclk0`.
    pub name: String,
    /// The clock that it is derived from.
    pub parent: Option<String>,
    /// Its rate in Hz, as the kernel reads it from the hardware's dividers.
    pub hz: u64,
    /// The number of users that have enabled it.
    pub enables: u32,
    /// Whether it runs, by the hardware. `None`: the kernel cannot see it.
    pub running: Option<bool>,
    /// The devices that use it, if this kernel lists them.
    pub consumers: Vec<String>,
}

impl Clock {
    /// Whether it stands still, as far as the kernel can see.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.hz == 0 || self.running == Some(false)
    }

    fn add(&mut self, consumer: Option<&str>) {
        self.consumers.extend(consumer.filter(|word| *word != "deviceless").map(str::to_owned));
    }
}

/// All clocks of a machine, in the kernel's order: each clock follows its parent.
///
/// # Errors
/// [`ClockError::Hidden`]: debugfs is not mounted, or this program may not read it.
/// [`ClockError::NotASummary`]: the file has another form.
pub fn clocks(machine: &Machine) -> Result<Vec<Clock>, ClockError> {
    let text = machine
        .read(SUMMARY)
        .map_err(|error| ClockError::Hidden { path: format!("/{SUMMARY}").into(), error })?;
    parse(&text).ok_or(ClockError::NotASummary)
}

/// Parses the table. Kernels before 4.16 have no column `protect`, and those before 5.9 have no
/// column for the hardware's gate.
pub(super) fn parse(text: &str) -> Option<Vec<Clock>> {
    let (head, rows) = text.split_once("\n---")?;
    let counts = if head.contains("protect") { 3 } else { 2 };
    let gate = head.contains("hardware");
    let mut all: Vec<Clock> = Vec::new();
    let mut above: Vec<String> = Vec::new();
    for line in rows.lines().skip(1) {
        let level = line.len().saturating_sub(line.trim_start().len()).saturating_sub(1) / 3;
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let numbers: Vec<u64> =
            words.by_ref().take(counts + 2).filter_map(|word| word.parse().ok()).collect();
        let (Some(&enables), Some(&hz), true) =
            (numbers.first(), numbers.get(counts), numbers.len() == counts + 2)
        else {
            // Another user of the clock above: a device and its name for the clock.
            if let Some(clock) = all.last_mut() {
                clock.add(Some(name));
            }
            continue;
        };
        if level >= LEVELS_MAX || name.len() > NAME_MAX_BYTES {
            return None;
        }
        // Phase and duty cycle.
        let mut words = words.skip(2);
        let running = if gate {
            words.next().and_then(|word| ["N", "Y"].iter().position(|known| *known == word))
        } else {
            None
        };
        above.truncate(level);
        let parent = above.last().cloned();
        above.push(name.to_owned());
        let enables = u32::try_from(enables).unwrap_or(u32::MAX);
        let running = running.map(|index| index == 1);
        all.push(Clock {
            name: name.to_owned(),
            parent,
            hz,
            enables,
            running,
            consumers: Vec::new(),
        });
        if let Some(clock) = all.last_mut() {
            clock.add(words.next());
        }
    }
    Some(all)
}

impl Fabric {
    /// The kernel's name of this clock: `fclk0`, `pl0_ref` or `h2f_user0_clk`.
    #[must_use]
    pub fn of(self, clocks: &[Clock]) -> Option<&Clock> {
        clocks.iter().find(|clock| Self::named(&clock.name) == Some(self))
    }
}

/// A clock that a design's core needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The core and its pin: `gemm8 s_axi_aclk`.
    pub who: String,
    /// Its source.
    pub fabric: Fabric,
    /// The rate for which its timing was closed, in Hz; 0: not known.
    pub hz: u64,
    /// Whether a clock generator of the design lies between: its output is not the fabric's clock.
    pub generated: bool,
}

/// The comparison of a clock with a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs, at the design's rate.
    Right,
    /// It stands still: an access to the core hangs the processor.
    Off,
    /// It is faster than the design's timing allows.
    TooFast,
    /// It is slower: the core works, slowly.
    Slow,
    /// It runs; a generator makes its rate.
    Runs,
    /// It runs; nothing tells the rate that it should have.
    RunsUnsaid,
    /// The kernel knows no such clock.
    Unknown,
}

impl Verdict {
    /// Whether the core must not be accessed, or computes wrongly.
    #[must_use]
    pub const fn is_wrong(self) -> bool {
        matches!(self, Self::Off | Self::TooFast)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Right => "right",
            Self::Off => "off: an access to the core would hang",
            Self::TooFast => "too fast for the design",
            Self::Slow => "slower than the design allows",
            Self::Runs => "runs",
            Self::RunsUnsaid => "runs; which rate it should have is not said",
            Self::Unknown => "not a clock of this kernel",
        })
    }
}

/// One wanted clock, with the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The wanted clock.
    pub wanted: Wanted,
    /// The kernel's clock.
    pub clock: Option<Clock>,
    /// The comparison.
    pub verdict: Verdict,
}

/// Compares each wanted clock with the kernel's clocks.
#[must_use]
pub fn check(clocks: &[Clock], wanted: &[Wanted]) -> Vec<Checked> {
    let one = |wanted: &Wanted| {
        let clock = wanted.fabric.of(clocks);
        Checked {
            wanted: wanted.clone(),
            verdict: clock.map_or(Verdict::Unknown, |clock| verdict(clock, wanted)),
            clock: clock.cloned(),
        }
    };
    wanted.iter().map(one).collect()
}

fn verdict(clock: &Clock, wanted: &Wanted) -> Verdict {
    let slack = wanted.hz / 100 * TOLERANCE;
    match clock.hz {
        _ if clock.is_off() => Verdict::Off,
        _ if wanted.generated => Verdict::Runs,
        _ if wanted.hz == 0 => Verdict::RunsUnsaid,
        hz if hz > wanted.hz.saturating_add(slack) => Verdict::TooFast,
        hz if hz < wanted.hz - slack => Verdict::Slow,
        _ => Verdict::Right,
    }
}

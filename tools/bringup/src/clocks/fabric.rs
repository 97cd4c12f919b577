//! The clocks that a processor gives its fabric, and what a design wants of them.

use super::Clock;
use crate::bitstream::Family;
use std::fmt;

/// A processor gives its fabric four clocks (UG585, UG1085).
const CLOCKS: u8 = 4;

/// Rates that differ by less are the same: dividers are whole numbers, and 99 999 001 Hz is what a
/// design for 100 MHz gets. In percent.
const TOLERANCE: u64 = 1;

/// The number of the first of them at its controller (Linux, `drivers/clk/zynq/clkc.c` and
/// `include/dt-bindings/clock/xlnx-zynqmp-clk.h`).
const FIRST: [(u32, Family); 2] = [(15, Family::Zynq7000), (71, Family::ZynqMp)];

/// Which of a processor's clocks for the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fabric(u8);

impl Fabric {
    /// FCLK `number` of Zynq-7000, PL `number` of ZynqMP, user clock `number` of Cyclone V; 0 to 3.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number < CLOCKS { Some(Self(number)) } else { None }
    }

    /// The one that is called so: `fclk0`, `pl0`, `pl0_ref`, `h2f_user0_clk`. Cyclone V has three
    /// of the last; no driver sets one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let zynqmp =
            || name.strip_prefix("pl").map(|rest| rest.strip_suffix("_ref").unwrap_or(rest));
        let cyclone = || name.strip_prefix("h2f_user")?.strip_suffix("_clk");
        let digit = name.strip_prefix("fclk").or_else(zynqmp).or_else(cyclone)?;
        Self::new(digit.parse().ok()?)
    }

    /// The family whose clock controller has this clock at `number`.
    pub(super) fn family(self, number: u32) -> Option<Family> {
        FIRST
            .into_iter()
            .find_map(|(first, family)| (first + u32::from(self.0) == number).then_some(family))
    }

    /// The clock that this family's controller has at `number`.
    pub(super) fn of_number(family: Family, number: u32) -> Option<Self> {
        let (first, _) = FIRST.into_iter().find(|&(_, of)| of == family)?;
        Self::new(u8::try_from(number.checked_sub(first)?).ok()?)
    }

    /// The kernel's clock for it: `fclk0`, `pl0_ref` or `h2f_user0_clk`.
    #[must_use]
    pub fn of(self, clocks: &[Clock]) -> Option<&Clock> {
        clocks.iter().find(|clock| Self::named(&clock.name) == Some(self))
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clock {} of the fabric", self.0)
    }
}

/// A clock that a core of a design wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The core and its pin: `gemm8 s_axi_aclk`.
    pub who: String,
    /// Where it comes from.
    pub fabric: Fabric,
    /// The rate that its timing was closed for, in Hz; 0: it is not known.
    pub hz: u64,
    /// A clock generator of the design lies between: its output is not the fabric's clock.
    pub generated: bool,
}

/// How a clock compares with a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs, at that rate.
    Right,
    /// It stands still: an access to the core hangs the processor.
    Off,
    /// It is faster than the design's timing allows.
    TooFast,
    /// It is slower: the core works, slowly.
    Slow,
    /// It runs; its rate is a generator's.
    Runs,
    /// It runs; the rate that it should have is said by nothing.
    RunsUnsaid,
    /// The kernel knows no such clock.
    Unknown,
}

impl Verdict {
    /// Whether the core must not be touched, or computes wrongly.
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

/// One wanted clock, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What was wanted.
    pub wanted: Wanted,
    /// The kernel's clock.
    pub clock: Option<Clock>,
    /// The comparison.
    pub verdict: Verdict,
}

/// Compares each wanted clock with the kernel's.
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

/// Whether `hz` is the rate `wanted`, as near as dividers get.
pub(super) const fn is_near(hz: u64, wanted: u64) -> bool {
    hz.abs_diff(wanted) <= wanted / 100 * TOLERANCE
}

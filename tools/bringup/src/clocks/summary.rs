//! The kernel's account of its clocks.

use super::ClockError;
use crate::machine::Machine;

const SUMMARY: &str = "sys/kernel/debug/clk/clk_summary";

/// A clock tree is less deep: Zynq-7000's has 6 levels, ZynqMP's 8.
const LEVELS_MAX: usize = 32;
/// A clock's name has some tens of letters. Each clock keeps its parent's: a long one would be
/// there as often as it has children.
const NAME_MAX_BYTES: usize = 256;

/// A clock, as the kernel sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The kernel's name: `fclk0`.
    pub name: String,
    /// The clock that it is made of.
    pub parent: Option<String>,
    /// Its rate in Hz, as the kernel reads it from the hardware's dividers.
    pub hz: u64,
    /// How many users have turned it on.
    pub enables: u32,
    /// Whether it runs, as the hardware says. `None`: the kernel cannot see it.
    pub running: Option<bool>,
    /// The devices that have it, where this kernel lists them.
    pub consumers: Vec<String>,
}

impl Clock {
    /// Whether it stands still, for all that the kernel can see.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.hz == 0 || self.running == Some(false)
    }
}

/// Every clock of a machine, in the kernel's order: a clock comes after its parent.
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

/// Reads the table. Kernels before 4.16 have no column `protect`, and those before 5.9 none for the
/// hardware's gate.
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
            // Another user of the clock above: a device and its word for the clock.
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

impl Clock {
    fn add(&mut self, consumer: Option<&str>) {
        self.consumers.extend(consumer.filter(|word| *word != "deviceless").map(str::to_owned));
    }
}

//! The command line.

use crate::soak::Soak;
use contigo::names::{DeviceName, MemoryName, NameError};
use std::env;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const USAGE: &str = "\
Usage: contigo-board-tests [--json] [--list] [--jobs N] [--seed S] [--memory NAME] [--device NAME]
                           [--filter TEXT] [--user UID] [--lab] [--locked-down] [--sim]
                           [--report FILE]

       contigo-board-tests soak --hours N | --minutes N [--seed S] [--memory NAME] [--device NAME]
                           [--lab] [--json] [--report FILE]
       contigo-board-tests hang --until-reset

Tests Contigo on this machine: every memory with every DMA engine that it has, polled and by
interrupt, and the jobs that must be refused, stopped, decoded or given back. Run it as root.

  --json         one line a row: @row and a JSON object
  --list         names the rows and runs none
  --jobs N       copies in each row of a fast engine (10000)
  --seed S       decides every copy (1)
  --memory NAME  only rows with this memory, by its name in contigo info
  --device NAME  only rows with this device, by its name in contigo info
  --filter TEXT  only rows whose name contains TEXT
  --user UID     once more as this user, whose group has the same number, the rows that make sense
                 for one
  --lab          this is an emulator, which has no caches: a port may be called coherent where
                 they could not be maintained
  --locked-down  only the row that locks the kernel down, which lasts until it is started anew
  --sim          the simulated board too; without any engine it is tested in any case
  --report FILE  also writes FILE: this machine, every row, the latency of each engine, and where
                 they can be had cyclictest's figures and the energy of a job; see docs/testing.md

soak does random jobs on every engine, with kills, unbinds, memory pressure and moving clocks. It
prints a line a minute, and ends by time, by SIGINT or SIGTERM, or at the first unexpected fault.
hang takes every processor for itself, so that only a reset ends it: for a bench.

Exit status: 0 nothing failed, 1 a row failed, 2 wrong usage, 130 a soak was interrupted.";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Task {
    #[default]
    Test,
    Soak(Soak),
    Hang,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) json: bool,
    pub(crate) list: bool,
    pub(crate) jobs: u64,
    pub(crate) seed: u64,
    pub(crate) memory: Option<MemoryName>,
    pub(crate) device: Option<DeviceName>,
    pub(crate) filter: String,
    pub(crate) user: Option<u32>,
    pub(crate) lab: bool,
    pub(crate) locked_down: bool,
    pub(crate) sim: bool,
    pub(crate) report: Option<PathBuf>,
}

pub(crate) fn given() -> Result<Options, (String, bool)> {
    parse(env::args().skip(1))
}

/// The longest soak: a year.
const HOURS_MAX: u64 = 24 * 366;

fn parse(words: impl Iterator<Item = String>) -> Result<Options, (String, bool)> {
    let mut words = words.peekable();
    let task = words.next_if(|word| ["soak", "hang"].contains(&word.as_str()));
    let (mut minutes, mut until_reset) = (None, false);
    let mut options = Options { jobs: 10_000, seed: 1, ..Options::default() };
    while let Some(word) = words.next() {
        let mut value =
            || words.next().ok_or_else(|| (format!("{word} needs a value\n\n{USAGE}"), false));
        match word.as_str() {
            "--json" => options.json = true,
            "--list" => options.list = true,
            "--lab" => options.lab = true,
            "--locked-down" => options.locked_down = true,
            "--sim" => options.sim = true,
            "--jobs" => options.jobs = number(&word, &value()?)?,
            "--seed" => options.seed = number(&word, &value()?)?,
            "--user" => options.user = Some(number(&word, &value()?)?),
            "--memory" => options.memory = Some(named(&word, &value()?)?),
            "--device" => options.device = Some(named(&word, &value()?)?),
            "--filter" => options.filter = value()?,
            "--hours" if task.as_deref() == Some("soak") => {
                minutes = Some(number::<u64>(&word, &value()?)?.min(HOURS_MAX) * 60);
            }
            "--minutes" if task.as_deref() == Some("soak") => {
                minutes = Some(number::<u64>(&word, &value()?)?.min(HOURS_MAX * 60));
            }
            "--until-reset" if task.as_deref() == Some("hang") => until_reset = true,
            "--report" => options.report = Some(value()?.into()),
            "--help" | "-h" => return Err((USAGE.into(), true)),
            other => return Err((format!("{other} is no option\n\n{USAGE}"), false)),
        }
    }
    if options.jobs == 0 {
        return Err(("--jobs is at least 1".into(), false));
    }
    options.task = match (task.as_deref(), minutes, until_reset) {
        (Some("soak"), Some(minutes @ 1..), _) => {
            Task::Soak(Soak { time: Duration::from_secs(minutes * 60) })
        }
        (Some("soak"), ..) => {
            let wanted = "soak wants --hours N or --minutes N, at least 1";
            return Err((format!("{wanted}\n\n{USAGE}"), false));
        }
        (Some("hang"), _, true) => Task::Hang,
        (Some("hang"), ..) => {
            let wanted = "hang wants --until-reset: nothing else ends it";
            return Err((format!("{wanted}\n\n{USAGE}"), false));
        }
        _ => Task::Test,
    };
    Ok(options)
}

fn number<N: std::str::FromStr>(option: &str, text: &str) -> Result<N, (String, bool)> {
    text.parse().map_err(|_| (format!("{option} {text}: write a number\n\n{USAGE}"), false))
}

fn named<N: std::str::FromStr<Err = NameError>>(
    option: &str,
    text: &str,
) -> Result<N, (String, bool)> {
    text.parse().map_err(|error| (format!("{option} {text}: {error}"), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Options, (String, bool)> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn every_option_is_read() {
        let line = "--json --list --jobs 7 --seed 8 --memory sim:3 --device sim:zdma --filter edu \
                    --user 1000 --lab --locked-down --sim --report r.json";
        let expected = Options {
            task: Task::Test,
            json: true,
            list: true,
            jobs: 7,
            seed: 8,
            memory: "sim:3".parse().ok(),
            device: "sim:zdma".parse().ok(),
            filter: "edu".into(),
            user: Some(1000),
            lab: true,
            locked_down: true,
            sim: true,
            report: Some("r.json".into()),
        };
        assert!(expected.memory.is_some() && expected.device.is_some());
        assert_eq!(of(line), Ok(expected));
        assert_eq!(of(""), Ok(Options { jobs: 10_000, seed: 1, ..Options::default() }));
        let soak = |minutes: u64| Task::Soak(Soak { time: Duration::from_secs(minutes * 60) });
        for (line, task) in [
            ("soak --hours 2", soak(120)),
            ("soak --minutes 5 --lab", soak(5)),
            ("hang --until-reset", Task::Hang),
        ] {
            assert_eq!(of(line).map(|options| options.task), Ok(task), "{line}");
        }
    }

    #[test]
    fn wrong_usage_says_what_is_right() {
        for line in [
            "--jobs",
            "--jobs many",
            "--jobs 0",
            "--user -1",
            "board",
            "soak",
            "soak --minutes 0",
            "--minutes 5",
            "--sim soak --minutes 5",
            "hang",
            "hang --minutes 5",
            "--memory ddr",
            "--device sim@",
        ] {
            let (message, asked_for) = of(line).err().unwrap_or_default();
            assert!(!message.is_empty() && !asked_for, "{line}");
        }
        assert_eq!(of("--help"), Err((USAGE.into(), true)));
    }
}

//! The line a minute.

use super::Summary;
use std::{fmt, fs};

/// A line for a person, or for a program.
pub(super) struct Line<'s> {
    summary: &'s Summary,
    json: bool,
}

impl<'s> Line<'s> {
    pub(super) const fn of(summary: &'s Summary, json: bool) -> Self {
        Self { summary, json }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.summary;
        if self.json {
            return write!(f, "@soak {}", serde_json::to_string(s).map_err(|_| fmt::Error)?);
        }
        write!(
            f,
            "{:>5} s  {} jobs, {} bytes, faults {} expected {} not, {} kills, {} unbinds, {} pressures, {} clock moves, RSS {} KiB",
            s.seconds,
            s.jobs,
            s.bytes,
            s.faults_expected,
            s.faults_unexpected,
            s.kills,
            s.unbinds,
            s.pressures,
            s.clock_moves,
            s.rss_last_kib
        )?;
        match hottest_millidegrees() {
            Some(millidegrees) => write!(f, ", {} °C", millidegrees / 1000),
            None => Ok(()),
        }
    }
}

fn hottest_millidegrees() -> Option<i64> {
    let zones = fs::read_dir("/sys/class/thermal").ok()?.flatten();
    zones
        .filter_map(|zone| fs::read_to_string(zone.path().join("temp")).ok()?.trim().parse().ok())
        .max()
}

//! `cyclictest` beside the engine's latency: how late the kernel wakes a program by its clock
//! alone. It is a program of rt-tests, which a board has or has not.

use serde::Serialize;
use std::{
    io::Read,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// Wakes, a millisecond apart: five seconds.
const LOOPS: &str = "5000";
const ARGUMENTS: [&str; 7] = ["-q", "-m", "-p80", "-i1000", "-t1", "-l", LOOPS];
/// It takes five seconds where nothing is wrong.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Cyclictest {
    arguments: Vec<&'static str>,
    n: u64,
    min_us: u64,
    mean_us: u64,
    max_us: u64,
}

/// Its figures, or why there are none.
pub(super) fn run() -> Result<Cyclictest, String> {
    let said = within(Command::new("cyclictest").args(ARGUMENTS))?;
    figures(&said)
        .ok_or_else(|| format!("cyclictest printed another line than its summary: {}", said.trim()))
}

fn within(command: &mut Command) -> Result<String, String> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
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
    if status.success() {
        Ok(said)
    } else {
        Err(format!("cyclictest ended with {status}: it wants root, or the right to priority 80"))
    }
}

/// Of `T: 0 ( 123) P:80 I:1000 C:   5000 Min:      2 Act:    3 Avg:    3 Max:      20`.
fn figures(said: &str) -> Option<Cyclictest> {
    let line = said.lines().find(|line| line.trim_start().starts_with("T:"))?;
    let after = |key: &str| line.split_once(key)?.1.split_ascii_whitespace().next()?.parse().ok();
    Some(Cyclictest {
        arguments: ARGUMENTS.into(),
        n: after("C:")?,
        min_us: after("Min:")?,
        mean_us: after("Avg:")?,
        max_us: after("Max:")?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    #[test]
    fn its_summary_is_read_and_another_line_is_not() {
        let said = "# /dev/cpu_dma_latency set to 0us\nT: 0 ( 1234) P:80 I:1000 C:   5000 Min:      2 Act:    3 Avg:    4 Max:      57\n";
        let read = figures(said).unwrap();
        assert_eq!((read.n, read.min_us, read.mean_us, read.max_us), (5000, 2, 4, 57));
        assert_eq!(figures("T: 0 ( 1234) P:80 I:1000 C:   5000 Min:  x"), None);
        assert_eq!(figures(""), None);
    }
}

//! A hostile user for some seconds, in processes that are killed, and root beside it, who takes the
//! device away in every way. Then root has the device back, and nothing is in quarantine.

use super::{
    Subject, Verdict,
    apart::{AT_WORK, Apart},
    as_user::{USER, allow, opens},
    ensure, fuzz,
};
use fastrand::Rng;
use std::{
    io::Write,
    thread::sleep,
    time::{Duration, Instant},
};

/// The teardown of a file may poll for a second, and so may what is in quarantine before it.
const KILLED: Duration = Duration::from_secs(10);
/// How long a process calls.
const CALLS_MS: std::ops::Range<u64> = 0..400;

pub(super) fn hostile(subject: &Subject, seed: u64, time: Duration) -> Verdict {
    let mut rng = Rng::with_seed(seed);
    let (mut users, mut unbinds, mut resets, mut endings) = (0, 0, 0, 0);
    let end = Instant::now() + time;
    while Instant::now() < end {
        allow(&subject.guard)?;
        let user = opens(&subject.guard)?.is_ok().then_some(USER);
        let seed = rng.u64(..);
        let user = Apart::begin(user, |pipe| {
            pipe.write_all(&AT_WORK).map_err(contigo::Error::from).map_err(super::Wrong::from)?;
            fuzz::without_end(subject, seed)
        })?
        .at_work()?;
        sleep(Duration::from_millis(rng.u64(CALLS_MS)));
        match rng.u8(..4) {
            0 => {
                subject.unbind()?.bind()?;
                unbinds += 1;
            }
            1 => resets += u32::from(subject.reset_by_root().is_ok()),
            2 => {
                subject.end_quarantine()?;
                endings += 1;
            }
            _ => {}
        }
        sleep(Duration::from_millis(rng.u64(CALLS_MS)));
        let killed = user.killed()?;
        ensure(killed < KILLED, format!("a hostile user's end took {killed:?}"))?;
        users += 1;
    }
    subject.end_quarantine()?;
    drop(subject.open()?);
    let left = subject.quarantined_bytes()?;
    ensure(left == 0, format!("root has the device back, and {left} bytes are in quarantine"))?;
    allow(&subject.guard)?;
    Ok(format!(
        "{users} hostile users killed, {unbinds} unbinds, {resets} resets, {endings} quarantines ended"
    ))
}

//! The processors' clocks: the highest frequency that each policy may take moves at random, and is
//! put back at the end.

use fastrand::Rng;
use std::{
    fs,
    path::{Path, PathBuf},
};

const FOLDER: &str = "/sys/devices/system/cpu/cpufreq";
/// One round in so many moves a clock.
const ONE_IN: u8 = 4;

/// The policies that this user may move.
#[derive(Debug)]
pub(super) struct Clocks(Vec<Policy>);

#[derive(Debug)]
struct Policy {
    file: PathBuf,
    lowest: u64,
    highest: u64,
    /// The text that was there.
    was: String,
}

impl Clocks {
    pub(super) fn here() -> Self {
        Self::below(Path::new(FOLDER))
    }

    fn below(folder: &Path) -> Self {
        let policies = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| Policy::at(&entry.path()));
        Self(policies.collect())
    }

    /// Why there is nothing to move.
    pub(super) fn missing(&self) -> Option<String> {
        self.0.is_empty().then(|| {
            format!("clocks: no policy in {FOLDER} has two frequencies and may be written")
        })
    }

    /// Perhaps one move; how many.
    pub(super) fn moved(&mut self, rng: &mut Rng) -> u64 {
        if self.0.is_empty() || rng.u8(..ONE_IN) != 0 {
            return 0;
        }
        let at = rng.usize(..self.0.len());
        let Some(policy) = self.0.get(at) else { return 0 };
        let khz = rng.u64(policy.lowest..=policy.highest);
        u64::from(fs::write(&policy.file, khz.to_string()).is_ok())
    }
}

impl Policy {
    fn at(folder: &Path) -> Option<Self> {
        let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok();
        let (lowest, highest): (u64, u64) =
            (number("cpuinfo_min_freq")?, number("cpuinfo_max_freq")?);
        let file = folder.join("scaling_max_freq");
        let was = fs::read_to_string(&file).ok()?.trim().to_owned();
        // Never above the limit that was set before, for the supply or the heat sink.
        let highest = highest.min(was.parse().ok()?);
        // Its own text changes nothing.
        (lowest < highest && fs::write(&file, &was).is_ok()).then_some(Self {
            file,
            lowest,
            highest,
            was,
        })
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        for policy in &self.0 {
            if let Err(error) = fs::write(&policy.file, &policy.was) {
                eprintln!(
                    "contigo-board-tests: soak: {}: {error}; it was {}",
                    policy.file.display(),
                    policy.was
                );
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    #[test]
    fn a_clock_moves_within_its_range_and_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy0");
        fs::create_dir(&policy).unwrap();
        for (name, khz) in [
            ("cpuinfo_min_freq", "300000\n"),
            ("cpuinfo_max_freq", "900000\n"),
            ("scaling_max_freq", "650000\n"),
        ] {
            fs::write(policy.join(name), khz).unwrap();
        }
        let mut clocks = Clocks::below(folder.path());
        assert_eq!(clocks.missing(), None);
        let mut rng = Rng::with_seed(1);
        let mut moves = 0;
        for _ in 0..100 {
            moves += clocks.moved(&mut rng);
            let khz: u64 =
                fs::read_to_string(policy.join("scaling_max_freq")).unwrap().parse().unwrap();
            assert!((300_000..=650_000).contains(&khz), "{khz}: the limit set before is 650000");
        }
        assert!((10..50).contains(&moves), "{moves}");
        drop(clocks);
        assert_eq!(fs::read_to_string(policy.join("scaling_max_freq")).unwrap(), "650000");
    }

    #[test]
    fn a_machine_without_frequencies_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut clocks = Clocks::below(folder.path());
        assert!(clocks.missing().is_some() && clocks.moved(&mut Rng::with_seed(1)) == 0);
    }
}

//! What goes on beside the jobs: processors' clocks that move, a process that takes memory, and a
//! device that is taken from its driver and given back.

use crate::apart::{AT_WORK, Apart};
use crate::machine::meminfo;
use crate::pages::Map;
use crate::verdict::{Tried, Wrong, ensure, fail, must};
use contigo::names::DeviceName;
use fastrand::Rng;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const FOLDER: &str = "/sys/devices/system/cpu/cpufreq";
/// One round in so many moves a clock.
const ONE_IN: u8 = 4;

#[derive(Debug)]
pub(crate) struct Clocks(Vec<Policy>);

#[derive(Debug)]
struct Policy {
    file: PathBuf,
    lowest: u64,
    highest: u64,
    was: String,
}

impl Clocks {
    pub(crate) fn here() -> Self {
        Self::below(Path::new(FOLDER))
    }

    fn below(folder: &Path) -> Self {
        let folders = fs::read_dir(folder).into_iter().flatten().flatten();
        Self(folders.filter_map(|entry| Policy::at(&entry.path())).collect())
    }

    pub(crate) fn missing(&self) -> Option<String> {
        self.0.is_empty().then(|| {
            format!("clocks: no policy in {FOLDER} has two frequencies and may be written")
        })
    }

    pub(crate) fn moved(&mut self, rng: &mut Rng) -> u64 {
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
        let may_move = lowest < highest && fs::write(&file, &was).is_ok();
        may_move.then_some(Self { file, lowest, highest, was })
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        for policy in &self.0 {
            if let Err(error) = fs::write(&policy.file, &policy.was) {
                let (file, was) = (policy.file.display(), &policy.was);
                eprintln!("contigo-board-tests: soak: {file}: {error}; it was {was}");
            }
        }
    }
}

/// Never more than this: an hour of writing all of a large machine's memory tests the machine.
const MOST_KIB: u64 = 512 << 10;
const PAGE_BYTES: usize = 4096;

/// A process that has taken half of the memory that is available, until it is dropped. `None`:
/// there is too little, or no process can be made.
pub(crate) fn pressure() -> Option<Apart> {
    let kib = (meminfo("MemAvailable")? / 2).min(MOST_KIB);
    let len_bytes = usize::try_from(kib << 10).ok()? / PAGE_BYTES * PAGE_BYTES;
    let process = Apart::begin(None, |pipe| {
        // Where there is too little after all, this process is the one to go.
        let _ = fs::write("/proc/self/oom_score_adj", "1000");
        let map = must("mmap", Map::guarded(len_bytes))?;
        (0..len_bytes).step_by(PAGE_BYTES).for_each(|at| map.write(at, 1));
        must("pipe", pipe.write_all(&AT_WORK))?;
        nix::unistd::pause();
        Ok(String::new())
    });
    process.ok()?.at_work().ok()
}

/// devtmpfs and a udev rule take milliseconds.
const BACK: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    name: DeviceName,
    device: PathBuf,
    driver: PathBuf,
}

impl Bound {
    /// `None`: it is no device of a driver, or this user may not take it away.
    pub(crate) fn of(name: DeviceName) -> Option<Self> {
        let class = match name.kind() {
            "contigo" => Path::new("/sys/class/contigo").join(name.argument()),
            "uio" => uio(name.argument())?,
            _ => return None,
        };
        let device = fs::canonicalize(class.join("device")).ok()?;
        let driver = fs::canonicalize(device.join("driver")).ok()?;
        let may = fs::OpenOptions::new().write(true).open(driver.join("unbind")).is_ok();
        may.then_some(Self { name, device, driver })
    }

    /// Has it the driver that it had at the beginning?
    pub(crate) fn is_bound(&self) -> bool {
        fs::canonicalize(self.device.join("driver")).is_ok_and(|driver| driver == self.driver)
    }

    /// Gives it back where it is not.
    pub(crate) fn restore(&self) -> Result<(), Wrong> {
        if !self.is_bound() {
            self.write("bind")?;
        }
        let end = Instant::now() + BACK;
        while self.name.open().is_err() {
            if Instant::now() >= end {
                return fail(format!("{} did not come back within {BACK:?}", self.name));
            }
            sleep(LOOK);
        }
        Ok(())
    }

    pub(crate) fn rebind(&self) -> Tried {
        self.write("unbind")?;
        let gone = self.name.open().is_err();
        self.restore()?;
        ensure(gone, format!("{} could be opened without its driver", self.name))?;
        Ok(String::new().into())
    }

    fn write(&self, file: &str) -> Result<(), Wrong> {
        let device = self.device.file_name().unwrap_or_default();
        must(file, fs::write(self.driver.join(file), device.as_encoded_bytes()))
    }
}

fn uio(name: &str) -> Option<PathBuf> {
    let folders = fs::read_dir("/sys/class/uio").ok()?.flatten().map(|entry| entry.path());
    let is_it = |folder: &PathBuf| {
        folder.file_name().is_some_and(|own| own == name)
            || fs::read_to_string(folder.join("name")).is_ok_and(|text| text.trim() == name)
            || fs::canonicalize(folder.join("device/of_node"))
                .is_ok_and(|node| node.file_name().is_some_and(|own| own == name))
    };
    let mut found = folders.filter(is_it);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    #[test]
    fn clock_moves_in_its_range_and_is_restored() {
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

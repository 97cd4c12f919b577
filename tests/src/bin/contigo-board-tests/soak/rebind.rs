//! A device is taken from its driver and given back, between two rounds.

use crate::row::{Name, Row, Status};
use contigo::names::DeviceName;
use std::{
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

/// devtmpfs and a udev rule take milliseconds.
const BACK: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// A device that has a driver now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    name: DeviceName,
    /// The device's folder in sysfs.
    device: PathBuf,
    driver: PathBuf,
}

impl Bound {
    /// `None`: it is no device of a driver, or this user may not take it away.
    pub(super) fn of(name: DeviceName) -> Option<Self> {
        let class = match name.kind() {
            "guard" => Path::new("/sys/class/contigo").join(name.argument()),
            "uio" => uio(name.argument())?,
            _ => return None,
        };
        let device = fs::canonicalize(class.join("device")).ok()?;
        let driver = fs::canonicalize(device.join("driver")).ok()?;
        let may = fs::OpenOptions::new().write(true).open(driver.join("unbind")).is_ok();
        may.then_some(Self { name, device, driver })
    }

    /// Has it the driver that it had at the beginning?
    pub(super) fn is_bound(&self) -> bool {
        fs::canonicalize(self.device.join("driver")).is_ok_and(|driver| driver == self.driver)
    }

    /// Gives it back where it is not.
    pub(super) fn restore(&self) -> Result<(), String> {
        if !self.is_bound() {
            self.write("bind")?;
        }
        let end = Instant::now() + BACK;
        while self.name.open().is_err() {
            if Instant::now() >= end {
                return Err(format!("{} did not come back within {} s", self.name, BACK.as_secs()));
            }
            sleep(LOOK);
        }
        Ok(())
    }

    pub(super) fn row(&self, name: &Name) -> Row {
        let done = self.write("unbind").and_then(|()| {
            let gone = self.name.open().is_err();
            self.restore()?;
            if gone {
                Ok(())
            } else {
                Err(format!("{} could be opened without its driver", self.name))
            }
        });
        match done {
            Ok(()) => Row::new(name, Status::Passed, ""),
            Err(why) => Row::new(name, Status::Failed, why),
        }
    }

    fn write(&self, file: &str) -> Result<(), String> {
        let device = self.device.file_name().unwrap_or_default();
        let path = self.driver.join(file);
        fs::write(&path, device.as_encoded_bytes())
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The class folder of the UIO device that is called so.
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

use super::{PowerError, beside, rails};
use crate::machine::{Linux, Machine};
use std::{
    error::Error,
    fs,
    os::unix::fs::FileExt,
    panic,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

type Outcome = Result<(), Box<dyn Error>>;

/// Between two readings here.
const STEP: Duration = Duration::from_millis(1);

/// A monitor's folder with these files.
fn monitor(root: &Path, folder: &str, files: &[(&str, &str)]) -> Outcome {
    let folder = root.join("sys/class/hwmon").join(folder);
    fs::create_dir_all(&folder)?;
    files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), format!("{text}\n")))?;
    Ok(())
}

#[test]
fn each_kind_of_monitor_has_its_rails() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = folder.path();
    monitor(root, "hwmon0", &[("name", "cpu_thermal"), ("temp1_input", "45000")])?;
    let kria = [("name", "ina260"), ("label", "ina260-u14"), ("update_interval", "2"), ("power1_input", "3750000")];
    monitor(root, "hwmon1", &kria)?;
    let jetson = [
        ("name", "ina3221"),
        ("in1_label", "VDD_IN"),
        ("in1_input", "4936"),
        ("curr1_input", "-2"),
        ("in2_label", "VDD_CPU"),
        ("in2_input", "4920"),
        ("in4_input", "10"),
        ("curr4_input", "900"),
    ];
    monitor(root, "hwmon2", &jetson)?;
    monitor(root, "hwmon3", &[("name", "irps5401"), ("power1_input", "1"), ("power1_label", "pin"), ("power3_input", "2")])?;
    // A chip of which nobody says that both are of one channel.
    monitor(root, "hwmon4", &[("name", "ads1015"), ("in1_input", "1"), ("curr1_input", "1")])?;
    monitor(root, "hwmon5", &[("power1_input", "1")])?;

    let found = rails(&Machine::below(root, Linux));
    let read: Result<Vec<_>, PowerError> =
        found.iter().map(|rail| Ok((rail.name.as_str(), rail.update_ms, rail.open()?.microwatts()?))).collect();
    let expected = [
        ("ina260-u14", Some(2), 3_750_000),
        ("ina3221@hwmon2 VDD_IN", None, -9872),
        ("irps5401@hwmon3 pin", None, 1),
        ("irps5401@hwmon3", None, 2),
    ];
    assert_eq!(read?, expected);
    Ok(())
}

#[test]
fn energy_is_power_by_time() -> Outcome {
    let folder = tempfile::tempdir()?;
    monitor(folder.path(), "hwmon0", &[("name", "ina226"), ("power1_input", "2000000")])?;
    let machine = Machine::below(folder.path(), Linux);
    let file = folder.path().join("sys/class/hwmon/hwmon0/power1_input");
    let ((), energies) = beside(&rails(&machine), STEP, || sleep(Duration::from_millis(30)));
    let [energy] = energies.as_slice() else { return Err("one rail".into()) };
    assert_eq!((energy.idle_microwatts, energy.error.is_none()), (2_000_000, true));
    assert!(energy.readings >= 2 && !energy.time.is_zero(), "{energy:?}");
    let (joules, watts) = (energy.joules().ok_or("joules")?, energy.watts().ok_or("watts")?);
    assert!((watts - 2.0).abs() < 1e-6 && (joules - 2.0 * energy.time.as_secs_f64()).abs() < 1e-6, "{joules} J, {watts} W");

    // Twice as much while the work runs. One digit is written, so that a reader never finds half.
    let file = fs::OpenOptions::new().write(true).open(file)?;
    let (written, energies) = beside(&rails(&machine), STEP, || {
        let written = file.write_at(b"4", 0);
        sleep(Duration::from_millis(30));
        written
    });
    let energy = energies.first().ok_or("one rail")?;
    assert_eq!((written?, energy.idle_microwatts), (1, 2_000_000));
    assert!(energy.watts().is_some_and(|watts| watts > 2.5 && watts < 4.01), "{energy:?}");
    Ok(())
}

#[test]
fn a_rail_that_fails_does_not_end_the_others() -> Outcome {
    let folder = tempfile::tempdir()?;
    monitor(folder.path(), "hwmon0", &[("name", "ina226"), ("power1_input", "much"), ("power2_input", "7")])?;
    monitor(folder.path(), "hwmon1", &[("name", "ina260"), ("power1_input", "5")])?;
    let found = rails(&Machine::below(folder.path(), Linux));
    fs::remove_dir_all(folder.path().join("sys/class/hwmon/hwmon1"))?;
    let (work, energies) = beside(&found, STEP, || 3);
    let [nonsense, right, gone] = energies.as_slice() else { return Err("three rails".into()) };
    assert_eq!((work, right.idle_microwatts, nonsense.joules(), gone.watts()), (3, 7, None, None));
    let said = |energy: &super::Energy| energy.error.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(said(nonsense).ends_with("power1_input is \"much\\n\", and no number"), "{}", said(nonsense));
    assert!(matches!(gone.error, Some(PowerError::Open { .. })) && said(gone).contains("the monitor's driver has gone"));
    Ok(())
}

#[test]
fn the_reader_ends_where_the_work_panics() -> Outcome {
    let folder = tempfile::tempdir()?;
    monitor(folder.path(), "hwmon0", &[("name", "ina226"), ("power1_input", "1")])?;
    let found = rails(&Machine::below(folder.path(), Linux));
    let begun = Instant::now();
    let ended = panic::catch_unwind(|| beside(&found, STEP, || panic::resume_unwind(Box::new("on purpose"))));
    assert!(ended.is_err() && begun.elapsed() < Duration::from_secs(10));
    Ok(())
}

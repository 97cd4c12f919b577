use super::{Chip, ChipError, Monitor, PowerError, Rail, beside, rails};
use crate::machine::Machine;
use crate::machine::fake::Root;
use embedded_hal::i2c::{ErrorKind, ErrorType, I2c, NoAcknowledgeSource, Operation};
use std::error::Error;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, panic};

type Outcome = Result<(), Box<dyn Error>>;

/// The time between two readings in these tests.
const STEP: Duration = Duration::from_millis(1);

fn monitor(root: &Path, folder: &str, files: &[(&str, &str)]) {
    let root = Root(root.to_owned());
    for (name, text) in files {
        root.put(&format!("sys/class/hwmon/{folder}/{name}"), format!("{text}\n"));
    }
}

#[test]
fn each_kind_of_monitor_has_its_rails() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = folder.path();
    monitor(root, "hwmon0", &[("name", "cpu_thermal"), ("temp1_input", "45000")]);
    let kria = [
        ("name", "ina260"),
        ("label", "ina260-u14"),
        ("update_interval", "2"),
        ("power1_input", "3750000"),
    ];
    monitor(root, "hwmon1", &kria);
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
    monitor(root, "hwmon2", &jetson);
    monitor(
        root,
        "hwmon3",
        &[
            ("name", "irps5401"),
            ("power1_input", "1"),
            ("power1_label", "pin"),
            ("power3_input", "2"),
        ],
    );
    // A chip whose two inputs are not documented as those of one channel.
    monitor(root, "hwmon4", &[("name", "ads1015"), ("in1_input", "1"), ("curr1_input", "1")]);
    monitor(root, "hwmon5", &[("power1_input", "1")]);

    let found = rails(&Machine::copy(root));
    let read: Result<Vec<_>, PowerError> = found
        .iter()
        .map(|rail| Ok((rail.name.as_str(), rail.update_ms, rail.open()?.microwatts()?)))
        .collect();
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
    monitor(folder.path(), "hwmon0", &[("name", "ina226"), ("power1_input", "2000000")]);
    let machine = Machine::copy(folder.path());
    let file = folder.path().join("sys/class/hwmon/hwmon0/power1_input");
    let ((), energies) = beside(&rails(&machine), STEP, || sleep(Duration::from_millis(30)));
    let [energy] = energies.as_slice() else { return Err("one rail".into()) };
    assert_eq!((energy.idle_microwatts, energy.error.is_none()), (2_000_000, true));
    assert!(energy.readings >= 2 && !energy.time.is_zero(), "{energy:?}");
    let (joules, watts) = (energy.joules().ok_or("joules")?, energy.watts().ok_or("watts")?);
    assert!(
        (watts - 2.0).abs() < 1e-6 && (joules - 2.0 * energy.time.as_secs_f64()).abs() < 1e-6,
        "{joules} J, {watts} W"
    );

    // Twice the power during the work. The write is one digit, so a reader never finds half of it.
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
    monitor(
        folder.path(),
        "hwmon0",
        &[("name", "ina226"), ("power1_input", "much"), ("power2_input", "7")],
    );
    monitor(folder.path(), "hwmon1", &[("name", "ina260"), ("power1_input", "5")]);
    let found = rails(&Machine::copy(folder.path()));
    fs::remove_dir_all(folder.path().join("sys/class/hwmon/hwmon1"))?;
    let (work, energies) = beside(&found, STEP, || 3);
    let [nonsense, right, gone] = energies.as_slice() else { return Err("three rails".into()) };
    assert_eq!((work, right.idle_microwatts, nonsense.joules(), gone.watts()), (3, 7, None, None));
    let said =
        |energy: &super::Energy| energy.error.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(
        said(nonsense).ends_with("power1_input is \"much\\n\", and no number"),
        "{}",
        said(nonsense)
    );
    assert!(
        matches!(gone.error, Some(PowerError::Open { .. }))
            && said(gone).contains("the monitor's driver has gone")
    );
    Ok(())
}

#[test]
fn the_reader_ends_where_the_work_panics() -> Outcome {
    let folder = tempfile::tempdir()?;
    monitor(folder.path(), "hwmon0", &[("name", "ina226"), ("power1_input", "1")]);
    let found = rails(&Machine::copy(folder.path()));
    let begun = Instant::now();
    let ended = panic::catch_unwind(|| {
        beside(&found, STEP, || panic::resume_unwind(Box::new("on purpose")))
    });
    assert!(ended.is_err() && begun.elapsed() < Duration::from_secs(10));
    Ok(())
}

/// A chip's registers on a bus, as in the example of the INA226's data sheet (SBOS547A, 8.2): 12 V
/// and 10 A through 2 mOhm.
struct Bus {
    registers: Vec<(u8, u16)>,
    pointer: u8,
    /// PMBus sends the low byte first.
    pmbus: bool,
}

impl ErrorType for Bus {
    type Error = ErrorKind;
}

impl I2c for Bus {
    fn transaction(&mut self, addr: u8, operations: &mut [Operation<'_>]) -> Result<(), ErrorKind> {
        for operation in operations {
            match operation {
                _ if addr != 0x40 => {
                    return Err(ErrorKind::NoAcknowledge(NoAcknowledgeSource::Address));
                }
                Operation::Write([register]) => self.pointer = *register,
                // This write would change a register.
                Operation::Write(_) => return Err(ErrorKind::Other),
                Operation::Read(bytes) => {
                    let value = self
                        .registers
                        .iter()
                        .find(|(known, _)| *known == self.pointer)
                        .map_or(0, |&(_, value)| value);
                    bytes.copy_from_slice(&if self.pmbus {
                        value.to_le_bytes()
                    } else {
                        value.to_be_bytes()
                    });
                }
            }
        }
        Ok(())
    }
}

fn example(die: u16, mode: u16, shunt: u16) -> Bus {
    Bus {
        registers: vec![(0, 0x4120 | mode), (1, shunt), (2, 0x2570), (0xfe, 0x5449), (0xff, die)],
        pointer: 0,
        pmbus: false,
    }
}

/// An INA233's registers: READ_VOUT, MFR_ADC_CONFIG, MFR_READ_VSHUNT, TI_MFR_ID, TI_MFR_MODEL.
fn pmbus(maker: u16, model: u16, mode: u16, shunt: u16) -> Bus {
    Bus {
        registers: vec![
            (0x8b, 0x2570),
            (0xd0, 0x4120 | mode),
            (0xd1, shunt),
            (0xe0, maker),
            (0xe1, model),
        ],
        pointer: 0,
        pmbus: true,
    }
}

#[test]
fn a_chip_on_a_bus_is_read_and_never_written() -> Outcome {
    let ina226: Monitor = "ina226@1:0x40,shunt_uohm=2000".parse()?;
    let open =
        |bus, monitor: &Monitor| Chip::open(bus, monitor).map_err(|error| format!("{error:?}"));
    assert_eq!(open(example(0x2260, 7, 0x1f40), &ina226)?.microwatts(), Ok(119_800_000));
    assert_eq!(open(example(0x2261, 7, 0xe0c0), &ina226)?.microwatts(), Ok(-119_800_000));
    // An INA260's current is 1.25 mA a bit: 8000 of them are 10 A.
    assert_eq!(
        open(example(0x2270, 7, 0x1f40), &"ina260@1:0x40".parse()?)?.microwatts(),
        Ok(119_800_000)
    );
    let ina233: Monitor = "ina233@1:0x40,shunt_uohm=2000".parse()?;
    for maker in [0x5449, 0x4954] {
        assert_eq!(open(pmbus(maker, 0x3333, 7, 0x1f40), &ina233)?.microwatts(), Ok(119_800_000));
    }
    // Each 16-bit number comes back unchanged from the driver's floating point.
    for raw in [i16::MIN, -8000, -1, 0, 1, 3, 8001, i16::MAX] {
        let expected = i64::from(0x2570) * 1_250 * i64::from(raw) * 2_500 / 2_000 / 1_000;
        assert_eq!(
            open(pmbus(0x5449, 0x3333, 7, raw.cast_unsigned()), &ina233)?.microwatts(),
            Ok(expected),
            "{raw}"
        );
    }
    let error = |bus, monitor: &Monitor| Chip::open(bus, monitor).err();
    assert_eq!(
        error(pmbus(0x5449, 0x3236, 7, 0), &ina233),
        Some(ChipError::Other { maker: 0x5449, die: 0x3236 })
    );
    assert_eq!(error(pmbus(0x5449, 0x3333, 3, 0), &ina233), Some(ChipError::Resting { mode: 3 }));
    assert!(matches!(error(example(0x2260, 7, 0), &ina233), Some(ChipError::Other { .. })));
    assert_eq!(
        error(example(0x2270, 7, 0), &ina226),
        Some(ChipError::Other { maker: 0x5449, die: 0x2270 })
    );
    assert_eq!(error(example(0x2260, 0, 0), &ina226), Some(ChipError::Resting { mode: 0 }));
    let absent = error(example(0x2260, 7, 0), &"ina226@1:0x41,shunt_uohm=1".parse()?);
    assert_eq!(
        absent,
        Some(ChipError::Bus(ErrorKind::NoAcknowledge(NoAcknowledgeSource::Address)))
    );
    // With every bit set, nothing overflows.
    let registers = vec![(0, 7), (1, 0x8000), (2, 0xffff), (0xfe, 0x5449), (0xff, 0x2260)];
    let full = Bus { registers, pointer: 0, pmbus: false };
    assert!(
        open(full, &"ina226@1:0x40,shunt_uohm=1".parse()?)?
            .microwatts()
            .is_ok_and(|power| power < 0)
    );
    Ok(())
}

#[test]
fn monitor_is_named_and_missing_bus_told() -> Outcome {
    for wrong in [
        "",
        "ina226@1:0x40",
        "ina233@1:0x40",
        "ina260@1:40",
        "ina260@1:0x80",
        "ina260@1:0xff",
        "ina260@1:0x03",
        "ina226@1:0x40,shunt_uohm=0",
        "ina260@1:0x40,shunt_uohm=5",
    ] {
        let error = wrong.parse::<Monitor>().err().ok_or(wrong)?;
        assert!(error.to_string().contains("is no monitor: write ina260@BUS:ADDR"), "{error}");
    }
    let monitor: Monitor = "ina260@3:0x4f".parse()?;
    assert_eq!((monitor.to_string().as_str(), monitor.shunt_uohm), ("ina260@3:0x4f", 2000));
    let error = Rail::of(&Machine::copy("/nowhere"), &monitor).open().err().ok_or("a bus")?;
    assert_eq!(error.to_string(), "/nowhere/dev/i2c-3: no device of a copied machine is opened");
    let error =
        Rail::of(&Machine::this(), &"ina260@255:0x4f".parse()?).open().err().ok_or("a bus")?;
    assert!(
        error.to_string().starts_with("/dev/i2c-255 is not there: modprobe i2c-dev"),
        "{error}"
    );
    Ok(())
}

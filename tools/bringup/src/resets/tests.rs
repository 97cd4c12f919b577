use super::{Active, ContigoDevice, GpioLine, Place, PulseError, ResetError, ResetLine, Width};
use crate::machine::fake::Root;
use crate::machine::{Kernel, Machine};
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{Error as PinError, ErrorKind, ErrorType, OutputPin};
use std::error::Error;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::{fs, io};

type Outcome = Result<(), Box<dyn Error>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Broken;

impl PinError for Broken {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    High,
    Low,
    Us(u32),
}

/// A pin and a clock with a common list of events. The pin fails where a test asks for it.
#[derive(Debug, Default)]
struct Wire {
    seen: Vec<Event>,
    fail: Vec<usize>,
}

struct Pin<'a>(&'a Mutex<Wire>);
struct Clock<'a>(&'a Mutex<Wire>);

impl Pin<'_> {
    fn set(&self, event: Event) -> Result<(), Broken> {
        let mut wire = self.0.lock().map_err(|_| Broken)?;
        wire.seen.push(event);
        if wire.fail.contains(&wire.seen.len()) { Err(Broken) } else { Ok(()) }
    }
}

impl ErrorType for Pin<'_> {
    type Error = Broken;
}

impl OutputPin for Pin<'_> {
    fn set_low(&mut self) -> Result<(), Broken> {
        self.set(Event::Low)
    }

    fn set_high(&mut self) -> Result<(), Broken> {
        self.set(Event::High)
    }
}

impl DelayNs for Clock<'_> {
    fn delay_ns(&mut self, ns: u32) {
        if let Ok(mut wire) = self.0.lock() {
            wire.seen.push(Event::Us(ns / 1000));
        }
    }

    fn delay_us(&mut self, us: u32) {
        if let Ok(mut wire) = self.0.lock() {
            wire.seen.push(Event::Us(us));
        }
    }
}

/// The result of a pulse, and the events on the wire.
type Seen = (Result<(), PulseError<Broken>>, Vec<Event>);

fn pulse(active: Active, fail: &[usize]) -> Result<Seen, Box<dyn Error>> {
    let wire = Mutex::new(Wire { seen: Vec::new(), fail: fail.to_vec() });
    let done = ResetLine::new(Pin(&wire), active).pulse(Width::from_us(25)?, &mut Clock(&wire));
    Ok((done, wire.into_inner().map_err(|error| error.to_string())?.seen))
}

#[test]
fn pulse_is_asserted_held_and_released() -> Outcome {
    use Event::{High, Low, Us};
    assert_eq!(pulse(Active::Low, &[])?, (Ok(()), vec![Low, Us(25), High]));
    assert_eq!(pulse(Active::High, &[])?, (Ok(()), vec![High, Us(25), Low]));
    // The pin fails: the line is never left asserted without an error.
    assert_eq!(pulse(Active::Low, &[1])?, (Err(PulseError::NotAsserted(Broken)), vec![Low, High]));
    assert_eq!(pulse(Active::Low, &[1, 2])?, (Err(PulseError::Held(Broken)), vec![Low, High]));
    assert_eq!(pulse(Active::Low, &[3])?, (Ok(()), vec![Low, Us(25), High, High]));
    assert_eq!(
        pulse(Active::Low, &[3, 4])?,
        (Err(PulseError::Held(Broken)), vec![Low, Us(25), High, High])
    );
    Ok(())
}

#[test]
fn a_width_has_bounds() -> Outcome {
    assert_eq!((Width::from_us(1)?.us(), Width::from_us(Width::MAX_US)?.us()), (1, 1_000_000));
    for us in [0, Width::MAX_US + 1, u32::MAX] {
        assert!(
            matches!(Width::from_us(us), Err(ResetError::Width { us: refused }) if refused == us),
            "{us}"
        );
    }
    Ok(())
}

#[test]
fn a_place_is_a_contigo_device_an_offset_or_a_name() -> Outcome {
    let offset = |chip: &str, offset| Place::Offset { chip: chip.to_owned(), offset };
    let rows = [
        ("contigo:copy@40000000", Place::Contigo("copy@40000000".to_owned())),
        ("gpiochip0:5", offset("gpiochip0", 5)),
        ("/dev/gpiochip2:0", offset("gpiochip2", 0)),
        ("zynqmp_gpio:173", offset("zynqmp_gpio", 173)),
        ("9030000.pl061:3", offset("9030000.pl061", 3)),
        ("PHY:reset", Place::Name("PHY:reset".to_owned())),
        ("aresetn", Place::Name("aresetn".to_owned())),
    ];
    for (text, place) in rows {
        assert_eq!(text.parse::<Place>()?, place, "{text}");
    }
    for text in ["", "gpiochip0:99999999999"] {
        assert!(matches!(text.parse::<Place>(), Err(ResetError::NotALine(_))), "{text}");
    }
    Ok(())
}

#[test]
fn one_free_line_is_chosen() -> Outcome {
    let line = |chip: &str, offset, name: Option<&str>, consumer: Option<&str>| GpioLine {
        chip: chip.to_owned(),
        label: "zynqmp_gpio".to_owned(),
        offset,
        name: name.map(str::to_owned),
        consumer: consumer.map(str::to_owned),
        active_low: false,
    };
    let lines = [
        line("gpiochip0", 78, Some("aresetn"), None),
        line("gpiochip0", 79, Some("led"), Some("leds-gpio")),
        line("gpiochip0", 80, None, Some("")),
        line("gpiochip1", 0, Some("twice"), None),
        line("gpiochip1", 1, Some("twice"), None),
    ];
    let chosen = |text: &str| GpioLine::choose(&lines, &text.parse()?).map(|line| line.offset);
    assert_eq!(
        (chosen("aresetn")?, chosen("zynqmp_gpio:78")?, chosen("gpiochip1:1")?),
        (78, 78, 1)
    );
    let error = chosen("led").err().ok_or("a line in use is no error")?.to_string();
    assert_eq!(error, "gpiochip0:79 is in use by leds-gpio: end or unbind it first");
    assert!(matches!(
        chosen("gpiochip0:80"),
        Err(ResetError::InUse { consumer, .. }) if consumer.is_empty()
    ));
    assert!(matches!(
        chosen("twice"),
        Err(ResetError::Ambiguous { there, .. }) if there == ["gpiochip1:0", "gpiochip1:1"]
    ));
    assert!(matches!(chosen("gpiochip1:78"), Err(ResetError::NoSuchLine { among: 5, .. })));
    let nothing = super::open(&Machine::copy("/nowhere"), &"aresetn".parse()?, Active::Low);
    assert!(matches!(nothing, Err(ResetError::NoSuchLine { among: 0, .. })));
    Ok(())
}

/// A kernel whose files answer with this errno, or take the text.
#[derive(Debug)]
struct Answers(Option<i32>, Arc<Mutex<Vec<String>>>);

impl Kernel for Answers {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let said = format!("{} {}", path.display(), String::from_utf8_lossy(bytes));
        self.1.lock().map_err(|_| io::ErrorKind::Other)?.push(said);
        self.0.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
    }
}

#[test]
fn a_contigo_device_is_reset_and_never_taken_unasked() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = Root(folder.path().to_owned());
    for device in ["40000000.copy", "50000000.copy", "60000000.fir"] {
        root.folder(&format!("sys/class/contigo/{device}"));
    }
    root.put("proc/77/comm", "camera\n");
    root.link("proc/77/fd/4", "/dev/contigo/60000000.fir");
    let said = Arc::new(Mutex::new(Vec::new()));
    let machine = |errno| Machine::below(folder.path(), Answers(errno, Arc::clone(&said)));
    let found = |name: &str| ContigoDevice::find(&machine(None), name);
    assert_eq!(
        (found("copy@40000000")?.device, found("50000000")?.device),
        ("40000000.copy".to_owned(), "50000000.copy".to_owned())
    );
    assert!(matches!(found("copy"), Err(ResetError::Ambiguous { there, .. }) if there.len() == 2));
    assert!(matches!(found("other"), Err(ResetError::NoSuchLine { among: 3, .. })));
    let fir = found("fir")?;
    let error =
        fir.reset(&machine(None), false).err().ok_or("a contigo device in use is no error")?;
    assert_eq!(
        error.to_string(),
        "contigo:60000000.fir is in use by camera (process 77): end or unbind it first"
    );
    assert!(
        said.lock().map_err(|error| error.to_string())?.is_empty(),
        "nothing is written before"
    );
    fir.reset(&machine(None), true)?;
    let reset = root.0.join("sys/class/contigo/60000000.fir/reset");
    let file = format!("{} 1", reset.display());
    assert_eq!(*said.lock().map_err(|error| error.to_string())?, [file]);
    assert!(matches!(fir.reset(&machine(Some(95)), true), Err(ResetError::NoResets { .. })));
    assert!(matches!(fir.reset(&machine(Some(13)), true), Err(ResetError::DevNode { .. })));
    Ok(())
}

/// With any text as a place, and nonsense in a machine's folders, the result is an answer or an
/// error with a message, and nothing is reset.
#[test]
fn nonsense_resets_nothing() -> Outcome {
    let mut random = fastrand::Rng::with_seed(0x4e5e);
    let pieces =
        "contigo:|gpiochip|:|0|@|-1|40000000|.|/dev/|\u{202e}|\0|copy|99999999999999999999| ";
    let pieces: Vec<_> = pieces.split('|').collect();
    let said = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..300 {
        let folder = tempfile::tempdir()?;
        let any = |random: &mut fastrand::Rng| -> String {
            (0..random.usize(..6)).filter_map(|_| random.choice(&pieces)).copied().collect()
        };
        for parent in ["sys/class/contigo", "proc", "proc/7/fd", "dev"] {
            for _ in 0..random.usize(..4) {
                let name = any(&mut random).replace(['/', '\0'], "_");
                let path =
                    folder.path().join(parent).join(if name.is_empty() { "7" } else { &name });
                // A parent of this path may already be a file.
                if path.parent().is_none_or(|parent| fs::create_dir_all(parent).is_err()) {
                    continue;
                }
                // A path that exists, or that is a folder's name, stays as it is.
                let _ = match random.u8(..3) {
                    0 => fs::create_dir_all(&path),
                    1 => fs::write(&path, any(&mut random)),
                    _ => symlink(any(&mut random) + "x", &path),
                };
            }
        }
        let machine = Machine::below(folder.path(), Answers(None, Arc::clone(&said)));
        assert!(ContigoDevice::all(&machine).len() < 5);
        let text = any(&mut random);
        match text.parse::<Place>() {
            Ok(Place::Contigo(name)) => drop(ContigoDevice::find(&machine, &name)),
            Ok(place) => assert!(super::open(&machine, &place, Active::Low).is_err(), "{place}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(said.lock().map_err(|error| error.to_string())?.is_empty());
    Ok(())
}

//! Channels of one controller by its name, each taken for a driver from one opening.

use super::{Jobs, LIMIT, copies as job};
use contigo::job::{AnyCore, AnyDriver, Channels, Parts, Settings, StopProgram};
use contigo::names::{AnyDevice, Attach, DeviceName, DriverRow, OpenDevice, Taken, row};
use contigo::{Align, Driver, Error, Queue, Region, Result};
use contigo_testkit::rounds;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{mem, thread};

const POLLED: Attach = Attach { window: 0, interrupt: false };

/// A device, and memory for it.
fn open(name: &str) -> (OpenDevice, Region) {
    let device = name.parse::<DeviceName>().unwrap().open().unwrap();
    let memory = device.memory(&"sim".parse().unwrap(), 1 << 20).unwrap();
    (device, Region::new(memory).unwrap())
}

fn take(device: &OpenDevice, settings: &str) -> Result<Taken> {
    // SAFETY: the model is a PL330, which these drivers alone have.
    unsafe { device.take(row("pl330")?, Settings(settings), None, POLLED) }
}

/// The driver that `settings` say, with its program in `region`.
fn driver(device: &OpenDevice, region: &Region, settings: &str) -> Result<AnyDriver> {
    let taken = take(device, settings)?;
    let memory = Some(region.alloc(4096, Align::LINE)?);
    // SAFETY: as in `take`.
    unsafe { taken.open(Parts { device: (), memory, settings: Settings(settings), map: None }) }
}

/// One copy of 2,000 bytes.
fn copies(driver: AnyDriver, region: &Region) {
    let mut queue = Queue::new(driver, 1).unwrap();
    let [mut from, to] = [(); 2].map(|()| region.alloc(4096, Align::LINE).unwrap());
    from.view_mut::<u8>().unwrap().fill(6);
    let operands = [from.to_device(1..2001), to.from_device(..2000)];
    let [_, to] = queue.run(operands, &[], LIMIT).unwrap().buffers;
    assert_eq!(to.view_at::<u8>(..2000).unwrap(), [6; 2000]);
}

#[test]
fn channel_by_name_stops_alone() {
    let (device, region) = open("sim:pl330");
    let driver = |settings| driver(&device, &region, settings);
    let whole = driver("event=3").unwrap();
    assert!(!whole.stop_program().steps().is_empty(), "alone, it stops the controller");
    assert_eq!(driver("channel=0").map(drop), Err(Error::HasDriver));
    drop(whole);
    let [first, second] =
        ["channel=0", "channel=1,event=9"].map(|settings| driver(settings).unwrap());
    assert_eq!(
        [&first, &second].map(AnyDriver::stop_program),
        [StopProgram::default(), StopProgram::default()]
    );
    thread::scope(|scope| {
        for driver in [first, second] {
            scope.spawn(|| copies(driver, &region));
        }
    });
    // With the last one's end the device is free.
    assert!(device.attach(POLLED).is_ok());
    copies(driver("").unwrap(), &region);
}

/// The last driver's end closes the core; another thread opens its own channel meanwhile.
#[test]
fn channel_opens_while_last_one_closes() {
    let (device, region) = open("sim:pl330");
    thread::scope(|scope| {
        for settings in ["channel=0", "channel=1", "channel=2"] {
            let driver = || driver(&device, &region, settings);
            scope.spawn(move || {
                (0..rounds(2_000)).for_each(|round| {
                    drop(driver().unwrap_or_else(|error| panic!("{round}: {error}")))
                })
            });
        }
    });
    assert!(device.attach(POLLED).is_ok());
}

/// A reset from outside is no driver of the channel, also where it comes first.
#[test]
fn a_channel_opens_while_the_device_is_reset() {
    let (device, region) = open("sim:pl330");
    let is_over = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while is_over.load(Ordering::Relaxed) == 0 {
                // SAFETY: no queue is made of the drivers.
                unsafe { device.reset() }.unwrap();
            }
        });
        let opened = (0..rounds(2_000)).map(|_| driver(&device, &region, "channel=0").map(drop));
        let refused = opened.filter_map(Result::err).next();
        is_over.store(1, Ordering::Relaxed);
        assert_eq!(refused, None);
    });
}

#[test]
fn forgotten_channel_keeps_its_own_place_only() {
    let (device, region) = open("sim:pl330@2");
    let driver = |settings| driver(&device, &region, settings);
    let mut lost = Queue::new(driver("channel=2").unwrap(), 1).unwrap();
    lost.give(job(&region.pool(2, 4096).unwrap(), .., ..));
    mem::forget(lost);
    assert_eq!(driver("channel=2").map(drop), Err(Error::HasDriver));
    assert_eq!([driver("").map(drop), device.attach(POLLED).map(drop)], [Err(Error::HasDriver); 2]);
    for _ in 0..2 {
        copies(driver("channel=3").unwrap(), &region);
    }
    // A device that was taken, and not opened, is given back like a driver.
    let taken = take(&device, "channel=4").unwrap();
    assert_eq!(driver("channel=3").unwrap().poll(Duration::ZERO), Ok(None));
    drop(taken);
}

/// The device that has the channels of `Elsewhere`.
static ELSEWHERE: OnceLock<OpenDevice> = OnceLock::new();

/// How often a core of `Elsewhere` was closed.
static CLOSED: AtomicU32 = AtomicU32::new(0);

/// A core whose channels belong to another device.
struct Elsewhere;

impl Drop for Elsewhere {
    fn drop(&mut self) {
        CLOSED.fetch_add(1, Ordering::Relaxed);
    }
}

impl Channels for Elsewhere {
    unsafe fn open<'m>(&self, parts: Parts<'_, ()>) -> Result<AnyDriver> {
        let device = ELSEWHERE.get().unwrap();
        // SAFETY: the model is a PL330, which no other code drives.
        unsafe { device.take(row("pl330")?, parts.settings, None, POLLED)?.open(parts) }
    }
    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        pull()
    }
}

/// # Safety
/// None: it drives nothing.
unsafe fn nothing(_: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
    Err(Error::Busy)
}

/// # Safety
/// As `nothing`.
unsafe fn elsewhere(_: AnyDevice) -> Result<AnyCore> {
    AnyCore::new(Elsewhere)
}

static ROW: DriverRow = DriverRow {
    settings: Some(&["channel"]),
    core: Some(elsewhere),
    ..DriverRow::new("elsewhere", "has the channels of another device", nothing)
};

/// The driver keeps both devices' cores until it is gone.
#[test]
fn core_over_anothers_channel_closes_neither() {
    let ((device, _), (other, region)) = (open("sim:zdma"), open("sim:pl330@5"));
    let other = ELSEWHERE.get_or_init(|| other);
    let settings = Settings("channel=0");
    let program = region.alloc(4096, Align::LINE).unwrap();
    // SAFETY: nothing drives this device.
    let taken = unsafe { device.take(&ROW, settings, None, POLLED) }.unwrap();
    // SAFETY: as above.
    let driver =
        unsafe { taken.open(Parts { device: (), memory: Some(program), settings, map: None }) }
            .unwrap();
    assert_eq!(CLOSED.load(Ordering::Relaxed), 0);
    assert_eq!(other.attach(POLLED).map(drop), Err(Error::HasDriver), "its channel has a driver");
    drop(driver);
    assert_eq!(CLOSED.load(Ordering::Relaxed), 1);
    assert!(device.attach(POLLED).is_ok() && other.attach(POLLED).is_ok());
}

/// After 2^32 takings that were forgotten the count of drivers was 0 again, and the core was closed
/// under the driver that lived.
#[test]
fn count_of_forgotten_drivers_does_not_wrap() {
    let (device, region) = open("sim:pl330@6");
    let alive = driver(&device, &region, "channel=0").unwrap();
    let take = || take(&device, "channel=1");
    let forgotten = (0..1 << 17).map_while(|_| take().map(mem::forget).ok()).count();
    assert_eq!(forgotten, (1 << 16) - 1);
    assert!(matches!(take().map(drop), Err(Error::TooMany { most: 65_536, .. })));
    assert_eq!(device.attach(POLLED).map(drop), Err(Error::HasDriver));
    drop(alive);
    assert!(take().is_ok(), "it has room for one more");
}

/// A row's function alone refuses a misspelt setting, as `take` does before it touches the device.
#[test]
fn unknown_setting_lists_the_known_ones() {
    let (device, _) = open("sim:pl330@8");
    let unknown =
        Error::UnknownSetting { place: 2, known: &["channel", "event", "coherent_memory"] };
    let settings = Settings("event=1, chanel=3");
    // SAFETY: nothing drives it.
    let open = |device| unsafe {
        (row("pl330").unwrap().open)(Parts { device, memory: None, settings, map: None })
    };
    assert_eq!(open(device.attach(POLLED).unwrap()).map(drop), Err(unknown));
    assert_eq!(take(&device, settings.0).map(drop), Err(unknown));
}

/// A channel that was taken had a reference to the core. The reference counted as used until the
/// end of the function that closed the core: undefined, as Miri says.
#[test]
fn last_taken_channel_closes_the_core() {
    let (device, region) = open("sim:pl330@7");
    let settings = Settings("channel=0");
    drop(take(&device, settings.0).unwrap());
    let taken = take(&device, settings.0).unwrap();
    // SAFETY: nothing is driven.
    let refused = unsafe { taken.open(Parts { device: (), memory: None, settings, map: None }) };
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    drop(driver(&device, &region, "channel=0").unwrap());
    assert!(device.attach(POLLED).is_ok());
}

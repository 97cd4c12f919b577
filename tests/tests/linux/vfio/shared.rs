//! A device behind an IOMMU that several drivers share: the core that they have is notified of the
//! device's reset from outside.

use contigo::job::{AnyCore, AnyDriver, Channels, Core, Parts, Settings};
use contigo::names::{AnyDevice, Attach, DeviceName, DriverRow};
use contigo::{Error, Result};
use contigo_testkit::fake_vfio::{ADDRESS, Event, FakeVfio, Machine};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often the core was asked for a reset.
static HEARD: AtomicU32 = AtomicU32::new(0);
/// From which time on it refuses.
static BUSY_FROM: AtomicU32 = AtomicU32::new(u32::MAX);

/// A core that drives nothing.
struct Listening(Core<AnyDevice>);

impl Channels for Listening {
    unsafe fn open<'m>(&self, _: Parts<'_, ()>) -> Result<AnyDriver> {
        Err(Error::Busy)
    }
    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if HEARD.fetch_add(1, Ordering::Relaxed) >= BUSY_FROM.load(Ordering::Relaxed) {
            return Err(Error::Contended { tries: 1 });
        }
        self.0.reset(|_| pull())
    }
}

/// # Safety
/// None: it drives nothing.
unsafe fn nothing(_: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
    Err(Error::Busy)
}

/// # Safety
/// As `nothing`.
unsafe fn listening(device: AnyDevice) -> Result<AnyCore> {
    AnyCore::new(Listening(Core::new(device)?))
}

static ROW: DriverRow = DriverRow {
    settings: Some(&["channel"]),
    core: Some(listening),
    ..DriverRow::new("listening", "hears of resets", nothing)
};

/// The reset went to the kernel without the core's lock, and no sibling heard of it.
#[test]
fn outside_reset_goes_through_the_shared_core() {
    let kernel = FakeVfio::new(Machine::default());
    let name: DeviceName = format!("vfio:{ADDRESS}").parse().unwrap();
    let device = name.open_vfio_with(Arc::new(kernel.clone())).unwrap();
    let resets = || kernel.log().iter().filter(|event| **event == Event::Reset).count();
    // SAFETY: the device is a file, and nothing drives it.
    let reset = || unsafe { device.reset() };
    assert_eq!(
        (reset(), resets(), HEARD.load(Ordering::Relaxed)),
        (Ok(()), 1, 0),
        "no driver has it"
    );
    // SAFETY: as above.
    let taken =
        unsafe { device.take(&ROW, Settings("channel=0"), None, Attach::default()) }.unwrap();
    let before = resets();
    assert_eq!((reset(), resets() - before, HEARD.load(Ordering::Relaxed)), (Ok(()), 1, 1));
    BUSY_FROM.store(1, Ordering::Relaxed);
    assert_eq!(
        (reset(), resets() - before),
        (Err(Error::Contended { tries: 1 }), 1),
        "a core in use keeps it away"
    );
    drop(taken);
    drop(device.attach(Attach::default()).unwrap());
    let before = resets();
    assert_eq!((reset(), resets() - before), (Ok(()), 1), "it has no core any more");
}

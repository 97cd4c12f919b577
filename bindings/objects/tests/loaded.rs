//! Drivers from shared libraries: `examples/copier.rs`, and files that are none.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "the libraries are this crate's and the system's; a test that panics has failed, \
              which is its purpose"
)]

use contigo::job::{AnyDriver, Parts, Settings};
use contigo::names::{self, Attach, DeviceName, OpenDevice};
use contigo::{Align, Driver, Error, Operand, Queue, Region};
use contigo_objects::{LoadError, load_driver};
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

/// The example, which Cargo has built beside this test.
fn copier() -> PathBuf {
    let deps = env::current_exe().unwrap().parent().unwrap().to_owned();
    deps.parent().unwrap().join("examples/libcopier.so")
}

fn device() -> OpenDevice {
    let name: DeviceName = "sim:zdma".parse().unwrap();
    name.open().unwrap()
}

fn open(device: &OpenDevice, driver: &str, settings: &str) -> contigo::Result<AnyDriver> {
    let (row, settings) = (names::row(driver)?, Settings(settings));
    // SAFETY: it is the driver of this device.
    unsafe {
        device.take(row, settings, None, Attach { window: 0, interrupt: true })?.open(Parts {
            device: (),
            memory: None,
            settings,
            map: None,
        })
    }
}

fn copy(device: &OpenDevice, queue: &mut Queue<AnyDriver>) -> contigo::Result<bool> {
    let region = Region::new(device.memory(&"sim".parse().unwrap(), 64 * 1024)?)?;
    let mut from = region.alloc(4096, Align::PAGE)?;
    from.view_mut::<u8>()?.fill(7);
    let operands: [Operand; 2] =
        [from.to_device(..4096), region.alloc(4096, Align::PAGE)?.from_device(..4096)];
    let ended =
        queue.run(operands, &[], Duration::from_millis(50)).map_err(|failed| failed.error)?;
    let [_, to] = ended.buffers;
    Ok(to.view::<u8>()?.iter().all(|byte| *byte == 7))
}

#[test]
fn a_driver_in_rust_is_loaded_once_and_runs_jobs() {
    // SAFETY: it is this crate's.
    let (row, again) =
        unsafe { (load_driver(&copier()).unwrap(), load_driver(&copier()).unwrap()) };
    assert!(std::ptr::eq(row, again) && std::ptr::eq(row, names::row("my-copier").unwrap()));
    assert_eq!(
        (row.name, row.settings, row.memory_bytes),
        ("my-copier", Some(&["channel"][..]), 0)
    );
    assert_eq!(row.help, "copies operand 0 to operand 1, one job at a time");
    let device = device();
    for round in 0..20 {
        let driver = open(&device, "my-copier", "").unwrap();
        assert_eq!(
            (driver.name(), driver.operands().len(), driver.depth(), driver.addr_bits()),
            ("my-copier", 2, 1, 44),
            "round {round}"
        );
        let mut queue = Queue::new(driver, 4).unwrap();
        assert!(copy(&device, &mut queue).unwrap());
        // While it lives no other driver has the device.
        assert_eq!(open(&device, "zdma", "").map(|_| ()), Err(Error::HasDriver));
    }
    let counts = device.board().unwrap().counts();
    assert_eq!((counts.unowned_accesses, counts.stray_accesses), (0, 0));
    // A new build of it is another file with the same driver.
    let folder = env::temp_dir().join(format!("contigo-loaded-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let second = folder.join("libcopier.so");
    fs::copy(copier(), &second).unwrap();
    // SAFETY: as above.
    let taken = unsafe { load_driver(&second) }.unwrap_err();
    fs::remove_dir_all(folder).unwrap();
    assert!(matches!(taken, LoadError::Taken { name: "my-copier" }), "{taken}");
}

#[test]
fn open_refusal_is_told_in_runtime_words() {
    // SAFETY: it is this crate's.
    unsafe { load_driver(&copier()).unwrap() };
    let device = device();
    let refused = |settings| open(&device, "my-copier", settings).map(|_| ()).unwrap_err();
    assert!(matches!(refused("width=3"), Error::UnknownSetting { place: 1, .. }));
    // The library's own refusals have their numbers, and its errors their names.
    let told = refused("channel=3");
    assert!(
        matches!(
            told,
            Error::Driver { driver: "my-copier", why: "its open refused the device", answer: -122 }
        ),
        "{told}"
    );
    assert!(told.to_string().ends_with("(it answered -122, ARGUMENT)"), "{told}");
    let region = Region::new(device.memory(&"sim".parse().unwrap(), 64 * 1024).unwrap()).unwrap();
    let mut queue = Queue::new(open(&device, "my-copier", "").unwrap(), 1).unwrap();
    let operands = [
        region.alloc(4096, Align::PAGE).unwrap().to_device(..),
        region.alloc(4096, Align::PAGE).unwrap().from_device(..64),
    ];
    let check = queue.run(operands, &[], Duration::from_millis(50)).unwrap_err().error;
    assert!(
        matches!(check, Error::DriverCheck { driver: "my-copier", answer: -120, .. }),
        "{check}"
    );
    drop(queue);
    // A device of another kind, by its registers.
    let name: DeviceName = "sim:axi_cdma".parse().unwrap();
    let other = name.open().unwrap();
    assert!(open(&other, "my-copier", "").is_err());
    // Nothing of a refused driver is left.
    assert!(
        copy(&device, &mut Queue::new(open(&device, "my-copier", "").unwrap(), 1).unwrap())
            .unwrap()
    );
}

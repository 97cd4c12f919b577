//! VFIO on machines of many kinds: with and without iommufd, an IOMMU, a reset, interrupts,
//! permissions; with every call of the kernel failing in its turn. The device does not reach memory
//! that it must not reach. Memory that it may still reach is not freed.

mod coherency;
mod device;
mod memory;
mod open;
mod shared;

use contigo::Error;
use contigo::linux::vfio::Vfio;
use contigo_testkit::fake_vfio::{ADDRESS, FakeVfio, Machine};
use std::sync::Arc;

/// A kernel on `machine`, and the device opened on it.
fn opened(machine: Machine) -> (FakeVfio, Vfio) {
    let kernel = FakeVfio::new(machine);
    let vfio = open(&kernel).unwrap();
    (kernel, vfio)
}

/// The device, opened once more on `kernel`.
fn open(kernel: &FakeVfio) -> Result<Vfio, Error> {
    Vfio::open_from(Arc::new(kernel.clone()), ADDRESS)
}

/// Why the device does not open on `kernel`. Nothing stays open.
fn refused(kernel: &FakeVfio) -> Error {
    let error = open(kernel).unwrap_err();
    assert_eq!((kernel.open_files(), kernel.mapped()), (0, 0), "{error}: {:?}", kernel.log());
    error
}

/// The thing that cannot be used, and its value, of an error that must say what to do.
fn unsuitable(error: Error) -> (&'static str, u64) {
    let (name, value, fix) = match error {
        Error::Setting { name, value, fix } => (name, value, fix),
        Error::Unsupported { what, fix } => (what, 0, fix),
        Error::Denied { what, errno, fix } => (what, u64::from(errno.unsigned_abs()), fix),
        _ => panic!("{error:?}"),
    };
    assert!(fix.len() > 20, "{fix}");
    (name, value)
}

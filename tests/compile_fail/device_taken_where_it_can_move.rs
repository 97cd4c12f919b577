// error: E0277
// A device that several drivers share has their core inside. So it stays where it is.
use contigo::names::{DriverRow, OpenDevice};

fn moved(mut device: OpenDevice, row: &'static DriverRow) -> OpenDevice {
    let pinned = core::pin::Pin::new(&mut device);
    // SAFETY: nothing is driven.
    let taken = unsafe { pinned.as_ref().take(row, contigo::Settings("channel=0"), None, Default::default()) };
    core::mem::forget(taken);
    device
}

fn main() {}

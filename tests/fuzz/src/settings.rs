use contigo::job::{Parts, Settings};
use contigo::names::{Attach, DeviceName, DriverRow, each_row};
use contigo::{Align, Region};

/// The map that `ap_ctrl` is opened with.
const MAP: &[u8] = include_bytes!("../../../docs/examples/copy.json");

pub fn run(bytes: &[u8]) {
    let [which, text @ ..] = bytes else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut rows = Vec::<&'static DriverRow>::new();
    // Each of them has a model of its name.
    each_row(|row| rows.push(row));
    let row = rows[usize::from(*which) % rows.len()];
    let settings = Settings(text);
    for place in 0..4 {
        let _ = settings.name(place);
    }
    let name: DeviceName = format!("sim:{}", row.name).parse().expect("a row has a name");
    let device = name.open().expect("a simulated device");
    let region =
        Region::new(device.memory(&"sim".parse().expect("a name"), 1 << 16).expect("memory"))
            .expect("a region");
    let memory =
        (row.memory_bytes > 0).then(|| region.alloc(row.memory_bytes, Align::LINE).expect("room"));
    let map = (row.name == "ap_ctrl").then_some(MAP);
    // SAFETY: the model is this driver's core, and this function alone drives it.
    let opened = unsafe {
        let taken = device.take(row, settings, None, Attach { window: 0, interrupt: false });
        taken.and_then(|taken| taken.open(Parts { device: (), memory, settings, map }))
    };
    match opened {
        Ok(driver) => drop(driver),
        Err(error) => drop(error.to_string()),
    }
}

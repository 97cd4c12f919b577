//! Devices that are not there or are not what they should be, by their registers and by their
//! names.

use contigo::design::kernel;
use contigo::hw::{MmioWindow, Wired};
use contigo::job::{Parts, Settings};
use contigo::linux::Spin;
use contigo::names::{Attach, DeviceName, GpuKind, MemoryName, provide, row};
use contigo::sim::SimBoard;
use contigo::{Align, Error, Region};
use contigo_gemm8::{Gemm8, regs};
use std::ptr::NonNull;

/// Memory in a register window's place: all zeros, as an address where no gemm8 is.
#[test]
fn registers_that_no_gemm8_has() {
    let mut words = [0_u32; regs::WINDOW_BYTES / 4];
    let port = SimBoard::new(1).port();
    let mut open = |len_bytes| {
        let base = NonNull::from(&mut words).cast();
        // SAFETY: the array is longer, outlives the window, and is no device: nothing reaches
        // memory by itself.
        let device = unsafe { Wired::new(MmioWindow::new(base, len_bytes), Spin, port) };
        // SAFETY: it is no gemm8, and no device at all: what is written to it stays in the array.
        unsafe { Gemm8::open(device) }.unwrap_err()
    };
    let (device, expected) = ("gemm8", regs::ID_VALUE);
    let small = Error::RegisterWindow { device, need_bytes: 0x90, have_bytes: 0x8C };
    assert_eq!(open(regs::WINDOW_BYTES - 4), small);
    let absent = Error::WrongDevice { device, register: "ID", expected, found: 0 };
    assert_eq!(open(regs::WINDOW_BYTES), absent);
}

#[test]
fn misspelt_driver_gets_eight_names() {
    let told = row("axi_dam").unwrap_err().to_string();
    let begins = "there is no such driver; others that are here: axi_dma, ";
    assert!(told.starts_with(begins) && told.contains(", and "), "{told}");
    assert_eq!(told.matches(", ").count(), 8, "{told}");
}

/// A crate brings the names of a kind of GPU, and only of a kind that is known.
#[test]
fn a_gpu_that_another_crate_brings() {
    const LOST: Error =
        Error::Gpu { call: "vkQueueSubmit", code: -4, name: "VK_ERROR_DEVICE_LOST" };
    static VULKAN: GpuKind = GpuKind {
        kind: "vulkan",
        open: |ordinal| if ordinal == 7 { Err(LOST) } else { panic!("{ordinal}") },
    };
    static UNKNOWN: GpuKind = GpuKind { kind: "metal", open: |_| Err(LOST) };
    assert_eq!(provide(&UNKNOWN), Err(Error::NotFound { what: "kind of GPU", among: 2.into() }));
    // A second time changes nothing.
    assert_eq!((provide(&VULKAN), provide(&VULKAN)), (Ok(()), Ok(())));
    assert_eq!("vulkan:7".parse::<DeviceName>().unwrap().open().map(drop), Err(LOST));
    let memory = "vulkan:7".parse::<MemoryName>().unwrap();
    assert_eq!(memory.open(4096).map(drop), Err(LOST), "the device's memory opens the device");
}

#[test]
fn settings_and_maps_that_are_none() {
    let settings = Settings("channel=two, evnet=1");
    let number = Error::NotANumber { name: "channel", min: 0, max: 31 };
    assert_eq!(settings.number("channel", 0, 31), Err(number));
    let known = &["channel", "event"];
    let unknown = settings.only(known).unwrap_err();
    assert_eq!(unknown, Error::UnknownSetting { place: 2, known });
    let map = Error::from(kernel::any(b"{\"name\": 1}", "").unwrap_err());
    assert!(matches!(map, Error::BadMap { line: 1, .. }), "{map}");
}

/// Opens the driver of a simulated device by their names.
fn by_name(device: &str, settings: &str, map: Option<&str>) -> Result<(), Error> {
    let driver = ["_camera", "_sink", "_hs"]
        .iter()
        .fold(device.trim_start_matches("sim:"), |name, end| name.trim_end_matches(end));
    let (driver, settings) = (row(driver).unwrap(), Settings(settings));
    let device = device.parse::<DeviceName>().unwrap().open().unwrap();
    let region = device.memory(&"sim".parse().unwrap(), 64 * 1024).unwrap();
    let region = Region::new(region).unwrap();
    let memory =
        (driver.memory_bytes > 0).then(|| region.alloc(driver.memory_bytes, Align::PAGE).unwrap());
    // SAFETY: the model is what the driver is for, and no other code drives it.
    unsafe {
        let taken = device.take(driver, settings, None, Attach::default())?;
        let map = map.map(str::as_bytes);
        taken.open(Parts { device: (), memory, settings, map }).map(drop)
    }
}

/// What no register tells, a simulated core is built with: another number is refused with both.
#[test]
fn settings_that_no_model_has() {
    let stores = "hsize_bytes=64,vsize_lines=64,frame_stores=1";
    for (device, settings, what, value, min, max) in [
        ("sim:axi_dma_sink", "channel=1", "channel", 1, 0, 0),
        ("sim:axi_vdma", stores, "frame_stores", 1, 3, 32),
        ("sim:axi_mcdma", "channel=0,address_bits=64", "address_bits", 64, 32, 32),
        ("sim:msgdma", "resp_at=0x40", "resp_at", 0x40, 0, 0),
        ("sim:litepcie", "reader_at=0x100", "reader_at", 0x100, 0x6020, 0x6020),
    ] {
        let refused = by_name(device, settings, None);
        assert_eq!(refused, Err(Error::OtherModel { what, value, min, max }), "{device}");
    }
    // Of a length and a width by its name a core has all that a design can have.
    for (device, settings) in [
        ("sim:axi_dma", "length_bits=26,address_bits=32,mm2s_data_bits=512"),
        ("sim:axi_cdma", "length_bits=26,address_bits=64,data_bits=128,dre=0"),
        ("sim:axi_vdma_sink", "channel=0,hsize_bytes=1920,vsize_lines=1080"),
        ("sim:litepcie", "reader_at=0x6020"),
    ] {
        assert_eq!(by_name(device, settings, None), Ok(()), "{device} {settings}");
    }
}

/// `int fir(x, y, coef, n)`, and others, on the kernel `copy(from, to, n)`.
#[test]
fn maps_that_no_model_has() {
    let copy = r#"{"name": "copy", "protocol": "ap_ctrl_chain", "interrupt": true,
        "pointers": [{"name": "from", "offset": "0x18", "direction": "in", "bytes": "n"},
                     {"name": "to", "offset": "0x24", "direction": "out", "bytes": "n"}],
        "scalars": [{"name": "n", "offset": "0x30"}],
        "results": [{"name": "ap_return", "offset": "0x10"}]}"#;
    let without = copy.replace(r#"{"name": "ap_return", "offset": "0x10"}"#, "");
    let lengths = copy.replace("\"n\"}", "\"4*n\"}");
    for map in [copy, &without, &lengths] {
        assert_eq!(by_name("sim:ap_ctrl", "", Some(map)), Ok(()), "the same registers: {map}");
    }
    let fir = copy.replace(
        r#""bytes": "n"}],"#,
        r#""bytes": "n"}, {"name": "coef", "offset": "0x3C", "bytes": "64"}],"#,
    );
    let protocol = "the map's protocol (0: ap_ctrl_hs, 1: ap_ctrl_chain)";
    let moved = |from, to| copy.replace(from, to);
    for (device, map, what, value, has) in [
        ("sim:ap_ctrl_hs", copy.to_owned(), protocol, 1, 0),
        ("sim:ap_ctrl", moved("0x24", "0x28"), "a pointer's offset in the map", 0x28, 0x24),
        ("sim:ap_ctrl", moved("0x30", "0x3C"), "a scalar's offset in the map", 0x3C, 0x30),
        ("sim:ap_ctrl", moved("0x10", "0x14"), "a result's offset in the map", 0x14, 0x10),
        ("sim:ap_ctrl", fir, "the count of pointers in the map", 3, 2),
    ] {
        let other = Error::OtherModel { what, value, min: has, max: has };
        assert_eq!(by_name(device, "", Some(&map)), Err(other));
    }
}

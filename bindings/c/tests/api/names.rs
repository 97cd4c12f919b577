//! Memory and devices by their names.

use crate::common::*;
use contigo_c::*;
use core::ffi::CStr;
use core::ptr;

fn region(name: &CStr) -> (contigo_status, contigo_region) {
    let mut region = 7;
    (unsafe { contigo_region_open(name.as_ptr(), 1 << 20, &mut region) }, region)
}

fn memory(device: contigo_device, name: &CStr) -> (contigo_status, contigo_region) {
    let mut region = 7;
    (unsafe { contigo_device_memory(device, name.as_ptr(), 1 << 20, &mut region) }, region)
}

#[test]
fn opening_serves_engine_memory_and_port() {
    let device = open_device(c"sim:zdma@7");
    let (status, region) = memory(device, c"sim:7");
    ok(status);
    let options = engine_options(c"zdma", device, 0, 0);
    let engine = open_engine(&options);
    refused(try_engine(&options), CONTIGO_E_HAS_DRIVER, "");
    let [from, to] = [0, 1].map(|_| carve(region, 4096, 4096));
    fill(from, 7);
    let operands = [from, to].map(|buf| part(buf, 4096));
    let job = start_job(engine, &operands, &[]);
    ok(wait(job, 100_000));
    assert_eq!(bytes(to), [7; 4096]);
    let port = answer(|port| unsafe { contigo_device_port(device, 0, port) });
    ok(give(to, port, 0, 4096, CONTIGO_WRITES).0);
    ok(contigo_buf_take_back(to));
    // They count: the device is the last to be closed.
    refused(contigo_device_close(device), CONTIGO_E_STILL_USED, "device");
    ok(contigo_buf_release(from));
    ok(contigo_buf_release(to));
    ok(contigo_region_close(region));
    refused(contigo_device_close(device), CONTIGO_E_STILL_USED, "device");
    ok(contigo_engine_close(engine));
    ok(contigo_device_close(device));
    ok(contigo_port_close(port));
    refused(memory(device, c"sim").0, CONTIGO_E_STALE, "device");
}

#[test]
fn a_program_drives_a_device_itself() {
    let device = open_device(c"sim:zdma");
    let registers = attach(device, 0, 0, 1);
    refused(unsafe { contigo_device_attach(device, 0, 0, 1, &mut 0) }, CONTIGO_E_HAS_DRIVER, "");
    let at = |offset_bytes, access| contigo_register { offset_bytes, access };
    let read =
        |reg| answer(|value: *mut u32| unsafe { contigo_registers_read(registers, reg, value) });
    // UG1087, ZDMA_CH_SRC_DSCR_WORD0: a register that keeps what is written.
    let word = at(0x128, CONTIGO_READ_WRITE);
    ok(unsafe { contigo_registers_write(registers, word, 0x1234_5678) });
    assert_eq!((read(word), read(at(1 << 20, CONTIGO_READ_ONLY))), (0x1234_5678, u32::MAX));
    ok(unsafe { contigo_registers_write(registers, word, 0x1234_ABCD) });
    // An access that would spoil a register of its kind is refused.
    let write = |access| unsafe { contigo_registers_write(registers, at(0x128, access), 0) };
    refused(write(CONTIGO_READ_ONLY), CONTIGO_E_KIND, "the register at 0x128 is read-only");
    assert_eq!(read(word), 0x1234_ABCD);
    // Bounded, with what was seen last.
    let mut seen = 0;
    let mut until = |value| {
        (
            unsafe { contigo_registers_wait_until(registers, word, 0xFF, value, 100, &mut seen) },
            seen,
        )
    };
    assert_eq!(until(0xCD), (CONTIGO_OK, 0x1234_ABCD));
    let (status, seen) = until(0xCE);
    refused(status, CONTIGO_E_TIMEOUT, "within 100 us");
    assert_eq!(seen, 0x1234_ABCD);
    ok(contigo_registers_wait(registers, 10));
    refused(contigo_device_close(device), CONTIGO_E_STILL_USED, "device");
    refused(
        unsafe { contigo_registers_read(device, at(0, 0), &mut 0) },
        CONTIGO_E_KIND,
        "registers",
    );
    ok(contigo_registers_close(registers));
    let options = engine_options(c"zdma", device, 0, 0);
    ok(contigo_engine_close(open_engine(&options)));
    ok(unsafe { contigo_device_enable_bus_master(device) });
    ok(contigo_device_close(device));
}

#[test]
fn region_opens_with_its_own_device() {
    for _ in 0..2 * CONTIGO_MAX_DEVICES {
        let (status, region) = region(c"sim:3");
        ok(status);
        ok(contigo_region_close(region));
    }
    let named =
        contigo_region_options { align_bytes: 4096, len_bytes: 1 << 16, ..region_options(0) };
    ok(contigo_region_close(open_region(c"sim:3", &named)));
}

#[test]
fn bad_or_missing_name_tells_what_exists() {
    for (name, code, part) in [
        (c"ddr:0", CONTIGO_E_BAD_NAME, "at byte 0: there is no such kind; write contigo[:DEVICE]"),
        (c"vfio:1", CONTIGO_E_BAD_NAME, "is written as 0000:01:00.0; write vfio:DDDD:BB:DD.F"),
        (c"vfio:ffff:1f:1f.7", CONTIGO_E_ATTRIBUTE_MISSING, "is missing: there is no such device"),
        (c"dma-heap:no-such-heap", CONTIGO_E_OS, "errno 2, ENOENT: no such file or directory; "),
        (c"dma-heap:no-such-heap", CONTIGO_E_OS, "this machine has "),
        (c"dma-heap:x@contigo:ffffffff", CONTIGO_E_NOT_FOUND, "the kernel module contigo"),
        (c"contigo:ffffffff", CONTIGO_E_NOT_FOUND, "the kernel module contigo"),
        (c"contigo", CONTIGO_E_NEEDS_DEVICE, "belongs to a device: open that device"),
    ] {
        let (status, handle) = region(name);
        refused(status, code, part);
        assert_eq!(handle, 7, "it stays");
    }
    refused(
        unsafe { contigo_device_open(c"uio:none".as_ptr(), &mut 0) },
        CONTIGO_E_NOT_FOUND,
        "there is no such UIO device; others that are here: 0; this machine has ",
    );
    refused(unsafe { contigo_device_open(ptr::null(), &mut 0) }, CONTIGO_E_NULL, "name");
    let device = open_device(c"sim:board@1");
    refused(memory(device, c"sim:2").0, CONTIGO_E_NEEDS_DEVICE, "open that device");
    refused(memory(device, c"contigo").0, CONTIGO_E_NEEDS_DEVICE, "open that device");
    refused(
        unsafe { contigo_device_attach(device, 0, 0, 1, &mut 0) },
        CONTIGO_E_UNSUPPORTED,
        "memory alone",
    );
    refused(unsafe { contigo_device_attach(device, 0, 256, 1, &mut 0) }, CONTIGO_E_VALUE, "window");
    ok(contigo_device_close(device));
}

#[test]
fn the_inventory_is_lines_of_four_fields() {
    let whole = answer(|len| unsafe { contigo_inventory(ptr::null_mut(), 0, len) });
    let mut text = vec![0x7F_u8; whole + 1];
    assert_eq!(
        answer(|len| unsafe { contigo_inventory(text.as_mut_ptr().cast(), text.len(), len) }),
        whole
    );
    let lines = CStr::from_bytes_with_nul(&text).unwrap().to_str().unwrap();
    let fields: Vec<Vec<_>> = lines.lines().map(|line| line.split('\t').collect()).collect();
    assert!(
        fields
            .iter()
            .all(|fields| fields.len() == 4 && ["ready", "blocked", "absent"].contains(&fields[2])),
        "{lines}"
    );
    for expected in [["memory", "sim", "ready", ""], ["device", "sim:zdma", "ready", ""]] {
        assert!(fields.iter().any(|fields| fields == &expected), "{lines}");
    }
    assert!(
        fields.iter().any(
            |fields| fields[..3] == ["driver", "zdma", "ready"] && fields[3].contains("copies")
        ),
        "{lines}"
    );
    // A list that does not fit is cut, and the length is that of the whole list.
    let mut short = [0x7F_u8; 8];
    assert_eq!(
        answer(|len| unsafe { contigo_inventory(short.as_mut_ptr().cast(), 4, len) }),
        whole
    );
    assert_eq!(short, *b"mem\0\x7F\x7F\x7F\x7F");
    refused(unsafe { contigo_inventory(ptr::null_mut(), 4, &mut 0) }, CONTIGO_E_NULL, "text");
}

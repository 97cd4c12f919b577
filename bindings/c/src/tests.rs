#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "the C functions take pointers, which are references here; a test that panics has \
              failed, which is its purpose"
)]
//! Real memory and devices, on fakes of the kernel: registers and interrupts are files, and the
//! module's node is a fake.

use crate::object::device::{DEVICES, Opened};
use crate::object::region::{Parent, REGIONS, Region};
use crate::*;
use contigo::names::DeviceName;
use contigo_testkit::fake_dev_node::{DevNodeConfig, Event, FakeDevNode, NAME};
use contigo_testkit::fake_devices::FakeDevices;
use contigo_testkit::fake_u_dma_buf::{Config, FakeUDmaBuf};
use core::ffi::c_int;
use core::mem::{size_of, zeroed};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::error::Error;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::{fs, thread};

/// HLS's control register with AP_DONE, and with AP_IDLE.
const CTRL: u64 = 0x00;
const DONE: u32 = 2;
const IDLE: u32 = 4;

/// `void scan(char *to)`.
const MAP: &str = r#"{"name": "scan", "protocol": "ap_ctrl_chain", "interrupt": true, "window": 64,
    "pointers": [{"name": "to", "offset": "0x10", "direction": "out", "bytes": "64"}]}"#;

/// The value that a call answers by its last argument.
fn answer<T: Default>(call: impl FnOnce(*mut T) -> contigo_status) -> T {
    let mut value = T::default();
    assert_eq!(call(&raw mut value), CONTIGO_OK, "{}", last_error());
    value
}

/// The text of the last refusal.
fn last_error() -> String {
    crate::last_error::with_text(|text| String::from_utf8_lossy(text).into_owned()).unwrap()
}

/// A kernel whose registers are a file, and whose interrupt is the same file.
struct Fake {
    tree: FakeDevices,
    device: contigo_device,
    engine: contigo_engine,
}

impl Fake {
    fn open(port: contigo_port, polled: u32) -> Self {
        let tree = FakeDevices::new();
        tree.uio(0, Some("scan@40000000"), "scan");
        // Each wait for the interrupt reads on in the file, and must not come to its end.
        fs::File::options()
            .write(true)
            .open(tree.path("dev/uio0"))
            .unwrap()
            .set_len(1 << 28)
            .unwrap();
        let name: DeviceName = "uio:scan".parse().unwrap();
        // SAFETY: no memory is given back because of what its registers say.
        let device = DEVICES
            .insert(Opened::alone(unsafe { name.open_under(tree.root()) }.unwrap()))
            .ok()
            .unwrap();
        let fake = Self { tree, device, engine: 0 };
        fake.says(CTRL, IDLE);
        let options = contigo_engine_options {
            struct_size: size_of::<contigo_engine_options>(),
            driver: c"ap_ctrl".as_ptr(),
            device,
            port,
            polled,
            map: MAP.as_ptr(),
            map_bytes: MAP.len(),
            // SAFETY: integers and pointers.
            ..unsafe { zeroed() }
        };
        // SAFETY: the pointers are to constants; there is no device that could move a byte.
        let engine = fake
            .idle(|| answer(|engine| unsafe { contigo_engine_open(&raw const options, engine) }));
        Self { engine, ..fake }
    }

    /// Sets the device's register at `offset` to `word`.
    fn says(&self, offset: u64, word: u32) {
        let file = fs::File::options().write(true).open(self.tree.path("dev/uio0")).unwrap();
        file.write_all_at(&word.to_le_bytes(), offset).unwrap();
    }

    /// Does `act`, while the kernel says AP_IDLE whatever a stop writes to its control register.
    fn idle<R>(&self, act: impl FnOnce() -> R) -> R {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // As long as two seconds, where `act` panics.
                for _ in (0..2_000).take_while(|_| !over.load(Ordering::Relaxed)) {
                    self.says(CTRL, IDLE);
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let done = act();
            over.store(true, Ordering::Relaxed);
            done
        })
    }

    fn close(self) {
        assert_eq!(
            [self.idle(|| contigo_engine_close(self.engine)), contigo_device_close(self.device)],
            [CONTIGO_OK; 2]
        );
        assert_eq!(self.tree.held(), (0, 0), "nothing of it stays open");
        let mut fd = 7;
        // SAFETY: the pointer is a reference.
        let armed = unsafe { contigo_engine_irq_arm(self.engine, &raw mut fd) };
        assert_eq!((armed, fd), (CONTIGO_E_STALE, -1));
    }
}

#[test]
fn an_event_loop_arms_looks_and_waits() {
    let options = contigo_sim_options {
        struct_size: size_of::<contigo_sim_options>(),
        ..contigo_sim_options::default()
    };
    // SAFETY: the pointers are references.
    let sim = answer(|sim| unsafe { contigo_sim_open(&raw const options, sim) });
    // SAFETY: as above.
    let port = answer(|port| unsafe { contigo_sim_port(sim, 1, port) });
    let memory = contigo_region_options {
        struct_size: size_of::<contigo_region_options>(),
        len_bytes: 4096,
        sim,
        ..contigo_region_options::default()
    };
    // SAFETY: as above.
    let region = answer(|region| unsafe {
        contigo_region_open_with(c"sim".as_ptr(), &raw const memory, region)
    });
    let fake = Fake::open(port, 0);
    // SAFETY: as above.
    let arm = || answer::<c_int>(|fd| unsafe { contigo_engine_irq_arm(fake.engine, fd) });
    let fd = arm();
    assert_eq!(fs::read_link(format!("/proc/self/fd/{fd}")).unwrap(), fake.tree.path("dev/uio0"));
    assert_eq!(fake.tree.inherited(), 0, "no program that is started gets it");

    // SAFETY: as above.
    let buf = answer(|buf| unsafe { contigo_carve(region, 64, 0, buf) });
    let operand = contigo_operand { buf, offset_bytes: 0, len_bytes: 64 };
    // SAFETY: as above.
    let job = answer(|job| unsafe {
        contigo_job_start(fake.engine, &raw const operand, 1, ptr::null(), 0, 0, job)
    });
    assert_eq!(fake.tree.word("dev/uio0", 0) & 1, 1, "AP_START");
    // SAFETY: as above.
    let look =
        || answer::<u64>(|job| unsafe { contigo_queue_next(fake.engine, 0, job, ptr::null_mut()) });
    // The engine has a job, and its interrupt can be had all the same.
    fake.says(CTRL, 0);
    assert_eq!((arm(), look()), (fd, 0));
    fake.says(CTRL, DONE | IDLE);
    // SAFETY: it is open until the engine is closed.
    let mut files = [PollFd::new(unsafe { BorrowedFd::borrow_raw(fd) }, PollFlags::POLLIN)];
    assert_eq!((poll(&mut files, PollTimeout::from(1_000_u16)), look()), (Ok(1), job));
    fake.says(CTRL, IDLE);

    assert_eq!(contigo_buf_release(buf), CONTIGO_OK);
    fake.close();
    for status in [contigo_region_close(region), contigo_port_close(port), contigo_sim_close(sim)] {
        assert_eq!(status, CONTIGO_OK);
    }
}

const WORD: contigo_register = contigo_register { offset_bytes: 8, access: 0 };

fn info_of(device: u64) -> (contigo_status, contigo_device_info) {
    let mut info =
        contigo_device_info { struct_size: size_of::<contigo_device_info>(), ..Default::default() };
    // SAFETY: the pointer is a reference.
    (unsafe { contigo_device_get_info(device, &raw mut info) }, info)
}

#[test]
fn device_serves_registers_irq_and_reset() -> Result<(), Box<dyn Error>> {
    let tree = FakeDevices::new();
    tree.folder(&format!("sys/class/contigo/{NAME}"));
    let kernel =
        FakeDevNode::new(DevNodeConfig { can_reset: true, windows: 2, ..DevNodeConfig::default() });
    let name: DeviceName = "contigo:gemm8".parse()?;
    // SAFETY: no driver is made of it that gives memory back.
    let opened = unsafe {
        name.open_dev_node_with(tree.root().to_owned().leak(), Arc::new(kernel.clone()))
    }?;
    let device = DEVICES.insert(Opened::alone(opened)).map_err(|_| "the table is full")?;
    let (mut port, mut registers, mut word) = (0, 0, 0);
    // SAFETY: the name is a text; here and below the pointers are references, and the device is a
    // fake, which touches no memory.
    unsafe {
        assert_eq!(contigo_port_find(c"zynq-hp0".as_ptr(), &raw mut port), CONTIGO_OK);
        for (window, polled) in [(1, 1), (0, 0)] {
            kernel.set_register(window, 8, 70 + window);
            assert_eq!(
                contigo_device_attach(device, port, window, polled, &raw mut registers),
                CONTIGO_OK
            );
            assert_eq!(
                (contigo_registers_read(registers, WORD, &raw mut word), word),
                (CONTIGO_OK, 70 + window)
            );
            assert_eq!(contigo_registers_write(registers, WORD, 9), CONTIGO_OK);
            assert_eq!(kernel.register(window, 8), 9);
            kernel.interrupt(0);
            assert_eq!(contigo_registers_wait(registers, 60_000_000), CONTIGO_OK);
            assert_eq!(contigo_device_close(device), CONTIGO_E_STILL_USED);
            assert_eq!(contigo_registers_close(registers), CONTIGO_OK);
        }
        let (status, info) = info_of(device);
        assert_eq!(
            (
                status,
                info.is_contigo_device,
                info.can_reset,
                info.is_confined,
                info.is_armed,
                info.window_len_bytes[..3].to_vec()
            ),
            (CONTIGO_OK, 1, 1, 0, 0, vec![0x1000, 0x1000, 0])
        );
        // An engine leaves its stop with the kernel. UG1087, ZDMA_CH_DATA_ATTR after reset: by that
        // the driver knows its channel.
        kernel.set_register(0, 0x120, 0x0483_D20F);
        let mut engine = 0;
        let options = contigo_engine_options {
            struct_size: size_of::<contigo_engine_options>(),
            driver: c"zdma".as_ptr(),
            device,
            port,
            polled: 1,
            ..zeroed() // integers and pointers
        };
        assert_eq!(contigo_engine_open(&raw const options, &raw mut engine), CONTIGO_OK);
        assert_eq!((contigo_engine_arm(engine, 0), info_of(device).1.is_armed), (CONTIGO_OK, 1));
        assert_eq!(contigo_engine_close(engine), CONTIGO_OK);
        let mut region = 0;
        for (memory, expected) in [
            (c"contigo", CONTIGO_OK),
            (c"contigo:gemm8", CONTIGO_OK),
            (c"contigo:other", CONTIGO_E_NEEDS_DEVICE),
        ] {
            assert_eq!(
                contigo_device_memory(device, memory.as_ptr(), 1 << 16, &raw mut region),
                expected,
                "{memory:?}"
            );
            if expected == CONTIGO_OK {
                assert_eq!(
                    (kernel.imports(), contigo_region_close(region), kernel.imports()),
                    (1, CONTIGO_OK, 0)
                );
            }
        }
        assert_eq!(
            contigo_device_memory(device, c"contigo".as_ptr(), 1 << 16, &raw mut region),
            CONTIGO_OK
        );
        for (settings, descriptors) in [
            (c"", CONTIGO_DESCRIPTORS_COHERENT),
            (c"coherent_memory=0", CONTIGO_DESCRIPTORS_SYNCED),
        ] {
            let options = contigo_engine_options { region, settings: settings.as_ptr(), ..options };
            assert_eq!(contigo_engine_open(&raw const options, &raw mut engine), CONTIGO_OK);
            let mut info = contigo_engine_info {
                struct_size: size_of::<contigo_engine_info>(),
                ..zeroed() // integers
            };
            assert_eq!(contigo_engine_get_info(engine, &raw mut info), CONTIGO_OK);
            assert_eq!(info.descriptors, descriptors, "{settings:?}");
            assert_eq!(contigo_engine_close(engine), CONTIGO_OK);
        }
        assert_eq!(contigo_region_close(region), CONTIGO_OK);
        assert_eq!(contigo_device_reset(device), CONTIGO_OK);
        assert_eq!(kernel.log().last(), Some(&Event::Reset));
        kernel.take_away();
        assert_eq!((contigo_device_reset(device), info_of(device).0), (CONTIGO_E_OS, CONTIGO_E_OS));
    }
    assert_eq!((contigo_device_close(device), contigo_port_close(port)), (CONTIGO_OK, CONTIGO_OK));
    Ok(())
}

/// A region on a u-dma-buf that is a file.
fn region(fake: &FakeUDmaBuf) -> contigo_region {
    let memory = contigo::Region::new(fake.open().unwrap()).unwrap();
    REGIONS.insert(Region { memory, _parent: Parent::None }).unwrap()
}

fn export(region: contigo_region) -> (contigo_status, c_int) {
    let mut fd = 7;
    // SAFETY: the pointer is a reference; no code imports the block.
    (unsafe { contigo_region_export(region, &raw mut fd) }, fd)
}

#[test]
fn export_shares_pages_and_fd_is_programs() {
    let fake = FakeUDmaBuf::new(Config::default());
    let region = region(&fake);
    let (status, fd) = export(region);
    assert_eq!((status, fd > 2), (CONTIGO_OK, true), "{fd}");
    let flags = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap();
    let flags = flags.lines().find_map(|line| line.strip_prefix("flags:").map(str::trim)).unwrap();
    assert_ne!(
        u32::from_str_radix(flags, 8).unwrap() & 0o2_000_000,
        0,
        "O_CLOEXEC: no program that is started gets it"
    );

    let mut buf = 0;
    let word = [0x3C_u8; 64];
    // SAFETY: the pointers are references, and so many bytes are there.
    let wrote = unsafe {
        [
            contigo_carve(region, 64, 0, &raw mut buf),
            contigo_buf_write(buf, word.as_ptr().cast(), 64),
        ]
    };
    assert_eq!((wrote, contigo_buf_release(buf)), ([CONTIGO_OK; 2], CONTIGO_OK));
    assert_eq!(contigo_region_close(region), CONTIGO_OK);
    // SAFETY: it was given to this test, which closes it by dropping the file.
    let file = unsafe { <fs::File as std::os::fd::FromRawFd>::from_raw_fd(fd) };
    let mut bytes = [0; 64];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, word, "the pages live as long as the descriptor");
    assert_eq!(export(region), (CONTIGO_E_STALE, -1));
}

#[test]
fn failed_sync_leaves_buffer_with_device() {
    // Two syncs when the region is made, and one for the device; then the device is gone.
    let fake = FakeUDmaBuf::new(Config { vanish_after: 3, ..Config::default() });
    let (region, mut port, mut buf) = (region(&fake), 0, 0);
    // SAFETY: the pointers are references, and the name is a text.
    let made = unsafe {
        [
            contigo_carve(region, 64, 0, &raw mut buf),
            contigo_port_find(c"zynq-hp0".as_ptr(), &raw mut port),
        ]
    };
    assert_eq!(made, [CONTIGO_OK; 2]);
    let mut addr = 0;
    // SAFETY: as above; no device receives the address.
    let given = unsafe { contigo_buf_give(buf, port, 0, 64, CONTIGO_WRITES, &raw mut addr) };
    assert_eq!((given, contigo_buf_take_back(buf)), (CONTIGO_OK, CONTIGO_E_OS));
    let mut info =
        contigo_buf_info { struct_size: size_of::<contigo_buf_info>(), ..Default::default() };
    // SAFETY: the pointer is a reference.
    let told = unsafe { contigo_buf_get_info(buf, &raw mut info) };
    assert_eq!((told, info.addr, info.len_bytes, info.device_owned), (CONTIGO_OK, addr, 64, 1));
    assert_eq!(
        (contigo_port_close(port), contigo_region_close(region)),
        (CONTIGO_OK, CONTIGO_E_STILL_USED)
    );
}

#[test]
fn what_the_kernel_says_is_passed_on() {
    let fake = FakeUDmaBuf::new(Config { ioctls: false, class: "udmabuf", ..Config::default() });
    let region = region(&fake);
    assert_eq!(export(region), (CONTIGO_E_OS, -1));
    let text = last_error();
    assert!(text.contains("U_DMA_BUF_IOCTL_EXPORT") && text.contains("errno 25"), "{text}");
    assert_eq!(contigo_region_close(region), CONTIGO_OK);
}

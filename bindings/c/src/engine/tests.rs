#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "the C functions take pointers, which are references here; a test that panics has failed, which is its purpose"
)]
//! Real devices, whose registers and interrupts are files.

use crate::{
    object::device::{DEVICES, Opened},
    *,
};
use contigo::names::DeviceName;
use contigo_testkit::fake_devices::FakeDevices;
use core::{
    ffi::c_int,
    mem::size_of,
    ptr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    fs,
    os::{fd::BorrowedFd, unix::fs::FileExt},
    thread,
};

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
    assert_eq!(
        call(&raw mut value),
        CONTIGO_OK,
        "{:?}",
        crate::last_error::with_text(|text| String::from_utf8_lossy(text).into_owned())
    );
    value
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
            window: 0,
            polled,
            region: 0,
            region_bytes: 0,
            settings: ptr::null(),
            map: MAP.as_ptr(),
            map_bytes: MAP.len(),
            gate: 0,
            gate_offset: 0,
            gate_window: 0,
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
        assert_eq!(
            (unsafe { contigo_engine_irq_arm(self.engine, &raw mut fd) }, fd),
            (CONTIGO_E_STALE, -1)
        );
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
        contigo_job_start(fake.engine, &raw const operand, 1, ptr::null(), 0, job)
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

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "the C functions take pointers, which are references here; a test that panics has failed, which is its purpose"
)]
//! Real devices, whose registers and interrupts are files.

use super::*;
use crate::*;
use contigo::names::DeviceName;
use contigo_testkit::fake_devices::FakeDevices;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    fs,
    os::{fd::BorrowedFd, unix::fs::FileExt},
    path::PathBuf,
};

/// gemm8.md: CTRL with AP_DONE and AP_IDLE, BYTES_OUT, ID.
const CTRL: (u64, u32) = (0x00, 6);
const BYTES_OUT: (u64, u32) = (0x78, 64);
const ID: (u64, u32) = (0x88, 0x474D_3801);

/// A gemm8 whose registers are a file, and whose interrupt is the same file.
struct Fake {
    tree: FakeDevices,
    engine: u64,
}

/// What a call answers by its last argument.
fn answer<T: Default>(call: impl FnOnce(*mut T) -> contigo_status) -> T {
    let mut value = T::default();
    assert_eq!(call(&raw mut value), CONTIGO_OK);
    value
}

/// The tree's device.
fn held(tree: &FakeDevices) -> Held {
    let name: DeviceName = "uio:gemm8".parse().unwrap();
    // SAFETY: no memory is given back because of what its registers say.
    Held::opened(unsafe { name.open_under(tree.root()) }.unwrap()).ok().unwrap()
}

impl Fake {
    fn open(port: contigo_port, polled: bool) -> Self {
        let tree = FakeDevices::new();
        tree.uio(0, Some("gemm8@40000000"), "gemm8");
        let fake = Self { tree, engine: 0 };
        fake.says(&[CTRL, ID]);
        let wiring = Wiring::Device { held: held(&fake.tree), port, polled };
        let port = crate::object::port::get(port).unwrap();
        let opening = Opening { kind: MachineKind::Gemm8, wiring, port, heap: None };
        Self { engine: Station::open(opening).ok().unwrap(), ..fake }
    }

    /// What the device's registers say.
    fn says(&self, registers: &[(u64, u32)]) {
        let file = fs::File::options().write(true).open(self.file()).unwrap();
        registers.iter().for_each(|(offset, word)| file.write_all_at(&word.to_le_bytes(), *offset).unwrap());
    }

    fn file(&self) -> PathBuf {
        self.tree.path("dev/uio0")
    }
}

#[test]
fn an_event_loop_arms_looks_and_waits() {
    let options = contigo_sim_options { struct_size: size_of::<contigo_sim_options>(), ..contigo_sim_options::default() };
    // SAFETY: the pointers are references.
    let sim = answer(|sim| unsafe { contigo_sim_open(&raw const options, sim) });
    // SAFETY: as above.
    let port = answer(|port| unsafe { contigo_sim_port(sim, 1, port) });
    let memory = contigo_heap_options {
        struct_size: size_of::<contigo_heap_options>(),
        kind: CONTIGO_HEAP_SIM,
        addr_bits: 0,
        len_bytes: 1 << 16,
        align_bytes: 0,
        name: core::ptr::null(),
        sim,
        kernel_port: 0,
        gpu: 0,
        write_combined: 0,
        device: 0,
    };
    // SAFETY: as above.
    let heap = answer(|heap| unsafe { contigo_heap_open(&raw const memory, heap) });
    let fake = Fake::open(port, false);
    // SAFETY: as above.
    let irq_fd = || answer(|fd| unsafe { contigo_engine_irq_fd(fake.engine, fd) });
    let fd = irq_fd();
    assert_eq!(fs::read_link(format!("/proc/self/fd/{fd}")).unwrap(), fake.file());
    assert_eq!(fake.tree.inherited(), 0, "no program that is started gets it");

    // SAFETY: as above.
    let carve = |len_bytes| answer(|buf| unsafe { contigo_carve(heap, len_bytes, 0, buf) });
    let operands = [64, 1024, 64, 64].map(|len_bytes| contigo_operand { buf: carve(len_bytes), offset_bytes: 0, len_bytes });
    let gemm = contigo_gemm8_args {
        struct_size: size_of::<contigo_gemm8_args>(),
        m: 1,
        n: 16,
        k: 64,
        output: CONTIGO_GEMM8_INT32,
        relu: 0,
        shift: 0,
    };
    // SAFETY: as above; there is no device that could move a byte.
    let job = answer(|job| unsafe { contigo_gemm8_start(fake.engine, &raw const gemm, operands.as_ptr(), job) });
    // SAFETY: as above.
    let look = || answer(|done| unsafe { contigo_job_poll(job, done) });
    assert_eq!(fake.tree.word("dev/uio0", 0), 1, "AP_START");
    // The engine has a job, and its interrupt can be had all the same. Arming reads one word and writes one behind it.
    fake.says(&[(4, 0)]);
    assert_eq!((contigo_engine_irq_arm(fake.engine), look(), irq_fd()), (CONTIGO_OK, 0, fd));
    assert_eq!(fake.tree.word("dev/uio0", 4), 1, "unmasked");
    fake.says(&[CTRL, BYTES_OUT]);
    // SAFETY: it is open until the engine is closed.
    let mut files = [PollFd::new(unsafe { BorrowedFd::borrow_raw(fd) }, PollFlags::POLLIN)];
    assert_eq!((poll(&mut files, PollTimeout::from(1_000_u16)), look()), (Ok(1), 1));

    operands.iter().for_each(|operand| assert_eq!(contigo_buf_release(operand.buf), CONTIGO_OK));
    assert_eq!((contigo_engine_close(fake.engine), fake.tree.held()), (CONTIGO_OK, (0, 0)), "nothing of it stays open");
    assert_eq!(contigo_engine_irq_arm(fake.engine), CONTIGO_E_STALE);
    for status in [contigo_heap_close(heap), contigo_port_close(port), contigo_sim_close(sim)] {
        assert_eq!(status, CONTIGO_OK);
    }
}

#[test]
fn a_real_device_is_not_behind_a_gpu() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("gemm8@40000000"), "gemm8");
    let port = Port { name: "gpu", bus: Bus::Gpu(0), ..contigo_boards::zynq7000::HP0 };
    for polled in [false, true] {
        let wiring = Wiring::Device { held: held(&tree), port: 0, polled };
        let opened = Station::open(Opening { kind: MachineKind::Gemm8, wiring, port, heap: None });
        assert_eq!(opened.err().map(|fault| fault.status()), Some(CONTIGO_E_KIND));
    }
}

#[test]
fn a_kernel_port_stays_open_while_an_armed_engine_does() {
    // SAFETY: the names are texts, the pointers references.
    let port = answer(|port| unsafe { contigo_port_find(c"zynq-hp0".as_ptr(), port) });
    let fake = Fake::open(port, true);
    // SAFETY: as above.
    let open = || answer(|port| unsafe { contigo_kernel_port_open(c"40000000.dma-port".as_ptr(), port) });
    let (kernel_port, other) = (open(), open());
    // SAFETY: both are fakes, which write no register.
    let arm = |kernel_port| unsafe { contigo_engine_arm(fake.engine, kernel_port, 0) };
    assert_eq!([arm(kernel_port), arm(kernel_port), arm(other)], [CONTIGO_OK, CONTIGO_OK, CONTIGO_E_KIND]);
    assert_eq!([contigo_kernel_port_close(kernel_port), contigo_kernel_port_close(other)], [CONTIGO_E_STILL_USED, CONTIGO_OK]);
    assert_eq!([contigo_engine_close(fake.engine), contigo_kernel_port_close(kernel_port)], [CONTIGO_OK; 2]);
    assert_eq!(contigo_port_close(port), CONTIGO_OK);
}

#[test]
fn a_polled_device_has_none() {
    // SAFETY: the name is a text, the pointer a reference.
    let port = answer(|port| unsafe { contigo_port_find(c"zynq-hp0".as_ptr(), port) });
    let fake = Fake::open(port, true);
    let mut fd = 7;
    // SAFETY: the pointer is a reference.
    let status = unsafe { contigo_engine_irq_fd(fake.engine, &raw mut fd) };
    assert_eq!((status, fd, contigo_engine_irq_arm(fake.engine)), (CONTIGO_E_KIND, -1, CONTIGO_E_KIND));
    let text = crate::last_error::with_text(|text| String::from_utf8_lossy(text).contains("polled"));
    assert_eq!(text, Some(true));
    assert_eq!((contigo_engine_close(fake.engine), contigo_port_close(port)), (CONTIGO_OK, CONTIGO_OK));
}

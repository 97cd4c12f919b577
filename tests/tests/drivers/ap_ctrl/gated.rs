#![allow(unsafe_code, reason = "a core and its gate share a window")]
//! A kernel behind a gate: it stops whatever it does.

use super::SCALE;
use crate::regs::axi_gate as regs;
use contigo::{
    Completion, Driver, Error, Mmio, OperandSpec, Pool, Port, Queue, Region, Wait,
    drivers::{
        ap_ctrl::ApCtrl,
        axi_gate::{AxiGate, Gated, Owed, Part},
    },
    job::StopProgram,
    mem::DevSlice,
    sim::{
        BusError, Faults, SimBoard, SimConfig, SimDevice, SimWindow,
        ap_ctrl::{ApCtrlModel, KernelCall},
        axi_gate::GatedModel,
    },
};
use std::{cell::Cell, time::Duration};

type Kernel = fn(&mut KernelCall<'_, '_>) -> Result<[u32; 4], BusError>;
type Model = GatedModel<ApCtrlModel<Kernel>>;

fn nothing(_: &mut KernelCall<'_, '_>) -> Result<[u32; 4], BusError> {
    Ok([0; 4])
}

fn with_gated(faults: Faults, act: impl FnOnce(&SimBoard, &SimWindow<Model>, &Pool)) {
    let board = SimBoard::with(SimConfig { seed: 5, faults });
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let pool = region.pool(8, 1024).unwrap();
    let device = SimDevice::with_model(
        &board,
        board.port(),
        Model::new(ApCtrlModel::new(SCALE, nothing as Kernel).unwrap()),
    );
    act(&board, &device.window().unwrap(), &pool);
}

type Window<'d> = Part<'d, SimWindow<Model>>;

fn gated<'d>(window: &'d SimWindow<Model>) -> Gated<ApCtrl<Window<'d>>, Window<'d>> {
    // SAFETY: the model is this kernel and this gate, and each part is written by one of them.
    unsafe {
        let gate =
            AxiGate::open(Part::new(window, Model::GATE, regs::WINDOW_BYTES).unwrap()).unwrap();
        let kernel = ApCtrl::open(Part::new(window, 0, Model::GATE).unwrap(), SCALE).unwrap();
        Gated::new(kernel, gate).in_window(Model::GATE)
    }
}

/// Without the gate neither of them stops (`one_job`).
#[test]
fn a_kernel_that_hangs_or_runs_wild_stops() {
    for faults in [Faults { hang: 1000, ..Faults::NONE }, Faults { stuck: 1000, ..Faults::NONE }] {
        with_gated(faults, |board, window, pool| {
            let mut queue = Queue::new(gated(window), 1).unwrap();
            for _ in 0..3 {
                let before_ns = board.now_ns();
                let failed = queue
                    .run(
                        [
                            pool.take().unwrap().to_device(..60),
                            pool.take().unwrap().from_device(..60),
                        ],
                        &[3, 5, 1, 0],
                        Duration::from_millis(1),
                    )
                    .unwrap_err();
                assert_eq!(
                    (failed.error, failed.buffers.is_some()),
                    (Error::Timeout { timeout_us: 1_000 }, true)
                );
                assert!(board.now_ns() - before_ns < 1_100_000, "the job's limit, and little more");
                window.wait_at_most(1_000).unwrap();
            }
            assert_eq!(board.counts().unowned_accesses, 0);
        });
    }
}

#[test]
fn jobs_end_behind_an_open_gate() {
    with_gated(Faults::NONE, |_, window, pool| {
        let mut queue = Queue::new(gated(window), 1).unwrap();
        for _ in 0..3 {
            assert!(
                queue
                    .run(
                        [
                            pool.take().unwrap().to_device(..60),
                            pool.take().unwrap().from_device(..60)
                        ],
                        &[3, 5, 1, 0],
                        Duration::from_millis(20)
                    )
                    .is_ok()
            );
        }
        assert_eq!(queue.driver().gate().owed(), Owed { reads: 0, writes: 0, beats: 0 });
    });
}

/// The kernel of Linux runs it for a program that died: the gate stays shut, the next program opens
/// it.
#[test]
fn its_stop_program_stops_a_wild_kernel() {
    with_gated(Faults { stuck: 1000, ..Faults::NONE }, |_, window, pool| {
        let mut queue = Queue::new(gated(window), 1).unwrap();
        queue
            .submit(
                [pool.take().unwrap().to_device(..60), pool.take().unwrap().from_device(..60)],
                &[3, 5, 1, 0],
            )
            .unwrap();
        let program = queue.driver().stop_program();
        // SAFETY: its steps start nothing.
        assert_eq!(unsafe { program.run(window, 1) }, Ok(()));
        assert_eq!(window.read32(Model::GATE + regs::CONTROL.offset()), regs::STOP);
        window.wait_at_most(100).unwrap();
        std::mem::forget(queue);
        drop(Queue::new(gated(window), 1).unwrap());
        assert_eq!(window.read32(Model::GATE + regs::CONTROL.offset()), 0);
    });
}

/// The kernel's module runs it when a PCI function begins to master the bus. The first job reports
/// the shut gate. That job's stop opens the gate, and the second job works.
#[test]
fn a_gate_that_a_stop_program_shut_is_told() {
    with_gated(Faults::NONE, |_, window, pool| {
        let mut queue = Queue::new(gated(window), 1).unwrap();
        let program = queue.driver().stop_program();
        // SAFETY: its steps start nothing.
        assert_eq!(unsafe { program.run(window, 1) }, Ok(()));
        let mut job = || {
            let operands =
                [pool.take().unwrap().to_device(..60), pool.take().unwrap().from_device(..60)];
            queue
                .run(operands, &[3, 5, 1, 0], Duration::from_millis(20))
                .map(|_| ())
                .map_err(|failed| failed.error)
        };
        assert!(
            job().is_err_and(|error| error.to_string().contains("another program shut the gate"))
        );
        assert_eq!(job(), Ok(()));
    });
}

/// Registers that answer as a test says, and a clock.
struct Fake {
    words: [Cell<u32>; 16],
    now_us: Cell<u64>,
}

// SAFETY: there is no device.
unsafe impl Mmio for &Fake {
    fn len_bytes(&self) -> usize {
        64
    }
    fn read32(&self, offset: usize) -> u32 {
        self.words[offset / 4].get()
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        self.words[offset / 4].set(value);
    }
}

impl Wait for &Fake {
    fn now_us(&self) -> u64 {
        self.now_us.replace(self.now_us.get() + 1)
    }
    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
        self.now_us.set(self.now_us.get() + u64::from(timeout_us));
        Ok(())
    }
}

fn fake(words: &[(usize, u32)]) -> Fake {
    let fake = Fake { words: Default::default(), now_us: Cell::new(0) };
    for (offset, value) in [(0x00, 0x4741_5445), (0x04, 0x1_0000)].iter().chain(words) {
        fake.words[offset / 4].set(*value);
    }
    fake
}

fn open(fake: &Fake) -> Result<AxiGate<&Fake>, Error> {
    // SAFETY: no other code has the fake.
    unsafe { AxiGate::open(fake) }
}

fn told(words: &[(usize, u32)]) -> Option<Error> {
    open(&fake(words)).unwrap().error()
}

/// A driver that counts how often its core is touched.
struct Touched<'c>(&'c Cell<u32>, Port);

impl Touched<'_> {
    fn touch(&self) {
        self.0.set(self.0.get() + 1);
    }
}

// SAFETY: there is no device.
unsafe impl Driver for Touched<'_> {
    fn name(&self) -> &'static str {
        "touched"
    }
    fn port(&self) -> &Port {
        &self.1
    }
    fn addr_bits(&self) -> u32 {
        64
    }
    fn operands(&self) -> &[OperandSpec] {
        &[]
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        Ok(())
    }
    unsafe fn submit(&mut self, _: usize, _: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        self.touch();
        Ok(())
    }
    fn poll(&mut self, _: Duration) -> Result<Option<Completion>, Error> {
        self.touch();
        Ok(Some(Completion::of(0)))
    }
    fn stop(&mut self) -> Result<(), Error> {
        self.touch();
        Ok(())
    }
}

impl Drop for Touched<'_> {
    fn drop(&mut self) {
        self.touch();
    }
}

/// Its core is in a reset, where an access hangs, or believes that it has stopped.
#[test]
fn open_gate_keeps_the_driver_from_its_core() {
    let (touched, owes) = (Cell::new(0), fake(&[(0x10, 0)]));
    let port = SimBoard::new(1).port();
    // SAFETY: there is no core.
    let mut gated = unsafe { Gated::new(Touched(&touched, port), open(&owes).unwrap()) };
    let held = Error::WillNotStop { device: "axi_gate", status: 0, waited_us: 10_000 };
    assert_eq!(gated.stop(), Err(held));
    assert_eq!(gated.poll(Duration::ZERO), Err(held));
    // SAFETY: as above.
    assert_eq!(unsafe { gated.submit(0, &[], &[]) }, Err(held));
    assert_eq!(gated.stop_program(), StopProgram::default(), "the core's own would be believed");
    drop(gated);
    assert_eq!(touched.get(), 0, "it is leaked");
    // A program that died left it so: the next one opens no driver before memory has answered.
    owes.words[4].set(regs::IN_RESET);
    assert!(matches!(open(&owes), Err(Error::WillNotStop { .. })));
    owes.words[4].set(regs::IDLE | regs::STOPPED | regs::IN_RESET);
    assert!(matches!(open(&owes), Err(Error::WillNotStop { .. })), "the fake ends no reset");
    assert_eq!(owes.words[3].get(), regs::STOP, "it was asked to");
}

/// A core that looks at no answer says that it is done while its last write is under way.
#[test]
fn the_end_of_a_lone_job_waits_for_memory() {
    let (touched, owes) = (Cell::new(0), fake(&[(0x10, 0)]));
    // SAFETY: there is no core.
    let mut gated =
        unsafe { Gated::new(Touched(&touched, SimBoard::new(1).port()), open(&owes).unwrap()) };
    let told = gated.poll(Duration::ZERO);
    assert!(
        matches!(told, Err(Error::Fault { what, .. }) if what.contains("still owes")),
        "{told:?}"
    );
    owes.words[4].set(regs::IDLE | regs::FAILED);
    assert!(matches!(gated.poll(Duration::ZERO), Err(Error::FaultAt { .. })));
    owes.words[4].set(regs::IDLE);
    assert_eq!(gated.poll(Duration::ZERO), Ok(Some(Completion::of(0))));
}

#[test]
fn the_gate_says_what_is_wrong() {
    let refused = |words: &[(usize, u32)]| open(&fake(words)).map(drop);
    assert_eq!(
        refused(&[(0, 7)]),
        Err(Error::WrongDevice {
            device: "axi_gate",
            register: "ID",
            expected: 0x4741_5445,
            found: 7
        })
    );
    let later = Error::WrongDevice {
        device: "axi_gate",
        register: "VERSION",
        expected: 0x1_0000,
        found: 0x2_0000,
    };
    assert_eq!(refused(&[(4, 0x2_0000)]), Err(later));

    let owes = fake(&[(0x10, 0), (0x14, 0x0100_0302)]);
    let gate = open(&owes).unwrap();
    assert_eq!(gate.owed(), Owed { reads: 2, writes: 3, beats: 256 });
    assert_eq!(
        gate.shut(),
        Err(Error::WillNotStop { device: "axi_gate", status: 0, waited_us: 10_000 })
    );
    assert_eq!(owes.words[3].get(), regs::STOP | regs::RESET, "it stays shut");

    assert_eq!(told(&[]), None);
    let errors = [
        (0xF, "DECERR for a burst of writes"),
        (0xD, "SLVERR for a burst of writes"),
        (7, "DECERR for a burst of reads"),
        (5, "SLVERR for a burst of reads"),
    ];
    for (error, begin) in errors {
        let told = told(&[(0x10, regs::FAILED), (0x18, error), (0x1C, 0x1234_5678), (0x20, 9)]);
        assert!(
            matches!(told, Some(Error::FaultAt { addr: 0x9_1234_5678, what, .. })
                if what.starts_with(begin)),
            "{told:?}"
        );
    }
    for (status, part) in
        [(regs::MISFRAMED, "WLAST"), (regs::STRAY, "no burst"), (u32::MAX, "all ones")]
    {
        assert!(told(&[(0x10, status)]).unwrap().to_string().contains(part));
    }
}

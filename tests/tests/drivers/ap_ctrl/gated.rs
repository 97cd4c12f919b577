//! A kernel behind a gate: it stops whatever it does.

use super::*;
use crate::regs::axi_gate as gate_regs;
use contigo::drivers::axi_gate::{AxiGate, Gated, Owed, Part};
use contigo::sim::axi_gate::GatedModel;

type Kernel = fn(&mut KernelCall<'_, '_>) -> Result<[u32; 4], KernelError>;
type GateModel = GatedModel<ApCtrlModel<Kernel>>;
type Window<'d> = Part<'d, SimWindow<GateModel>>;
type GatedQueue<'d> = Queue<Gated<ApCtrl<Window<'d>>, Window<'d>>>;

const CONTROL: usize = GateModel::GATE + gate_regs::CONTROL.offset();

fn with_gated(faults: Faults, act: impl FnOnce(&SimBoard, &SimWindow<GateModel>, &Pool)) {
    let (board, _, pool) = faulty(5, faults, 8, 1024);
    let kernel: Kernel = |_| Ok([0; 4]);
    let model = GateModel::new(ApCtrlModel::new(SCALE, kernel).unwrap());
    let device = SimDevice::with_model(&board, board.port(), model);
    act(&board, &device.window().unwrap(), &pool);
}

fn gated(window: &SimWindow<GateModel>) -> GatedQueue<'_> {
    // SAFETY: the model is this kernel and this gate, and each part is written by one of them.
    let gated = unsafe {
        let gate = Part::new(window, GateModel::GATE, gate_regs::WINDOW_BYTES).unwrap();
        let kernel = Part::new(window, 0, GateModel::GATE).unwrap();
        Gated::new(ApCtrl::open(kernel, SCALE).unwrap(), AxiGate::open(gate).unwrap())
            .in_window(GateModel::GATE)
    };
    Queue::new(gated, 1).unwrap()
}

/// A job's answer, within a millisecond.
fn job(queue: &mut GatedQueue<'_>, pool: &Pool) -> Result<()> {
    let ran = queue.run(copies(pool, ..60, ..60), &ROWS, Duration::from_millis(1));
    ran.map(drop).map_err(|failed| {
        assert!(failed.buffers.is_some());
        failed.error
    })
}

/// Without the gate neither of them stops (`one_job`).
#[test]
fn a_kernel_that_hangs_or_runs_wild_stops() {
    for faults in [HANG, STUCK] {
        with_gated(faults, |board, window, pool| {
            let mut queue = gated(window);
            for _ in 0..3 {
                let before_ns = board.now_ns();
                assert_eq!(job(&mut queue, pool), Err(Error::Timeout { timeout_us: 1_000 }));
                assert!(board.now_ns() - before_ns < 1_100_000, "the job's limit, and little more");
                window.wait_at_most(1_000).unwrap();
            }
            clean(board);
        });
    }
}

/// The kernel's module runs the stop program when a PCI function begins to master the bus. The
/// first job reports the shut gate. That job's stop opens the gate, and the others work.
#[test]
fn a_gate_that_a_stop_program_shut_is_told() {
    with_gated(Faults::NONE, |_, window, pool| {
        let mut queue = gated(window);
        let program = queue.driver().stop_program();
        // SAFETY: its steps start nothing.
        assert_eq!(unsafe { program.run(window, 1) }, Ok(()));
        let told = job(&mut queue, pool).unwrap_err().to_string();
        assert!(told.contains("another program shut the gate"), "{told}");
        for _ in 0..3 {
            assert_eq!(job(&mut queue, pool), Ok(()));
        }
        assert_eq!(queue.driver().gate().owed(), Owed { reads: 0, writes: 0, beats: 0 });
    });
}

/// The kernel of Linux runs it for a program that died: the gate stays shut, the next program opens
/// it.
#[test]
fn its_stop_program_stops_a_wild_kernel() {
    with_gated(STUCK, |_, window, pool| {
        let mut queue = gated(window);
        queue.submit(copies(pool, ..60, ..60), &ROWS).unwrap();
        let program = queue.driver().stop_program();
        // SAFETY: its steps start nothing.
        assert_eq!(unsafe { program.run(window, 1) }, Ok(()));
        assert_eq!(window.read32(CONTROL), gate_regs::STOP);
        window.wait_at_most(100).unwrap();
        std::mem::forget(queue);
        drop(gated(window));
        assert_eq!(window.read32(CONTROL), 0);
    });
}

#![allow(
    unsafe_code,
    reason = "a driver is opened on a core, and a program that is gone is stopped"
)]
//! Two promises of a driver, where no job tells of them: `check` starts nothing, and a stop program
//! stops the core of a program that is gone.

use contigo::drivers::axi_gate::Part;
use contigo::mem::DevSlice;
use contigo::sim::SimBoard;
use contigo::{DevAddr, Driver, Queue, Region};
use contigo_gemm8::{Gemm, Gemm8, Output, regs};
use contigo_rtl::RtlModel;
use contigo_rtl::table::{Setting, TableError};
use fastrand::Rng;
use std::mem;
use std::time::Duration;

const SLOT_BYTES: usize = 64 << 10;
const ARGS: Gemm = Gemm { m: 40, n: 256, k: 128, output: Output::Int32 { relu: false } };
/// As [`ARGS`] takes in calm memory, and some more.
const JOB_US: u32 = 120;
const SEEDS: u64 = 40;

/// gemm8 on `board`; `None`, and a line, where it is not here.
fn core(setting: &Setting, board: &SimBoard) -> Option<contigo::sim::SimDevice<RtlModel>> {
    match setting.device(board, "gemm8", regs::WINDOW_BYTES, true) {
        Err(TableError::NoCore(why)) => super::skip::or_skip(Err(why)),
        device => Some(device.unwrap()),
    }
}

fn moved(board: &SimBoard) -> u64 {
    let counts = board.counts();
    assert_eq!((counts.unowned_accesses, counts.stray_accesses), (0, 0));
    counts.bytes_read + counts.bytes_written
}

#[test]
fn a_check_starts_nothing() {
    let board = SimBoard::new(1);
    let Some(device) = core(&Setting::calm(1), &board) else { return };
    // SAFETY: the window is a gemm8's, and the only one.
    let driver = unsafe { Gemm8::open(device.window().unwrap()).unwrap() };
    let before = device.accesses();
    let slice = |addr, bytes: u64| DevSlice {
        addr: DevAddr(addr),
        offset_bytes: 0,
        len_bytes: usize::try_from(bytes).unwrap(),
    };
    let [a, b, bias, c] = ARGS.operand_bytes();
    let good = [
        slice(0x1000_0000, a),
        slice(0x1001_0000, b),
        slice(0x1002_0000, bias),
        slice(0x1003_0000, c),
    ];
    let short = [good[0], good[1], good[2], slice(0x1003_0000, c - 1)];
    let askew = [slice(0x1000_0001, a), good[1], good[2], good[3]];
    let [m, n, k, mode] = ARGS.words();
    assert_eq!(driver.check(&good, &[m, n, k, mode]), Ok(()));
    for (operands, words) in [
        (short, [m, n, k, mode]),
        (askew, [m, n, k, mode]),
        (good, [m, n + 1, k, mode]),
        (good, [0, n, k, mode]),
    ] {
        assert!(driver.check(&operands, &words).is_err());
    }
    device.run_for(JOB_US).unwrap();
    let idle =
        device.model(|model| (model.counts(0).copied().unwrap_or_default(), model.owed())).unwrap();
    assert_eq!((device.accesses(), idle), (before, Default::default()));
}

/// The program that started the job is gone, and its core is stopped by the steps alone.
#[test]
fn its_stop_program_stops_it_at_any_moment() {
    let mut stopped = 0;
    for seed in super::seeds(SEEDS) {
        let (board, mut rng) = (SimBoard::new(seed), Rng::with_seed(seed));
        let setting = if seed % 2 == 0 { Setting::calm(seed) } else { Setting::hostile(seed) };
        let Some(device) = core(&setting, &board) else { return };
        let region = Region::new(board.memory(4 * SLOT_BYTES).unwrap()).unwrap();
        let pool = region.pool(4, SLOT_BYTES).unwrap();
        let window = device.window().unwrap();
        // SAFETY: the window is a gemm8's. No other code drives it until this driver is forgotten.
        let driver =
            unsafe { Gemm8::open(Part::new(&window, 0, regs::WINDOW_BYTES).unwrap()).unwrap() };
        let program = driver.stop_program();
        let mut queue = Queue::new(driver, 1).unwrap();
        let [a, b, bias, c] = [(); 4].map(|()| pool.take().unwrap());
        let [a_bytes, b_bytes, bias_bytes, c_bytes] =
            ARGS.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap());
        let operands = [
            a.to_device(..a_bytes),
            b.to_device(..b_bytes),
            bias.to_device(..bias_bytes),
            c.from_device(..c_bytes),
        ];
        queue.submit(operands, &ARGS.words()).unwrap();
        mem::forget(queue);
        device.run_for(rng.u32(..JOB_US)).unwrap();
        let whole = device
            .model(|model| model.counts(0).unwrap().write_beats * 16 >= c_bytes as u64)
            .unwrap();
        // SAFETY: these are the core's own steps, and no other code drives it.
        unsafe { program.run(&window, 1).unwrap() };
        let before = moved(&board);
        device.run_for(JOB_US).unwrap();
        assert_eq!(moved(&board), before, "seed {seed}: an access after the stop");
        stopped += u32::from(!whole);
        // On a core that is idle it starts nothing, and the next driver finds a good one.
        // SAFETY: as above.
        unsafe { program.run(&window, 1).unwrap() };
        device.run_for(JOB_US).unwrap();
        assert_eq!(moved(&board), before, "seed {seed}: a stop started the core");
        drop(window);
        // SAFETY: the window is a gemm8's, and the only one.
        let mut next =
            Queue::new(unsafe { Gemm8::open(device.window().unwrap()).unwrap() }, 1).unwrap();
        let region = Region::new(board.memory(SLOT_BYTES).unwrap()).unwrap();
        let pool = region.pool(4, 1024).unwrap();
        let [mut a, mut b, mut bias, c] = [(); 4].map(|()| pool.take().unwrap());
        a.view_mut::<i8>().unwrap().fill(1);
        b.view_mut::<i8>().unwrap().fill(2);
        bias.view_mut::<i32>().unwrap().fill(100);
        let operands =
            [a.to_device(..16), b.to_device(..256), bias.to_device(..64), c.from_device(..64)];
        let gemm = Gemm { m: 1, n: 16, k: 16, ..ARGS };
        let [.., c] = next.run(operands, &gemm.words(), Duration::from_millis(1)).unwrap().buffers;
        assert_eq!(c.view_at::<i32>(..64).unwrap(), [132; 16], "seed {seed}");
        assert_eq!(device.model(|model| model.findings().to_vec()).unwrap(), [], "seed {seed}");
    }
    assert!(
        stopped > 5 || super::seeds(SEEDS).count() < 20,
        "{stopped} jobs were stopped before their end"
    );
}

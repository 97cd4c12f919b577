//! Jobs that are refused before anything is touched: memory against port, operands against the
//! accelerator.

use super::Watched;
use contigo::{
    Align, CpuBuf, Direction, Error, Operand, PhysAddr, Port, Queue, Region,
    mem::SyncScope,
    sim::{SimBoard, SimSpec, SimWindow},
    types::BaseAddr,
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model, Output, SimGemm8};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

pub(super) const GEMM: Gemm = Gemm { m: 1, n: 16, k: 16, output: Output::Int32 { relu: false } };
pub(super) const SLOT: usize = 256;
/// Long enough for any job here.
pub(super) const LIMIT: Duration = Duration::from_millis(20);

pub(super) type GemmQueue = Queue<Gemm8<SimWindow<Gemm8Model>>>;

/// A queue of one job.
pub(super) fn queue(device: &SimGemm8) -> GemmQueue {
    Queue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap()
}

/// A, B, bias and C as [`GEMM`] wants them.
pub(super) fn operands([a, b, bias, c]: [CpuBuf; 4]) -> [Operand; 4] {
    [a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..64)]
}

#[test]
fn memory_that_a_port_cannot_use() {
    memory_against_port();
}

#[test]
fn operands_that_an_accelerator_cannot_use() {
    operands_refused();
}

/// Runs a job that must be refused. Its operands come back as the CPU's buffers, with what they
/// held.
pub(super) fn refusal(
    queue: &mut GemmQueue,
    operands: [Operand; 4],
    gemm: &Gemm,
) -> (Error, [CpuBuf; 4]) {
    let pushed = queue.counts().pushed;
    let failed = queue.run(operands, &gemm.words(), LIMIT).unwrap_err();
    assert_eq!(
        (failed.error, queue.counts().pushed),
        (failed.cause, pushed),
        "no doorbell was rung"
    );
    (failed.error, failed.buffers.unwrap().map(|operand| operand.into_buf().unwrap()))
}

/// The error of a job whose output lies in memory like `spec`, behind that port; `None` where it
/// runs.
fn job_on(spec: SimSpec, port: fn(&SimBoard) -> Port) -> Option<Error> {
    let (board, freed) = (SimBoard::new(1), Arc::new(AtomicUsize::new(0)));
    let device = SimGemm8::new(&board, port(&board));
    let mut queue = queue(&device);
    let region =
        Region::new(Watched { inner: board.memory_with(spec).unwrap(), freed: Arc::clone(&freed) })
            .unwrap();
    let others = Region::new(board.memory(4096).unwrap()).unwrap();
    let (pool, odd) = (others.pool(4, SLOT).unwrap(), region.pool(2, SLOT).unwrap());
    let [a, b, bias] = [(); 3].map(|()| pool.take().unwrap());
    let mut c = odd.take().unwrap();
    c.view_mut::<u8>().unwrap().fill(0x5A);
    let error = match queue.run(operands([a, b, bias, c]), &GEMM.words(), LIMIT) {
        Ok(_done) => None,
        Err(failed) => {
            let [.., c] = failed.buffers.unwrap().map(|operand| operand.into_buf().unwrap());
            assert!(
                c.view::<u8>().unwrap().iter().all(|&byte| byte == 0x5A),
                "refused before anything was touched"
            );
            Some(failed.error)
        }
    };
    assert_eq!((pool.taken(), odd.taken(), queue.len()), (0, 0, 0), "every buffer came back");
    drop((pool, odd));
    drop(region);
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    error
}

pub(super) fn memory_against_port() -> Vec<Error> {
    type PortOf = fn(&SimBoard) -> Port;
    let (plain, snooping): (PortOf, PortOf) = (SimBoard::port, SimBoard::coherent_port);
    let good = SimSpec { len_bytes: 4096, ..SimSpec::default() };
    assert_eq!((job_on(good, plain), job_on(good, snooping)), (None, None));
    let install = "the module contigo";
    let high = SimSpec { base: Some(BaseAddr::Phys(PhysAddr(0xFFFF_FF00))), ..good };
    let unreachable = Error::Unreachable {
        port: "sim-hp0",
        addr: 0x1_0000_0000,
        len_bytes: 64,
        first: 0,
        last: 0xFFFF_FFFF,
    };
    let mismatch = |port, memory_coherent| Some(Error::CoherencyMismatch { port, memory_coherent });
    let cases = [
        (SimSpec { coherent: Some(true), ..good }, mismatch("sim-hp0", true), None),
        (SimSpec { coherent: Some(false), ..good }, None, mismatch("sim-acp", false)),
        (SimSpec { scope: SyncScope::Coherent, ..good }, mismatch("sim-hp0", true), None),
        (
            SimSpec { scope: SyncScope::None { install }, ..good },
            Some(Error::CannotSync { port: "sim-hp0", install }),
            None,
        ),
        (
            SimSpec { scope: SyncScope::Whole, ..good },
            Some(Error::WholeBlock { shared_bytes: SLOT }),
            None,
        ),
    ];
    let mut provoked = vec![unreachable];
    for (spec, at_plain, at_snooping) in cases {
        assert_eq!(
            (job_on(spec, plain), job_on(spec, snooping)),
            (at_plain, at_snooping),
            "{spec:?}"
        );
        provoked.extend(at_plain.into_iter().chain(at_snooping));
    }
    // The second slot of this block is beyond the port's 32 bits; `_first` takes the first.
    let beyond = |port| {
        let board = SimBoard::new(1);
        let region = Region::new(board.memory_with(high).unwrap()).unwrap();
        let _first = region.alloc(SLOT, Align::LINE).unwrap();
        let buf = region.alloc(64, Align::LINE).unwrap();
        let fine = Region::new(board.memory(4096).unwrap()).unwrap();
        let pool = fine.pool(3, SLOT).unwrap();
        let [a, b, bias] = [(); 3].map(|()| pool.take().unwrap());
        let device = SimGemm8::new(&board, port);
        refusal(&mut queue(&device), operands([a, b, bias, buf]), &GEMM).0
    };
    let board = SimBoard::new(1);
    assert_eq!(beyond(board.port()), unreachable);
    let windowed = Port { window: (0x1000_0000, 0x1FFF_FFFF), addr_bits: 40, ..board.port() };
    let outside = Error::Unreachable {
        port: "sim-hp0",
        addr: 0x1_0000_0000,
        len_bytes: 64,
        first: 0x1000_0000,
        last: 0x1FFF_FFFF,
    };
    assert_eq!(beyond(windowed), outside);

    // Another board's memory, and a second piece of a block that can only be synchronised as a
    // whole.
    let (here, there) = (SimBoard::new(1), SimBoard::new(1));
    let region = Region::new(there.memory(4096).unwrap()).unwrap();
    let pool = region.pool(4, SLOT).unwrap();
    let device = SimGemm8::new(&here, here.port());
    let (error, _) =
        refusal(&mut queue(&device), operands([(); 4].map(|()| pool.take().unwrap())), &GEMM);
    assert_eq!(error, Error::WrongBus { port: "sim-hp0", memory: there.bus() });
    let whole = Region::new(here.memory_with(SimSpec { scope: SyncScope::Whole, ..good }).unwrap())
        .unwrap();
    let first = whole.alloc(128, Align::LINE).unwrap();
    assert_eq!(whole.alloc(64, Align::LINE).unwrap_err(), Error::WholeBlock { shared_bytes: 128 });
    drop(first);
    assert!(whole.alloc(64, Align::LINE).is_ok(), "a refused buffer counts for nothing");
    provoked.push(error);
    provoked
}

pub(super) fn operands_refused() -> Vec<Error> {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(16 * 1024).unwrap()).unwrap();
    let pool = region.pool(8, SLOT).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let mut queue = queue(&device);
    let mut provoked = Vec::new();
    let take = || {
        let mut buffers = [(); 4].map(|()| pool.take().unwrap());
        buffers.iter_mut().for_each(|buf| buf.view_mut::<u8>().unwrap().fill(0x5A));
        buffers
    };
    let untouched = |buffers: &[CpuBuf; 4]| {
        buffers.iter().all(|buf| buf.view::<u8>().unwrap().iter().all(|&byte| byte == 0x5A))
    };

    // Each way to spoil one operand of an otherwise good job.
    type Spoil = fn([CpuBuf; 4]) -> [Operand; 4];
    let spoiled: [(Spoil, Error); 7] = [
        (
            |[a, b, bias, c]| {
                [a.to_device(..16), b.from_device(..), bias.to_device(..64), c.from_device(..64)]
            },
            Error::WrongDirection { index: 1, expected: Direction::ToDevice },
        ),
        (
            |[a, b, bias, c]| {
                [a.to_device(..16), b.to_device(..), bias.to_device(..64), c.in_out(..64)]
            },
            Error::WrongDirection { index: 3, expected: Direction::FromDevice },
        ),
        (
            |[a, b, bias, c]| {
                [a.to_device(..16), b.to_device(..255), bias.to_device(..64), c.from_device(..64)]
            },
            Error::BufferSize { index: 1, need_bytes: 256, have_bytes: 255 },
        ),
        (
            |[a, b, bias, c]| {
                [a.to_device(16..16), b.to_device(..), bias.to_device(..64), c.from_device(..64)]
            },
            Error::BufferSize { index: 0, need_bytes: 1, have_bytes: 0 },
        ),
        (
            |[a, b, bias, c]| {
                [a.to_device(..16), b.to_device(..257), bias.to_device(..64), c.from_device(..64)]
            },
            Error::OutOfRange { start: 0, end: 257, len_bytes: 256 },
        ),
        (
            |[a, b, bias, c]| {
                [a.to_device(32..48), b.to_device(..), bias.to_device(..64), c.from_device(..64)]
            },
            Error::BufferAlign { index: 0, addr: 0x1000_0020, align_bytes: 64 },
        ),
        (
            // A part that ends inside a line: the rest of the line belongs to another buffer.
            |[a, b, bias, c]| {
                let (left, _right) = c.split_at(100).unwrap();
                [a.to_device(..16), b.to_device(..), bias.to_device(..64), left.from_device(..)]
            },
            Error::SharedLine { start: 3 * SLOT, end: 3 * SLOT + 100, line_bytes: 64 },
        ),
    ];
    for (spoil, expected) in spoiled {
        let (error, buffers) = refusal(&mut queue, spoil(take()), &GEMM);
        assert_eq!(error, expected);
        assert!(untouched(&buffers), "{error}: refused before anything was touched");
        drop(buffers);
        assert_eq!(pool.taken(), 0);
        provoked.push(error);
    }

    let argument =
        |name, value, min, max, multiple_of| Error::Argument { name, value, min, max, multiple_of };
    for (gemm, expected) in [
        (Gemm { m: 0, ..GEMM }, argument("m", 0, 1, 4096, 1)),
        (Gemm { m: u32::MAX, ..GEMM }, argument("m", 0xFFFF_FFFF, 1, 4096, 1)),
        (Gemm { n: 17, ..GEMM }, argument("n", 17, 16, 4096, 16)),
        (Gemm { k: 4112, ..GEMM }, argument("k", 4112, 16, 4096, 16)),
        (
            Gemm { output: Output::Int8 { relu: true, shift: 32 }, ..GEMM },
            argument("shift", 32, 0, 31, 1),
        ),
    ] {
        let (error, buffers) = refusal(&mut queue, operands(take()), &gemm);
        assert_eq!(error, expected);
        assert!(untouched(&buffers), "{error}: refused before anything was touched");
        provoked.push(error);
    }

    // A window has one driver; a run wants a queue without jobs, and those that are in it go on.
    provoked.push(device.window().unwrap_err());
    assert_eq!(provoked.last(), Some(&Error::HasDriver));
    queue.submit(operands(take()), &GEMM.words()).unwrap();
    let (busy, buffers) = refusal(&mut queue, operands(take()), &GEMM);
    assert_eq!((busy, pool.taken()), (Error::Busy, 8));
    let _ = queue.wait::<4>(LIMIT).unwrap().unwrap();
    let _ = queue.run(operands(buffers), &GEMM.words(), LIMIT).unwrap();
    assert_eq!((pool.taken(), queue.counts().completed), (0, 2));
    provoked.push(busy);
    provoked
}

//! Copies of every size at every offset, and what happens to the bytes around them.

use super::{LIMIT, MODES, Mode, ZdmaQueue, alloc};
use contigo::{
    CpuBuf, Error, Pool, Queue, Region,
    sim::{Faults, SimBoard, SimConfig, SimCounts, zdma::SimZdma},
};
use contigo_testkit::emulated;
use fastrand::Rng;
use std::time::Duration;

const BUFFERS: usize = 64;
const SLOT: usize = 16 * 1024;
const JOBS: u32 = 10_000;

/// One buffer, and what it must hold.
struct Known {
    buf: CpuBuf,
    bytes: Vec<u8>,
}

/// `BUFFERS` buffers with random contents.
fn fill(pool: &Pool, rng: &mut Rng) -> Vec<Known> {
    let new = |_| {
        let mut known = Known { buf: pool.take().unwrap(), bytes: vec![0; SLOT] };
        rng.fill(&mut known.bytes);
        known.buf.copy_from_slice(&known.bytes).unwrap();
        known
    };
    (0..BUFFERS).map(new).collect()
}

/// One random copy: sizes from 1 byte to all of a buffer, small ones as often as large ones.
fn copy(queue: &mut ZdmaQueue, buffers: &mut Vec<Known>, rng: &mut Rng) -> Result<(), Error> {
    let (mut from, mut to) = (
        buffers.swap_remove(rng.usize(..buffers.len())),
        buffers.swap_remove(rng.usize(..buffers.len())),
    );
    let bits = rng.u32(0..=SLOT.ilog2());
    let len = rng.usize(1..=1 << bits);
    let (at, into) = (rng.usize(..=SLOT - len), rng.usize(..=SLOT - len));
    let operands = [from.buf.to_device(at..at + len), to.buf.from_device(into..into + len)];
    let (result, [from_back, to_back]) = match queue.run(operands, &[], LIMIT) {
        Ok(done) => (Ok(()), done.buffers),
        Err(failed) => {
            let error = failed.error;
            (
                Err(error),
                failed
                    .buffers
                    .unwrap_or_else(|| panic!("{error}"))
                    .map(|operand| operand.into_cpu().unwrap()),
            )
        }
    };
    (from.buf, to.buf) = (from_back, to_back);
    let moved = from.bytes[at..at + len].to_vec();
    let seen = to.buf.view::<u8>().unwrap();
    if result.is_ok() {
        assert_eq!(&seen[into..into + len], moved, "{len} bytes from {at} to {into}");
    }
    // A job that failed may have written any part of its destination, and nothing else.
    assert_eq!(&seen[..into], &to.bytes[..into], "before {into}");
    assert_eq!(&seen[into + len..], &to.bytes[into + len..], "behind {into} + {len}");
    to.bytes[into..into + len].copy_from_slice(&seen[into..into + len]);
    buffers.extend([from, to]);
    result
}

/// `jobs` random copies; how each that failed ended. In the end every buffer holds what it must.
fn exercise(mode: Mode, coherent: bool, faults: Faults, seed: u64, jobs: u32) -> Vec<Error> {
    let board = SimBoard::with(SimConfig { seed, faults });
    let region = Region::new(board.memory(2 * BUFFERS * SLOT).unwrap()).unwrap();
    let channel = SimZdma::new(&board, if coherent { board.coherent_port() } else { board.port() });
    let zdma = mode.open(channel.window().unwrap(), alloc!(region));
    let pool = region.pool(BUFFERS, SLOT).unwrap();
    let mut queue = Queue::new(zdma, 1).unwrap();
    let mut rng = Rng::with_seed(seed);
    let mut buffers = fill(&pool, &mut rng);
    let errors: Vec<_> =
        (0..jobs).filter_map(|_| copy(&mut queue, &mut buffers, &mut rng).err()).collect();
    for known in &buffers {
        assert_eq!(known.buf.view::<u8>().unwrap(), known.bytes);
    }
    let SimCounts { stray_accesses, unowned_accesses, evictions, .. } = board.counts();
    assert_eq!((stray_accesses, unowned_accesses, evictions), (0, 0, 0));
    assert_eq!(queue.counts().completed + errors.len() as u64, u64::from(jobs));
    errors
}

#[test]
fn ten_thousand_copies_in_every_mode_through_every_port() {
    let jobs = u32::try_from(emulated::fewer(JOBS.into())).unwrap();
    for (mode, coherent) in MODES.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        let errors = exercise(mode, coherent, Faults::NONE, 1, jobs);
        assert_eq!(errors, [], "{mode:?}, coherent: {coherent}");
    }
}

#[test]
fn whatever_goes_wrong_only_the_destination_suffers() {
    for (seed, mode) in (10..).zip(MODES) {
        for coherent in [false, true] {
            let errors = exercise(mode, coherent, Faults::OFTEN, seed, 2_000);
            let count =
                |which: fn(&Error) -> bool| errors.iter().filter(|error| which(error)).count();
            let faults = count(|error| matches!(error, Error::Fault { device: "zdma", .. }));
            let short = count(|error| matches!(error, Error::ShortTransfer { .. }));
            let hung = count(|error| *error == Error::Timeout { timeout_us: 20_000 });
            assert!(faults > 100 && short > 100 && hung > 100, "{faults} {short} {hung}");
            assert_eq!(faults + short + hung, errors.len(), "and nothing else");
        }
    }
}

#[test]
fn an_interrupt_that_comes_late_or_never_costs_time_and_no_result() {
    for faults in
        [Faults { late_irq: 1000, ..Faults::NONE }, Faults { lost_irq: 1000, ..Faults::NONE }]
    {
        assert_eq!(exercise(Mode::Linked(4096), false, faults, 3, 500), []);
    }
}

#[test]
fn a_long_copy_with_more_room_for_descriptors_than_a_list_has() {
    const LONG: usize = 512 * 1024;
    let board = SimBoard::new(6);
    let region = Region::new(board.memory(2 << 20).unwrap()).unwrap();
    let channel = SimZdma::new(&board, board.port());
    let mut queue =
        Queue::new(Mode::Linked(3 * 4096).open(channel.window().unwrap(), alloc!(region)), 1)
            .unwrap();
    let mut from = alloc!(region)(LONG);
    Rng::with_seed(6).fill(from.view_mut::<u8>().unwrap());
    let [from, to] = queue
        .run([from.to_device(..), alloc!(region)(LONG).from_device(..)], &[], LIMIT)
        .unwrap()
        .buffers;
    assert_eq!(from.view::<u8>().unwrap(), to.view::<u8>().unwrap());
}

#[test]
fn a_copy_into_its_own_neighbour_and_a_job_that_is_looked_at_once() {
    let board = SimBoard::new(5);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let channel = SimZdma::new(&board, board.port());
    let mut queue =
        Queue::new(Mode::Linked(256).open(channel.window().unwrap(), alloc!(region)), 1).unwrap();
    let (mut from, to) = alloc!(region)(16384).split_at(8192).unwrap();
    from.view_mut::<u8>().unwrap().fill(9);
    queue.submit([from.to_device(1..8192), to.from_device(..8191)], &[]).unwrap();
    assert!(queue.try_next::<2>().unwrap().is_none(), "8 KiB take longer than one look");
    channel.run_for(1000).unwrap();
    let [_from, to] = queue.try_next().unwrap().unwrap().buffers;
    assert_eq!(to.view_at::<u8>(..8191).unwrap(), [9; 8191]);
    assert_eq!(to.view_at::<u8>(8191..).unwrap(), [0]);
    assert!(
        queue
            .run(
                [to.to_device(..), alloc!(region)(8192).from_device(..)],
                &[],
                Duration::from_millis(1)
            )
            .is_ok()
    );
}

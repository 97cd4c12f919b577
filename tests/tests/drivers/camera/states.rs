//! Every state of a queue on the ring: full, late, stopped, stuck, dropped, and faults at any time.

use super::{A_WHILE, PACKET, camera, camera_of, ring, spec};
use contigo::{
    Error, Queue, Region, Stream,
    sim::{
        SimBoard,
        axi_dma::CoreSpec,
        stream::{SourceConfig, packet},
    },
};
use contigo_testkit::conformance::mutant::{Mutant, Mutation, REFUSAL};
use std::time::Duration;

/// A board, its memories, and a camera with eight places.
macro_rules! rig {
    ($config:expr => $board:ident, $device:ident, $pool:ident, $driver:ident) => {
        let $board = SimBoard::new(7);
        let region = Region::new($board.memory(64 * 1024).unwrap()).unwrap();
        let $pool = region.pool(9, PACKET).unwrap();
        let $device = camera($config, &$board, $board.port());
        let $driver = camera_of($device.window().unwrap(), ring(&region, 8), 8).unwrap();
    };
}

#[test]
fn frames_before_a_fault_come_first() {
    let config = CoreSpec { error_at: Some(20), ..spec(SourceConfig::default()) };
    rig!(config => board, device, pool, driver);
    let mut stream = Stream::new(driver, pool.clone(), 8, &[]).unwrap();
    stream.start().unwrap();
    for number in 0..17 {
        let frame = stream.next(A_WHILE).unwrap().unwrap();
        assert!(packet::is(number, frame.buf.view::<u8>().unwrap()));
        stream.give_back(frame.buf).unwrap();
    }
    // The fault is there already, and three packets before it were not fetched.
    device.run_for(200).unwrap();
    for number in 17..20 {
        let frame = stream.next(A_WHILE).unwrap().unwrap();
        assert!(
            packet::is(number, frame.buf.view::<u8>().unwrap()),
            "packet {number} came before the fault"
        );
        assert!(stream.is_running());
    }
    let error = stream.next(A_WHILE).unwrap_err();
    assert!(
        matches!(
            error,
            Error::FaultAt {
                device: "axi_dma s2mm",
                what: "DMASlvErr: memory answered with an error; check that this address is \
                    memory, and that its port is enabled",
                ..
            }
        ),
        "{error}"
    );
    assert!(!stream.is_running());
    assert!(
        stream.next(A_WHILE).unwrap().is_none(),
        "nothing comes, and nothing is started by looking"
    );
    assert_eq!(stream.start(), Ok(8));
    let frame = stream.next(A_WHILE).unwrap().unwrap();
    let number = packet::number(frame.buf.view::<u8>().unwrap()).unwrap();
    assert!(number > 20 && packet::is(number, frame.buf.view::<u8>().unwrap()), "packet {number}");
    let counts = stream.counts();
    assert_eq!((counts.completed, counts.stopped, counts.ran_dry), (21, 1, 0));
    assert_eq!(
        counts.pushed,
        counts.completed + counts.cancelled + 7,
        "each frame came, was cancelled, or is in flight"
    );
    drop(frame);
    drop(stream);
    assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0));
}

/// The pool's last buffer is in the frame whose sync was refused once. The next call has it; or it
/// is the pool's again where the stream starts anew.
#[test]
fn a_frame_that_could_not_be_taken_back_comes_next() {
    for anew in [false, true] {
        let board = SimBoard::new(7);
        let own = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        // Number 0 and 1 are the region's own syncs, and 2 the hand-over.
        let refusing = Mutant::new(board.memory(PACKET).unwrap(), Mutation::RefusedOnce(3));
        let region = Region::new(refusing).unwrap();
        let pool = region.pool(1, PACKET).unwrap();
        let device = camera(spec(SourceConfig::default()), &board, board.port());
        let driver = camera_of(device.window().unwrap(), ring(&own, 8), 8).unwrap();
        let mut stream = Stream::new(driver, pool.clone(), 8, &[]).unwrap();
        assert_eq!(stream.start(), Ok(1));
        assert_eq!(stream.next(A_WHILE).unwrap_err(), REFUSAL);
        assert!(stream.is_running());
        if anew {
            stream.stop().unwrap();
            assert_eq!(stream.start(), Ok(1));
        }
        let frame = stream.next(A_WHILE).unwrap().unwrap();
        let number = packet::number(frame.buf.view::<u8>().unwrap()).unwrap();
        assert_eq!(number != 0, anew, "packet {number}");
        drop((frame, stream));
        assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0));
    }
}

#[test]
fn full_late_stopped_drained_and_taken_back() {
    rig!(spec(SourceConfig::default()) => board, device, pool, driver);
    let mut queue = Queue::new(driver, 8).unwrap();
    let now_ns = board.now_ns();
    assert!(
        queue.wait::<1>(Duration::from_millis(10)).unwrap().is_none() && board.now_ns() == now_ns,
        "nothing is in flight: it does not wait"
    );
    for job in 0..8 {
        assert_eq!(queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap(), job);
    }
    let refused = queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap_err();
    assert_eq!(
        (refused.error, refused.buffers.map(|[operand]| operand.into_buf().is_ok())),
        (Error::QueueFull { depth: 8 }, Some(true))
    );
    assert!(queue.wait::<1>(Duration::from_micros(2)).unwrap().is_none(), "late is no failure");
    assert_eq!(
        (queue.len(), queue.take_back::<1>().unwrap().is_none(), queue.counts().stopped),
        (8, true, 0)
    );

    device.run_for(35).unwrap();
    queue.stop().unwrap();
    let refused = queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap_err();
    assert_eq!(refused.error, Error::QueueStopped { in_flight: 8 });
    drop(refused);
    // Drained: the packets that had arrived, in order; then the buffers that got none.
    // A reset ends the transfer under way, because no register says whether more of it comes.
    for number in 0..3 {
        let [buf] = queue.wait::<1>(A_WHILE).unwrap().unwrap().buffers;
        assert!(packet::is(number, buf.view::<u8>().unwrap()), "packet {number}");
    }
    assert!(queue.wait::<1>(A_WHILE).unwrap().is_none());
    for job in 3..8 {
        assert_eq!(queue.take_back::<1>().unwrap().unwrap().job, job);
    }
    assert!(queue.take_back::<1>().unwrap().is_none() && queue.is_empty() && !queue.is_stopped());
    let counts = queue.counts();
    assert_eq!(
        [counts.pushed, counts.completed, counts.cancelled, counts.stopped, counts.ran_dry],
        [8, 3, 5, 1, 0]
    );
    assert_eq!(pool.taken(), 0);

    // And again.
    queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    let [buf] = queue.wait::<1>(A_WHILE).unwrap().unwrap().buffers;
    assert!(
        packet::number(buf.view::<u8>().unwrap())
            .is_some_and(|number| number > 3 && packet::is(number, buf.view::<u8>().unwrap()))
    );
    drop((buf, queue));
    assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0));
}

#[test]
fn dropped_it_stops_forgotten_or_stuck_it_leaks() {
    for (config, forget, leaked) in [
        (spec(SourceConfig::default()), false, 0),
        (spec(SourceConfig::default()), true, 8),
        (CoreSpec { stuck: true, ..spec(SourceConfig::default()) }, false, 8),
    ] {
        rig!(config => board, device, pool, driver);
        let mut stream = Stream::new(driver, pool.clone(), 8, &[]).unwrap();
        stream.start().unwrap();
        device.run_for(55).unwrap();
        if forget {
            std::mem::forget(stream)
        } else {
            drop(stream)
        }
        assert_eq!(pool.taken(), leaked, "forgotten: {forget}, {config:?}");
        // A camera that goes on writes only the buffers that it was given.
        device.run_for(500).unwrap();
        assert_eq!(board.counts().unowned_accesses, 0, "forgotten: {forget}, {config:?}");
    }
}

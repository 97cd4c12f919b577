//! Channels that share the core: one's reset and one's error are the others' too.

use super::*;

/// DMASlvErr, bit 1 of the error register (PG288).
const SLAVE_ERROR: u32 = 1 << 1;
const RESET: Error = Error::EndedByReset { device: "axi_mcdma" };

/// A queue's next job's end, as an error where there is one.
fn end<D: Driver>(queue: &mut Queue<D>) -> Result<bool> {
    let ended = queue.wait::<1>(Duration::from_millis(5));
    ended.map(|done| done.is_some()).map_err(|failed| failed.error)
}

#[test]
fn one_channels_reset_tells_the_others() {
    let (board, rings, pool) = ground(Faults::NONE);
    let device = core(&board, DRE, StreamConfig::default());
    let core = device.window().unwrap().core().unwrap();
    let [mut first, mut second, mut sender] =
        [Way::S2mm(0), Way::S2mm(1), Way::Mm2s(1)].map(|way| open(&core, way, &rings));
    macro_rules! both_wait {
        () => {
            first.give(receives(&pool, ..));
            second.give(receives(&pool, ..));
        };
    }
    macro_rules! a_packet_comes {
        () => {
            sender.give(sends(&pool, ..100));
            assert_eq!((end(&mut sender), end(&mut second)), (Ok(true), Ok(true)));
        };
    }
    // A sender whose packets are all sent leaves the others at work.
    both_wait!();
    a_packet_comes!();
    second.give(receives(&pool, ..));
    sender.stop().unwrap();
    assert_eq!((end(&mut first), end(&mut second)), (Ok(false), Ok(false)));
    a_packet_comes!();
    second.give(receives(&pool, ..));

    // A receiver that waits cannot be stopped alone.
    first.stop_one::<1>();
    assert_eq!(end(&mut second), Err(RESET));
    second.clear().unwrap();
    // The sender had no job, and does not notice.
    second.give(receives(&pool, ..));
    a_packet_comes!();
    // One that has jobs refuses the next.
    both_wait!();
    first.clear().unwrap();
    assert_eq!(second.submit(receives(&pool, ..), &[]).unwrap_err().cause, RESET);
    second.clear().unwrap();
    // The stop of a channel that was reset resets no other channel.
    both_wait!();
    first.clear().unwrap();
    first.give(receives(&pool, ..));
    assert_eq!(end(&mut second), Err(RESET));
    second.clear().unwrap();
    assert_eq!(end(&mut first), Ok(false), "the second's stop found itself reset");
    first.clear().unwrap();
    clean(&board);
}

/// The error of one holds its direction halted until a reset: another that starts names it.
#[test]
fn start_after_a_siblings_error_names_the_error() {
    let (board, rings, pool) = ground(Faults { error: 1000, ..Faults::NONE });
    let device = core(&board, DRE, StreamConfig::sink());
    let core = device.window().unwrap().core().unwrap();
    let [mut first, mut second] = [0, 1].map(|number| open(&core, Way::Mm2s(number), &rings));
    first.give(sends(&pool, ..100));
    device.run_for(20).unwrap();
    cases! {
        second.submit(sends(&pool, ..100), &[]).unwrap_err().cause
            => Error::Fault { what, .. } if what.starts_with("an error on another channel"),
        // It was stopped without a reset of the core, which had no job of it.
        first.fails::<1>() => Error::FaultAt { what, .. } if what.starts_with("DMASlvErr"),
    }
}

#[test]
fn failed_sibling_reset_keeps_buffers() {
    let (board, rings, pool) = ground(STUCK);
    // Its packet comes slowly: it is under way when the sibling gives up.
    let slow = SourceConfig { packet_bytes: 4000, bytes_per_us: 1, ..SourceConfig::default() };
    let streams = [StreamConfig::default(), StreamConfig::source(slow, 2048)];
    let spec = McdmaSpec { config: McdmaConfig { stop_us: 1, ..DRE }, streams };
    let device = SimDevice::<McdmaModel>::with_model(&board, board.port(), McdmaModel::new(spec));
    let core = device.window().unwrap().core().unwrap();
    let [mut sender, mut receiver] =
        [Way::Mm2s(0), Way::S2mm(1)].map(|way| open(&core, way, &rings));
    receiver.give(receives(&pool, ..));
    // It takes five microseconds, and a stop waits for one.
    sender.give(sends(&pool, ..));
    cases! {
        sender.stop() => Err(Error::WillNotStop { device: "axi_mcdma", .. }),
        receiver.clear() => Err(Error::WillNotStop { device: "axi_mcdma", .. }),
    }
    assert_eq!(pool.taken(), 2);
    device.run_for(10_000).unwrap();
    clean(&board);
    core.reset(|| device.reset()).unwrap();
    sender.clear().unwrap();
    receiver.clear().unwrap();
    assert_eq!(pool.taken(), 0);
}

#[test]
fn one_channels_error_halts_its_direction() {
    let (board, rings, pool) = ground(Faults { error: 500, ..Faults::NONE });
    let device = core(&board, DRE, StreamConfig::default());
    let core = device.window().unwrap().core().unwrap();
    let [mut waits, mut receiver, mut sender] =
        [Way::S2mm(0), Way::S2mm(1), Way::Mm2s(1)].map(|way| open(&core, way, &rings));
    let (mut mine, mut another) = (0, 0);
    for turn in 0..100 {
        for queue in [&mut waits, &mut receiver] {
            queue.give(receives(&pool, ..));
        }
        sender.give(sends(&pool, ..100));
        let _ = end(&mut sender);
        device.run_for(100).unwrap();
        // Who looks first tells the error, and stops: for that it resets the core.
        if turn % 2 == 0 {
            if let Err(Error::FaultAt { .. }) = end(&mut receiver) {
                mine += 1;
                assert_eq!(end(&mut waits), Err(RESET));
            }
        } else if let Err(Error::Fault { what, status, .. }) = end(&mut waits) {
            another += 1;
            assert!(what.starts_with("an error on another channel"), "{what}");
            assert_eq!((status, end(&mut receiver)), (SLAVE_ERROR, Err(RESET)));
        }
        for queue in [&mut waits, &mut receiver] {
            queue.clear().unwrap();
        }
        sender.clear().unwrap();
    }
    assert!(mine > 5 && another > 5, "{mine} {another}");
}

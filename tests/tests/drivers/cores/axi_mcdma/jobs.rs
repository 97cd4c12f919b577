//! Packets out and in.

use super::*;
use contigo::sim::stream::StreamCounts;

fn report(done: &Done<[CpuBuf; 1]>) -> PacketReport {
    PacketReport::of(done.status, done.words)
}

#[test]
fn packet_without_buffer_is_dropped_counted() {
    let (board, rings, pool) = ground(Faults::NONE);
    let device = core(&board, DRE, source());
    let core = device.window().unwrap().core().unwrap();
    let mut queue = open(&core, Way::S2mm(1), &rings);
    for expected in [0, 1] {
        queue.give(receives(&pool, ..));
        let number = packet::number(queue.end::<1>().buffers[0].view::<u8>().unwrap()).unwrap();
        assert!(number >= expected, "{number}");
        device.run_for(100).unwrap();
    }
    // A packet of 2.5 us comes every 4.5 us.
    let dropped = queue.driver().dropped();
    assert!((30..60).contains(&dropped), "{dropped}");
    assert_eq!(u64::from(core.all_dropped()), dropped, "the other channel dropped none");
    let underruns = queue.driver().underruns();
    assert_eq!(underruns, Some(dropped), "reading clears it, and the driver adds up");
    // The core lets no stream wait.
    cases! {
        device.model(|model| model.streams[1].counts).unwrap()
            => StreamCounts { lost: 0, cut: 0, .. },
    }
}

#[test]
fn long_packet_goes_on_in_next_buffer() {
    let endless = SourceConfig { marks_last: false, ..SourceConfig::default() };
    let endless = StreamConfig::source(endless, 2048);
    let whole = [(400, true, false), (400, false, false), (200, false, true)];
    let none = [(2000, true, false), (2000, false, false), (2000, false, false)];
    for (stream, expected) in [(source(), whole), (endless, none)] {
        let (board, rings, pool) = ground(Faults::NONE);
        let device = core(&board, DRE, stream);
        let core = device.window().unwrap().core().unwrap();
        let mut queue = open(&core, Way::S2mm(0), &rings);
        let room = expected[0].0;
        for _ in 0..3 {
            queue.give(receives(&pool, ..room));
        }
        let mut bytes = Vec::new();
        for (len, first, last) in expected {
            let done = queue.end::<1>();
            let said = (done.bytes, report(&done).first, report(&done).last);
            assert_eq!(said, (Some(len), first, last));
            bytes.extend_from_slice(done.buffers[0].view_at::<u8>(..len).unwrap());
        }
        if stream == source() {
            assert!(packet::is(0, &bytes));
            // One buffer alone: the core waits for more, and the stream with it.
            queue.give(receives(&pool, ..400));
            let done = queue.end::<1>();
            assert!(report(&done).first && !report(&done).last);
            assert!(queue.wait::<1>(Duration::from_millis(5)).unwrap().is_none());
        }
    }
}

#[test]
fn sideband_is_reported_when_asked_for() {
    let (board, rings, pool) = ground(Faults::NONE);
    for sideband in [false, true] {
        let device = core(&board, McdmaConfig { sideband, ..DRE }, source());
        let core = device.window().unwrap().core().unwrap();
        let mut queue = open(&core, Way::S2mm(1), &rings);
        queue.give(receives(&pool, ..));
        let done = queue.end::<1>();
        // TDEST is the channel's number.
        let said = (report(&done).user, report(&done).id, done.words[0] >> 16 & 0xF);
        assert_eq!(said, if sideband { (1, 1, 1) } else { (0, 0, 0) });
    }
}

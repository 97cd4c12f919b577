//! Packets out and in.

use super::*;
use contigo::{
    CpuBuf, Done, Driver, Queue, drivers::axi_mcdma::PacketReport, sim::stream::StreamCounts,
};

fn report(done: &Done<[CpuBuf; 1]>) -> PacketReport {
    PacketReport::of(done.status, done.words)
}

#[test]
fn a_packet_without_a_buffer_is_dropped_and_counted() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    let device = SimDevice::with_model(&board, board.port(), model(source()));
    let core = device.window().unwrap().core().unwrap();
    let mut queue =
        Queue::new(core.channel(Way::S2mm(1), rings.take().unwrap()).unwrap(), 8).unwrap();
    for expected in [0, 1] {
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
        let done = queue.wait::<1>(LIMIT).unwrap().unwrap();
        let number = packet::number(done.buffers[0].view::<u8>().unwrap()).unwrap();
        assert!(number >= expected, "{number}");
        device.run_for(100).unwrap();
    }
    // A packet of 2.5 us comes every 4.5 us.
    let dropped = queue.driver().dropped();
    assert!((30..60).contains(&dropped), "{dropped}");
    assert_eq!(u64::from(core.all_dropped()), dropped, "the other channel dropped none");
    assert_eq!(
        queue.driver().ran_dry(),
        Some(dropped),
        "reading clears it, and the driver adds up"
    );
    let counts = device.model(|model| model.streams[1].counts()).unwrap();
    assert!(
        matches!(counts, StreamCounts { lost: 0, cut: 0, .. }),
        "the core lets no stream wait: {counts:?}"
    );
}

#[test]
fn a_packet_longer_than_its_buffer_goes_on_in_the_next() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    let device = SimDevice::with_model(&board, board.port(), model(source()));
    let channel = device.window().unwrap().channel(Way::S2mm(0), rings.take().unwrap()).unwrap();
    let mut queue = Queue::new(channel, 8).unwrap();
    for _ in 0..3 {
        queue.submit([pool.take().unwrap().from_device(..400)], &[]).unwrap();
    }
    let mut bytes = Vec::new();
    for (expected, first, last) in [(400, true, false), (400, false, false), (200, false, true)] {
        let done = queue.wait::<1>(LIMIT).unwrap().unwrap();
        assert_eq!(
            (done.bytes, report(&done).first, report(&done).last),
            (Some(expected), first, last)
        );
        bytes.extend_from_slice(done.buffers[0].view_at::<u8>(..expected).unwrap());
    }
    assert!(packet::is(0, &bytes));
    // One buffer alone: the core waits for more, and the stream with it.
    queue.submit([pool.take().unwrap().from_device(..400)], &[]).unwrap();
    let done = queue.wait::<1>(LIMIT).unwrap().unwrap();
    assert!(report(&done).first && !report(&done).last);
    assert!(queue.wait::<1>(LIMIT).unwrap().is_none());
}

#[test]
fn the_sideband_is_reported_where_it_is_asked_for() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    for sideband in [false, true] {
        let spec = McdmaSpec { config: McdmaConfig { sideband, ..dre() }, streams: [source(); 2] };
        let device = SimDevice::with_model(&board, board.port(), McdmaModel::new(spec));
        let channel =
            device.window().unwrap().channel(Way::S2mm(1), rings.take().unwrap()).unwrap();
        let mut queue = Queue::new(channel, 8).unwrap();
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
        let done = queue.wait::<1>(LIMIT).unwrap().unwrap();
        assert_eq!((report(&done).user, report(&done).id), if sideband { (1, 1) } else { (0, 0) });
        assert_eq!(done.words[0] >> 16 & 0xF, u32::from(sideband), "TDEST is the channel's number");
    }
}

#[test]
fn a_stream_without_an_end_of_packet_fills_buffers() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    let endless =
        StreamConfig::source(SourceConfig { marks_last: false, ..SourceConfig::default() }, 2048);
    let device = SimDevice::with_model(&board, board.port(), model(endless));
    let channel = device.window().unwrap().channel(Way::S2mm(0), rings.take().unwrap()).unwrap();
    let mut queue = Queue::new(channel, 8).unwrap();
    for _ in 0..4 {
        queue.submit([pool.take().unwrap().from_device(..2000)], &[]).unwrap();
    }
    for index in 0..4 {
        let done = queue.wait::<1>(LIMIT).unwrap().unwrap();
        assert_eq!(
            (done.bytes, report(&done).first, report(&done).last),
            (Some(2000), index == 0, false)
        );
    }
}

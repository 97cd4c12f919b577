//! Which end says what after a stop: the table of `docs/cores.md`, a test for each driver that
//! receives. `axi_dma/side_by_side.rs` has AXI DMA's.

use contigo::{
    CpuBuf, Done, Driver, Pool, Queue, Region,
    drivers::{
        axi_dmac::DmacConfig,
        axi_mcdma::{McdmaConfig, Way},
        axi_vdma::{AxiVdmaConfig, Side as VdmaSide},
        litepcie::{LitepcieConfig, Side as LitepcieSide},
        msgdma::{MsgdmaConfig, MsgdmaMode},
    },
    sim::{
        SimBoard, SimDevice,
        axi_dmac::{AxiDmacBuild, AxiDmacModel, Side as DmacSide},
        axi_mcdma::{McdmaModel, McdmaSpec},
        axi_vdma::{AxiVdmaModel, AxiVdmaSpec},
        litepcie::{LitepcieModel, LitepcieSpec},
        msgdma::{MsgdmaBuild, MsgdmaModel},
        stream::{SourceConfig, StreamConfig, packet},
    },
};
use std::time::Duration;

/// The packets of the source, and the room for one.
const PACKET_BYTES: usize = 1024;
const ROOM_BYTES: usize = 2048;
const ROUNDS: u32 = 60;
const LIMIT: Duration = Duration::from_millis(5);

/// A source that no stop reaches: the rest of a packet waits.
fn source() -> StreamConfig {
    source_of(100)
}

fn source_of(bytes_per_us: u64) -> StreamConfig {
    let source = SourceConfig {
        packet_bytes: PACKET_BYTES,
        bytes_per_us,
        goes_on: true,
        ..SourceConfig::default()
    };
    StreamConfig::source(source, 4096)
}

/// The ends of all rounds, counted.
#[derive(Debug, Default)]
struct Seen {
    whole: u32,
    /// The rest of a packet, with the flag and without.
    rests: u32,
    unsaid: u32,
    /// Ends with the flag.
    flags: u32,
}

/// Stops in the middle of what comes, again and again. `flag`: does the completion say
/// that the packet may be torn? Only the first end after a stop is no whole
/// packet, or has the flag.
fn stops<D: Driver>(
    queue: &mut Queue<D>,
    pool: &Pool,
    words: &[u32],
    room_bytes: usize,
    run_for: impl Fn(u32),
    flag: impl Fn(&Done<[CpuBuf; 1]>) -> bool,
) -> Seen {
    let (mut seen, slots) = (Seen::default(), queue.driver().depth().min(4));
    for round in 0..ROUNDS {
        for _ in 0..slots {
            queue.submit([pool.take().unwrap().from_device(..room_bytes)], words).unwrap();
        }
        // Some ends are told before the stop, and the others after it.
        let (mut looks, mut stopped, mut first) = (round % 3, false, round > 0);
        loop {
            if looks == 0 && !core::mem::replace(&mut stopped, true) {
                run_for(1 + round % 13 * 3);
                queue.stop().unwrap();
            }
            let Some(done) = queue.wait::<1>(if stopped { Duration::ZERO } else { LIMIT }).unwrap()
            else {
                if stopped {
                    break;
                }
                looks = 0;
                continue;
            };
            looks = looks.saturating_sub(1);
            let bytes = done.bytes.unwrap_or(room_bytes);
            let is_whole =
                bytes == PACKET_BYTES && is_packet(&done.buffers[0].view::<u8>().unwrap()[..bytes]);
            let (said, first) = (flag(&done), core::mem::take(&mut first));
            assert!(
                first || is_whole && !said,
                "round {round}: a packet that ended before the stop: {bytes} bytes, {done:?}"
            );
            seen.whole += u32::from(is_whole);
            seen.rests += u32::from(!is_whole && said);
            seen.unsaid += u32::from(!is_whole && !said);
            seen.flags += u32::from(said);
        }
        while queue.take_back::<1>().unwrap().is_some() {}
    }
    assert!(seen.whole > 15, "{seen:?}");
    seen
}

fn is_packet(seen: &[u8]) -> bool {
    packet::number(seen).is_some_and(|number| packet::is(number, seen))
}

/// A board with memory for packets, and for descriptors.
macro_rules! ground {
    ($board:ident, $pool:ident, $rings:ident) => {
        let $board = SimBoard::new(11);
        let region = Region::new($board.memory(64 << 10).unwrap()).unwrap();
        let $rings = region.pool(1, 4096).unwrap();
        let $pool = region.pool(4, ROOM_BYTES).unwrap();
    };
}

fn nothing(_: &Done<[CpuBuf; 1]>) -> bool {
    false
}

#[test]
fn mcdma_marks_a_packet_that_may_be_torn() {
    ground!(board, pool, rings);
    let config =
        McdmaConfig { mm2s_dre: true, s2mm_dre: true, stop_us: 5, ..McdmaConfig::default() };
    let device = SimDevice::with_model(
        &board,
        board.port(),
        McdmaModel::new(McdmaSpec { config, streams: [source(); 2] }),
    );
    let core = device.window().unwrap().core().unwrap();
    let mut queue =
        Queue::new(core.channel(Way::S2mm(0), rings.take().unwrap()).unwrap(), 4).unwrap();
    let seen = stops(
        &mut queue,
        &pool,
        &[],
        ROOM_BYTES,
        |us| device.run_for(us).unwrap(),
        |end| end.words[1] == 1,
    );
    assert!(seen.rests > 2 && seen.unsaid == 0 && seen.flags >= seen.rests, "{seen:?}");
    assert_eq!(board.counts().unowned_accesses, 0);
}

/// It waits for the beginning of a frame: there is nothing to say.
#[test]
fn vdma_begins_with_a_whole_frame_after_a_stop() {
    ground!(board, pool, _rings);
    let spec = AxiVdmaSpec { stream: source(), ..AxiVdmaSpec::default() };
    let device = SimDevice::with_model(&board, board.port(), AxiVdmaModel::new(spec));
    let config = AxiVdmaConfig { hsize_bytes: 64, vsize_lines: 16, ..AxiVdmaConfig::default() };
    let channel = device.window().unwrap().channel(VdmaSide::S2mm, config).unwrap();
    let mut queue = Queue::new(channel, 4).unwrap();
    let seen = stops(&mut queue, &pool, &[], ROOM_BYTES, |us| device.run_for(us).unwrap(), nothing);
    assert!(seen.unsaid == 0, "{seen:?}");
    assert_eq!(board.counts().unowned_accesses, 0);
}

/// A stop lets the packet under way end. One that takes longer than `stop_us` is cut, and its rest
/// comes next. Nothing is said: a program throws the first packet after a stop away.
#[test]
fn msgdma_does_not_mark_a_torn_packet() {
    for (prefetcher_at, stop_us, cuts) in
        [(None, 1_000, false), (Some(0x60), 1_000, false), (None, 20, true), (Some(0x60), 20, true)]
    {
        ground!(board, pool, rings);
        let config = MsgdmaConfig {
            mode: MsgdmaMode::Receive,
            resp_at: Some(0x40),
            prefetcher_at,
            max_bytes: 4096,
            stop_us,
            ..MsgdmaConfig::default()
        };
        let build = MsgdmaBuild {
            config,
            stream: source_of(if cuts { 10 } else { 100 }),
            ..MsgdmaBuild::default()
        };
        let device = SimDevice::with_model(&board, board.port(), MsgdmaModel::new(build));
        let window = device.window().unwrap();
        let driver = match prefetcher_at {
            None => window.driver(config).unwrap(),
            Some(_) => window.prefetched(config, rings.take().unwrap()).unwrap(),
        };
        let mut queue = Queue::new(driver, 4).unwrap();
        let seen =
            stops(&mut queue, &pool, &[], ROOM_BYTES, |us| device.run_for(us).unwrap(), nothing);
        assert!((if cuts { seen.unsaid > 2 } else { seen.unsaid == 0 }), "{seen:?}");
        assert_eq!(board.counts().unowned_accesses, 0);
    }
}

/// The same, and a stop waits for no packet.
#[test]
fn axi_dmac_does_not_mark_a_torn_packet() {
    ground!(board, pool, _rings);
    let build = AxiDmacBuild {
        sides: [DmacSide::Stream, DmacSide::Memory],
        stream: source(),
        ..AxiDmacBuild::default()
    };
    let device = SimDevice::with_model(&board, board.port(), AxiDmacModel::new(build));
    let driver = device.window().unwrap().driver(DmacConfig::default()).unwrap();
    let mut queue = Queue::new(driver, 4).unwrap();
    let seen = stops(&mut queue, &pool, &[], ROOM_BYTES, |us| device.run_for(us).unwrap(), nothing);
    assert!(seen.unsaid > 2, "{seen:?}");
    assert_eq!(board.counts().unowned_accesses, 0);
}

/// A stream of bytes: each buffer begins where the one before ended, and the first after a stop
/// anywhere. Nothing is said.
#[test]
fn litepcie_loses_its_place_in_the_stream_by_a_stop() {
    ground!(board, pool, _rings);
    let config = LitepcieConfig { ordered: true, ..LitepcieConfig::default() };
    let card = SimDevice::with_model(
        &board,
        board.port(),
        LitepcieModel::new(LitepcieSpec { config, stream: source() }),
    );
    let mut queue =
        Queue::new(card.window().unwrap().driver(LitepcieSide::Writer).unwrap(), 4).unwrap();
    let (mut moved, mut kept) = (0, 0);
    for round in 0..ROUNDS {
        for _ in 0..queue.driver().depth().min(4) {
            queue.submit([pool.take().unwrap().from_device(..PACKET_BYTES)], &[]).unwrap();
        }
        card.run_for(1 + round % 13 * 3).unwrap();
        queue.stop().unwrap();
        // Where in a packet all buffers of this start begin.
        let mut place = None;
        while let Some(done) = queue.wait::<1>(Duration::ZERO).unwrap() {
            assert_eq!((done.words, done.bytes), ([0; 4], None));
            let seen = done.buffers[0].view::<u8>().unwrap()[..PACKET_BYTES].to_vec();
            let begins = (0..PACKET_BYTES).find(|&at| {
                packet::number(&seen[at..])
                    .is_some_and(|number| packet::begins(number, PACKET_BYTES, &seen[at..]))
            });
            assert!(
                begins.is_some() && *place.get_or_insert(begins) == begins,
                "round {round}: {begins:?} after {place:?}"
            );
            assert!(round > 0 || begins == Some(0), "before any stop");
        }
        match place {
            Some(Some(0)) => kept += 1,
            Some(_) => moved += 1,
            None => {}
        }
        while queue.take_back::<1>().unwrap().is_some() {}
    }
    assert!(moved > 5, "{moved} {kept}");
    assert_eq!(board.counts().unowned_accesses, 0);
}

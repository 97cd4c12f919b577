//! Which end says what after a stop: the table of `docs/cores.md`, a test for each driver that
//! receives.

use crate::prelude::*;
use contigo::drivers::axi_dma::{AxiDmaConfig, PacketReport, Side as DmaSide};
use contigo::drivers::axi_dmac::DmacConfig;
use contigo::drivers::axi_mcdma::{McdmaConfig, Way};
use contigo::drivers::axi_vdma::{AxiVdmaConfig, Side as VdmaSide};
use contigo::drivers::litepcie::{LitepcieConfig, Side as LitepcieSide};
use contigo::drivers::msgdma::{MsgdmaConfig, MsgdmaMode};
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo::sim::axi_dmac::{AxiDmacBuild, AxiDmacModel, Side as DmacSide};
use contigo::sim::axi_mcdma::{McdmaModel, McdmaSpec};
use contigo::sim::axi_vdma::{AxiVdmaModel, AxiVdmaSpec};
use contigo::sim::litepcie::{LitepcieModel, LitepcieSpec};
use contigo::sim::msgdma::{MsgdmaBuild, MsgdmaModel};

/// The packets of the source, and the room for one.
const PACKET_BYTES: usize = 1024;
const ROOM_BYTES: usize = 2048;
const ROUNDS: u32 = 60;

/// A source that no stop reaches: the rest of a packet waits.
fn source(bytes_per_us: u64) -> StreamConfig {
    source_of(bytes_per_us, true)
}

/// The same, or one that a core's reset resets.
fn source_of(bytes_per_us: u64, goes_on: bool) -> StreamConfig {
    let packet_bytes = PACKET_BYTES;
    let source = SourceConfig { packet_bytes, bytes_per_us, goes_on, ..SourceConfig::default() };
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
fn stops<M: Model, D: Driver>(
    device: &SimDevice<M>,
    driver: D,
    pool: &Pool,
    flag: impl Fn(&Done<[CpuBuf; 1]>) -> bool,
) -> Seen {
    let mut queue = Queue::new(driver, 4).unwrap();
    let (mut seen, slots) = (Seen::default(), queue.driver().depth().min(4));
    for round in 0..ROUNDS {
        for _ in 0..slots {
            queue.give(receives(pool, ..ROOM_BYTES));
        }
        // Some ends are told before the stop, and the others after it.
        let (mut looks, mut stopped, mut first) = (round % 3, false, round > 0);
        loop {
            if looks == 0 && !core::mem::replace(&mut stopped, true) {
                device.run_for(1 + round % 13 * 3).unwrap();
                queue.stop().unwrap();
            }
            let limit = if stopped { Duration::ZERO } else { Duration::from_millis(5) };
            let Some(done) = queue.wait::<1>(limit).unwrap() else {
                if stopped {
                    break;
                }
                looks = 0;
                continue;
            };
            looks = looks.saturating_sub(1);
            let bytes = done.bytes.unwrap_or(ROOM_BYTES);
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
        queue.drain::<1>();
    }
    assert!(seen.whole > 15, "{seen:?}");
    seen
}

fn is_packet(seen: &[u8]) -> bool {
    packet::number(seen).is_some_and(|number| packet::is(number, seen))
}

fn nothing(_: &Done<[CpuBuf; 1]>) -> bool {
    false
}

#[test]
fn axi_dma_marks_a_packet_that_may_be_torn() {
    for (sg, resets_stream) in [(true, false), (false, false), (true, true)] {
        let (board, region, pool) = bench(11, 4, ROOM_BYTES);
        let stream = source_of(if sg { 100 } else { 25 }, !resets_stream);
        let spec = CoreSpec { sg, resets_stream, stream, ..CoreSpec::default() };
        let device = SimDevice::with_model(&board, board.port(), AxiDmaModel::new(spec));
        let depth = Some(if sg { 4 } else { 1 });
        let config = AxiDmaConfig { stop_us: 5, depth, ..AxiDmaConfig::default() };
        let channel = device.window().unwrap();
        let channel = channel.channel(DmaSide::S2mm, config, Some(ring(&region))).unwrap();
        let flag = |end: &Done<[CpuBuf; 1]>| PacketReport::of(end.status, end.words).maybe_torn;
        let seen = stops(&device, channel, &pool, flag);
        let rests = if resets_stream { seen.rests == 0 } else { seen.rests > 3 };
        assert!(rests && seen.unsaid == 0 && seen.flags > 3, "{sg} {resets_stream} {seen:?}");
        clean(&board);
    }
}

#[test]
fn mcdma_marks_a_packet_that_may_be_torn() {
    let (board, region, pool) = bench(11, 4, ROOM_BYTES);
    let config =
        McdmaConfig { mm2s_dre: true, s2mm_dre: true, stop_us: 5, ..McdmaConfig::default() };
    let model = McdmaModel::new(McdmaSpec { config, streams: [source(100); 2] });
    let device = SimDevice::with_model(&board, board.port(), model);
    let core = device.window().unwrap().core().unwrap();
    let channel = core.channel(Way::S2mm(0), ring(&region)).unwrap();
    let seen = stops(&device, channel, &pool, |end| end.words[1] == 1);
    assert!(seen.rests > 2 && seen.unsaid == 0 && seen.flags >= seen.rests, "{seen:?}");
    clean(&board);
}

/// It waits for the beginning of a frame: there is nothing to say.
#[test]
fn vdma_begins_with_a_whole_frame_after_a_stop() {
    let (board, _, pool) = bench(11, 4, ROOM_BYTES);
    let model = AxiVdmaModel::new(AxiVdmaSpec { stream: source(100), ..AxiVdmaSpec::default() });
    let device = SimDevice::with_model(&board, board.port(), model);
    let config = AxiVdmaConfig { hsize_bytes: 64, vsize_lines: 16, ..AxiVdmaConfig::default() };
    let channel = device.window().unwrap().channel(VdmaSide::S2mm, config).unwrap();
    let seen = stops(&device, channel, &pool, nothing);
    assert!(seen.unsaid == 0, "{seen:?}");
    clean(&board);
}

/// A stop lets the packet under way end. One that takes longer than `stop_us` is cut, and its rest
/// comes next. Nothing is said: a program throws the first packet after a stop away.
#[test]
fn msgdma_does_not_mark_a_torn_packet() {
    for (prefetcher_at, stop_us, cuts) in
        [(None, 1_000, false), (Some(0x60), 1_000, false), (None, 20, true), (Some(0x60), 20, true)]
    {
        let (board, region, pool) = bench(11, 4, ROOM_BYTES);
        let config = MsgdmaConfig {
            mode: MsgdmaMode::Receive,
            resp_at: Some(0x40),
            prefetcher_at,
            max_bytes: 4096,
            stop_us,
            ..MsgdmaConfig::default()
        };
        let stream = source(if cuts { 10 } else { 100 });
        let model = MsgdmaModel::new(MsgdmaBuild { config, stream, ..MsgdmaBuild::default() });
        let device = SimDevice::with_model(&board, board.port(), model);
        let window = device.window().unwrap();
        let driver = match prefetcher_at {
            None => window.driver(config).unwrap(),
            Some(_) => window.prefetched(config, ring(&region)).unwrap(),
        };
        let seen = stops(&device, driver, &pool, nothing);
        assert!((if cuts { seen.unsaid > 2 } else { seen.unsaid == 0 }), "{seen:?}");
        clean(&board);
    }
}

/// The same, and a stop waits for no packet.
#[test]
fn axi_dmac_does_not_mark_a_torn_packet() {
    let (board, _, pool) = bench(11, 4, ROOM_BYTES);
    let model = AxiDmacModel::new(AxiDmacBuild {
        sides: [DmacSide::Stream, DmacSide::Memory],
        stream: source(100),
        ..AxiDmacBuild::default()
    });
    let device = SimDevice::with_model(&board, board.port(), model);
    let driver = device.window().unwrap().driver(DmacConfig::default()).unwrap();
    let seen = stops(&device, driver, &pool, nothing);
    assert!(seen.unsaid > 2, "{seen:?}");
    clean(&board);
}

/// A stream of bytes: each buffer begins where the one before ended, and the first after a stop
/// anywhere. Nothing is said.
#[test]
fn litepcie_loses_stream_place_by_a_stop() {
    let (board, _, pool) = bench(11, 4, ROOM_BYTES);
    let config = LitepcieConfig { ordered: true, ..LitepcieConfig::default() };
    let model = LitepcieModel::new(LitepcieSpec { config, stream: source(100) });
    let card = SimDevice::with_model(&board, board.port(), model);
    let mut queue =
        Queue::new(card.window().unwrap().driver(LitepcieSide::Writer).unwrap(), 4).unwrap();
    let (mut moved, mut kept) = (0, 0);
    for round in 0..ROUNDS {
        for _ in 0..queue.driver().depth().min(4) {
            queue.give(receives(&pool, ..PACKET_BYTES));
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
        queue.drain::<1>();
    }
    assert!(moved > 5, "{moved} {kept}");
    clean(&board);
}

//! TAILDESC in two halves, descriptors that the core was never given, and memory with old content.

use super::super::stays_in_flight;
use super::*;
use crate::regs::axi_dma as regs;
use contigo_testkit::lent::Preempted;

/// A packet of 1 KiB takes 3.6 us. The ring has room for 64 jobs, and 8 are in flight at most.
#[test]
fn wide_address_core_never_passes_tail() {
    for (address_bits, for_us, in_flight) in (0..12).map(|n| 3 * n).flat_map(|for_us| {
        [(32, for_us, 3), (40, for_us, 1), (40, for_us, 2), (40, for_us, 3), (40, for_us, 8)]
    }) {
        let case = format!("{address_bits} bits, {for_us} us, {in_flight} in flight");
        let source = SourceConfig { packet_bytes: 1024, gap_ns: 1_000, ..SourceConfig::default() };
        let spec = CoreSpec { address_bits, stream: StreamConfig::source(source, 4096), ..WITH_SG };
        let (board, region, pool) = bench(7, 8, 1024);
        let device = core(&board, spec);
        let after = regs::CHANNEL_BYTES + regs::TAILDESC.offset();
        let slow = Preempted::new(&device, after, for_us).unwrap();
        let config = AxiDmaConfig { address_bits, ..AxiDmaConfig::default() };
        // SAFETY: the model is built so.
        let driver =
            unsafe { AxiDmaChannel::alone(slow, Side::S2mm, config, Some(ring(&region))) }.unwrap();
        let mut queue = Queue::new(driver, 8).unwrap();
        stays_in_flight(&mut queue, (in_flight, 100), || receives(&pool, ..), Some(1024), &case);
        assert_eq!(board.counts().unowned_accesses, 0, "{case}");
    }
}

/// A kernel may need several packets for its first answer, which here takes a millisecond.
#[test]
fn packets_are_sent_before_first_answer() {
    for address_bits in [32, 40] {
        let source =
            SourceConfig { packet_bytes: 1000, bytes_per_us: 1, ..SourceConfig::default() };
        let spec = CoreSpec { address_bits, stream: StreamConfig::source(source, 2048), ..WITH_SG };
        let (board, region, pool) = bench(1, 12, 1024);
        let device = core(&board, spec);
        let config = AxiDmaConfig { address_bits, ..AxiDmaConfig::default() };
        let driver = device.window().unwrap().driver(config, Some(ring(&region))).unwrap();
        let mut queue = Queue::new(driver, 6).unwrap();
        for jobs in [1, 5] {
            for _ in 0..jobs {
                queue.give(copies(&pool, .., ..));
            }
            assert!(queue.wait::<2>(Duration::from_micros(200)).unwrap().is_none());
        }
        assert_eq!(device.model(|model| model.stream.counts.sent).unwrap(), 6, "{address_bits}");
        for _ in 0..6 {
            assert_eq!(queue.end::<2>().bytes, Some(1000));
        }
    }
}

/// A descriptor that is complete makes a core that fetches it halt with `SGIntErr` (PG021).
#[test]
fn ungiven_descriptors_are_complete() {
    let (board, region, pool) = bench(8, 3, 1024);
    let rings = region.pool(1, 1024).unwrap();
    let device = core(&board, WITH_SG);
    let mut memory = rings.take().unwrap();
    memory.view_mut::<u8>().unwrap().fill(0x5A);
    let complete = |words: &[u32]| -> Vec<bool> {
        let is = |bd: &[u32]| bd[regs::STATUS_AT / 4] & regs::COMPLETE != 0 && bd[8..13] == [0; 5];
        words.chunks(16).map(is).collect()
    };
    let open = |memory| {
        device.window().unwrap().channel(Side::S2mm, AxiDmaConfig::default(), Some(memory)).unwrap()
    };
    drop(open(memory));
    let memory = rings.take().unwrap();
    assert_eq!(complete(memory.view::<u32>().unwrap()), [true; 16]);
    // A job that a stop took back is no job of the next start.
    let mut queue = Queue::new(open(memory), 4).unwrap();
    for jobs in [3, 1] {
        for _ in 0..jobs {
            queue.give(receives(&pool, ..));
        }
        queue.clear().unwrap();
    }
    drop(queue);
    let seen = complete(rings.take().unwrap().view::<u32>().unwrap());
    assert_eq!((seen[0], &seen[1..]), (false, &[true; 15][..]));
}

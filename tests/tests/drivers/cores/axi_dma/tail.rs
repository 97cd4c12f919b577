//! TAILDESC in two halves, descriptors that the core was never given, and memory with old content.

use super::{SOON, WITH_SG, alone, core, ring};
use crate::regs::axi_dma as regs;
use contigo::{
    Queue, Region,
    drivers::axi_dma::{AxiDmaChannel, AxiDmaConfig, Side},
    sim::{
        SimBoard,
        axi_dma::CoreSpec,
        stream::{SourceConfig, StreamConfig},
    },
};
use contigo_testkit::lent::Preempted;
use std::time::Duration;

/// A packet of 1 KiB takes 3.6 us. The ring has room for 64 jobs, and 8 are in flight at most.
#[test]
fn a_core_with_wide_addresses_never_passes_its_tail() {
    for (address_bits, for_us, in_flight) in (0..12).map(|n| 3 * n).flat_map(|for_us| {
        [(32, for_us, 3), (40, for_us, 1), (40, for_us, 2), (40, for_us, 3), (40, for_us, 8)]
    }) {
        let source = SourceConfig { packet_bytes: 1024, gap_ns: 1_000, ..SourceConfig::default() };
        let spec = CoreSpec { address_bits, stream: StreamConfig::source(source, 4096), ..WITH_SG };
        let board = SimBoard::new(7);
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let pool = region.pool(8, 1024).unwrap();
        let device = core(&board, spec);
        let after = regs::CHANNEL_BYTES + regs::TAILDESC.offset();
        let slow = Preempted::new(&device, after, for_us).unwrap();
        let config = AxiDmaConfig { address_bits, ..AxiDmaConfig::default() };
        // SAFETY: the model is built so.
        let driver =
            unsafe { AxiDmaChannel::alone(slow, Side::S2mm, config, Some(ring(&region))) }.unwrap();
        let mut queue = Queue::new(driver, 8).unwrap();
        let mut open = 0;
        for round in 0..100 {
            while open < in_flight {
                queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
                open += 1;
            }
            let done = queue
                .wait::<1>(SOON)
                .unwrap()
                .unwrap_or_else(|| panic!("{address_bits} {for_us} {in_flight} {round}: no end"));
            assert_eq!(done.bytes, Some(1024));
            open -= 1;
            if round % 10 == 9 {
                queue.stop().unwrap();
                while queue.wait::<1>(SOON).unwrap().is_some() {}
                while queue.take_back::<1>().unwrap().is_some() {}
                open = 0;
            }
        }
        assert_eq!(board.counts().unowned_accesses, 0, "{address_bits} {for_us} {in_flight}");
    }
}

/// A kernel may need several packets for its first answer, which here takes a millisecond.
#[test]
fn packets_are_sent_while_the_first_answer_is_missing() {
    for address_bits in [32, 40] {
        let source =
            SourceConfig { packet_bytes: 1000, bytes_per_us: 1, ..SourceConfig::default() };
        let spec = CoreSpec { address_bits, stream: StreamConfig::source(source, 2048), ..WITH_SG };
        let board = SimBoard::new(1);
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let pool = region.pool(12, 1024).unwrap();
        let device = core(&board, spec);
        let config = AxiDmaConfig { address_bits, ..AxiDmaConfig::default() };
        let driver = device.window().unwrap().driver(config, Some(ring(&region))).unwrap();
        let mut queue = Queue::new(driver, 6).unwrap();
        for jobs in [1, 5] {
            for _ in 0..jobs {
                queue
                    .submit(
                        [pool.take().unwrap().to_device(..), pool.take().unwrap().from_device(..)],
                        &[],
                    )
                    .unwrap();
            }
            assert!(queue.wait::<2>(Duration::from_micros(200)).unwrap().is_none());
        }
        assert_eq!(device.model(|model| model.stream.counts().sent).unwrap(), 6, "{address_bits}");
        for _ in 0..6 {
            assert_eq!(queue.wait::<2>(SOON).unwrap().unwrap().bytes, Some(1000));
        }
    }
}

/// A descriptor that is complete makes a core that fetches it halt with `SGIntErr` (PG021).
#[test]
fn descriptors_that_the_core_was_not_given_are_complete() {
    let board = SimBoard::new(8);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let rings = region.pool(1, 1024).unwrap();
    let pool = region.pool(3, 1024).unwrap();
    let device = core(&board, WITH_SG);
    let mut memory = rings.take().unwrap();
    memory.view_mut::<u8>().unwrap().fill(0x5A);
    let complete = |words: &[u32]| -> Vec<bool> {
        words
            .chunks(16)
            .map(|bd| bd[regs::STATUS_AT / 4] & regs::COMPLETE != 0 && bd[8..13] == [0; 5])
            .collect()
    };
    drop(alone(&device, Side::S2mm, Some(memory)));
    let memory = rings.take().unwrap();
    assert_eq!(complete(memory.view::<u32>().unwrap()), [true; 16]);
    // A job that a stop took back is no job of the next start.
    let mut queue = Queue::new(alone(&device, Side::S2mm, Some(memory)), 4).unwrap();
    for jobs in [3, 1] {
        for _ in 0..jobs {
            queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
        }
        queue.stop().unwrap();
        while queue.take_back::<1>().unwrap().is_some() {}
    }
    drop(queue);
    let seen = complete(rings.take().unwrap().view::<u32>().unwrap());
    assert_eq!((seen[0], &seen[1..]), (false, &[true; 15][..]));
}

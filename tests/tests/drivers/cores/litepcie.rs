//! LitePCIe's DMA on its model: numbers, both sides and the loopback, edges and refusals.
#![allow(unsafe_code, reason = "cards that are not as they should be are models of the test's")]

use contigo::{
    Device, Driver, Error, Mmio, Queue, Region, Wait,
    drivers::litepcie::{Litepcie, LitepcieConfig, LitepcieCore, Side},
    sim::{
        Faults, Model, SimBoard, SimBus, SimConfig, SimDevice, SimWindow,
        litepcie::{LitepcieModel, LitepcieSpec},
        stream::{SourceConfig, StreamConfig, packet},
    },
};
use contigo_testkit::lent::{Watch, Watched};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const LIMIT: Duration = Duration::from_millis(5);

/// A board with memory for jobs.
macro_rules! ground {
    ($board:ident, $pool:ident) => {
        let region = Region::new($board.memory(256 << 10).unwrap()).unwrap();
        let $pool = region.pool(16, 4096).unwrap();
    };
}

#[test]
fn writer_fills_buffers_in_order() {
    let board = SimBoard::new(1);
    ground!(board, pool);
    let source = SourceConfig { packet_bytes: 1024, ..SourceConfig::default() };
    // Else eight buffers are full before the first one is reported, and the source loses packets.
    let config = LitepcieConfig { ordered: true, ..LitepcieConfig::default() };
    let spec = LitepcieSpec { config, stream: StreamConfig::source(source, 4096) };
    let card = SimDevice::with_model(&board, board.port(), LitepcieModel::new(spec));
    let mut queue = Queue::new(card.window().unwrap().driver(Side::Writer).unwrap(), 8).unwrap();
    while !queue.is_full() {
        queue.submit([pool.take().unwrap().from_device(..1024)], &[]).unwrap();
    }
    for number in 0..100 {
        let [buf] = queue.wait::<1>(LIMIT).unwrap().unwrap().buffers;
        assert!(packet::is(number, buf.view_at::<u8>(..1024).unwrap()), "packet {number}");
        queue.submit([buf.from_device(..1024)], &[]).unwrap();
    }
    // Without a poll, the table runs empty, and full buffers stay as they are.
    card.run_for(1_000).unwrap();
    assert_eq!(board.counts().unowned_accesses, 0);
    for number in 100..108 {
        let [buf] = queue.wait::<1>(LIMIT).unwrap().unwrap().buffers;
        assert!(packet::is(number, buf.view_at::<u8>(..1024).unwrap()), "packet {number}");
    }
    queue.stop().unwrap();
}

/// The writes of a card that is not ordered reach memory after its count reports them.
#[test]
fn the_writer_waits_for_writes_that_its_count_overtook() {
    for (ordered, steps) in [(false, 0), (true, 4)] {
        let board = SimBoard::new(1);
        ground!(board, pool);
        let source = SourceConfig { packet_bytes: 1024, ..SourceConfig::default() };
        let config = LitepcieConfig { ordered, ..LitepcieConfig::default() };
        let spec = LitepcieSpec { config, stream: StreamConfig::source(source, 4096) };
        let card = SimDevice::with_model(&board, board.port(), LitepcieModel::new(spec));
        let mut queue =
            Queue::new(card.window().unwrap().driver(Side::Writer).unwrap(), 8).unwrap();
        assert_eq!(
            queue.driver().stop_program().steps().len(),
            steps,
            "nothing tells a guard that writes have arrived"
        );
        for round in 0..50 {
            while !queue.is_full() {
                queue.submit([pool.take().unwrap().from_device(..1024)], &[]).unwrap();
            }
            if round % 3 == 0 {
                queue.clear().unwrap();
            } else {
                assert!(queue.wait::<1>(LIMIT).unwrap().is_some());
            }
        }
        drop(queue);
        assert_eq!((board.counts().unowned_accesses, pool.taken()), (0, 0), "ordered: {ordered}");
    }
}

#[test]
fn both_sides_work_side_by_side_in_threads() {
    let board = SimBoard::new(1);
    ground!(board, pool);
    let source = SourceConfig { packet_bytes: 1024, ..SourceConfig::default() };
    let spec =
        LitepcieSpec { stream: StreamConfig::source(source, 4096), ..LitepcieSpec::default() };
    let card = SimDevice::with_model(&board, board.port(), LitepcieModel::new(spec));
    let core = card.window().unwrap().core().unwrap();
    let (reader, writer) = (
        contigo::sim::litepcie::channel(&core, Side::Reader).unwrap(),
        contigo::sim::litepcie::channel(&core, Side::Writer).unwrap(),
    );
    assert_eq!(
        contigo::sim::litepcie::channel(&core, Side::Writer).map(drop),
        Err(Error::HasDriver)
    );
    assert!(matches!(
        contigo::sim::litepcie::channel(&core, Side::Loopback).map(drop),
        Err(Error::Unsupported { .. })
    ));
    std::thread::scope(|scope| {
        for driver in [reader, writer] {
            let pool = &pool;
            scope.spawn(move || {
                let writes = driver.operands()[0].direction == contigo::Direction::FromDevice;
                let mut queue = Queue::new(driver, 4).unwrap();
                let (mut done, began) = (0, std::time::Instant::now());
                while done < 100 {
                    assert!(began.elapsed() < Duration::from_secs(60));
                    while !queue.is_full() {
                        let buf = pool.take().unwrap();
                        queue
                            .submit(
                                [if writes {
                                    buf.from_device(..1024)
                                } else {
                                    buf.to_device(..1024)
                                }],
                                &[],
                            )
                            .unwrap();
                    }
                    done +=
                        u32::from(queue.wait::<1>(Duration::from_micros(200)).unwrap().is_some());
                }
                queue.stop().unwrap();
            });
        }
    });
    assert_eq!((board.counts().unowned_accesses, pool.taken()), (0, 0));
    let mut queue =
        Queue::new(contigo::sim::litepcie::channel(&core, Side::Writer).unwrap(), 4).unwrap();
    queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    core.reset(|| card.reset()).unwrap();
    assert_eq!(
        queue.wait::<1>(LIMIT).map(drop).map_err(|failed| failed.error),
        Err(Error::EndedByReset { device: "litepcie" })
    );
}

/// What happens once, between two writes of registers.
type Once = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A window, after one register of which something happens once.
struct Interrupted {
    window: SimWindow<LitepcieModel>,
    then: Once,
}

/// The second word of a descriptor of the reader's table.
const VALUE_LOW: usize = 0x6028;

// SAFETY: the window's registers.
unsafe impl Mmio for Interrupted {
    contigo::forward!(|this| this.window => len_bytes, read32);
    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.window.write32(offset, value) };
        let then = (offset == VALUE_LOW).then(|| self.then.lock().unwrap().take()).flatten();
        then.into_iter().for_each(|then| then());
    }
}
impl Wait for Interrupted {
    contigo::forward!(|this| this.window => now_us, wait_at_most, arm_irq, looks_before_clock);
}
// SAFETY: the window's port.
unsafe impl Device for Interrupted {
    contigo::forward!(|this| this.window => port, simulated);
}

/// It came between a descriptor's words, and the card ran a descriptor of address 0.
#[test]
fn reset_does_not_come_between_a_jobs_registers() {
    let board = SimBoard::new(1);
    ground!(board, pool);
    let card = SimDevice::with_model(&board, board.port(), LitepcieModel::default());
    let then: Once = Arc::default();
    // SAFETY: the model is this card, which no other code drives.
    let core = Arc::new(
        unsafe {
            LitepcieCore::open(Interrupted { window: card.window().unwrap(), then: then.clone() })
        }
        .unwrap(),
    );
    // SAFETY: the model is built so.
    let mut queue =
        Queue::new(unsafe { core.channel(Side::Reader, LitepcieConfig::default()) }.unwrap(), 4)
            .unwrap();
    let (told, seen) = std::sync::mpsc::channel();
    *then.lock().unwrap() = Some(Box::new({
        let (core, card) = (core.clone(), card.clone());
        move || {
            told.send(std::thread::spawn(move || core.reset(|| card.reset())).join().unwrap())
                .unwrap()
        }
    }));
    queue.submit([pool.take().unwrap().to_device(..)], &[]).unwrap();
    assert!(matches!(seen.recv().unwrap(), Err(Error::Contended { .. })));
}

#[test]
fn bad_input_is_refused_with_numbers() {
    let board = SimBoard::new(1);
    ground!(board, pool);
    let card = SimDevice::with_model(&board, board.port(), LitepcieModel::default());
    let mut queue = Queue::new(card.window().unwrap().driver(Side::Loopback).unwrap(), 8).unwrap();
    let mut error = |from: std::ops::Range<usize>, to: std::ops::Range<usize>| {
        let operands = [pool.take().unwrap().to_device(from), pool.take().unwrap().from_device(to)];
        queue.submit(operands, &[]).map_err(|refused| refused.error).err()
    };
    assert!(matches!(
        error(256..512, 0..512),
        Some(Error::BufferAlign { index: 0, align_bytes: 512, .. })
    ));
    assert!(matches!(
        error(0..12, 0..512),
        Some(Error::Argument { value: 12, multiple_of: 8, .. })
    ));
    assert_eq!(
        error(0..1024, 0..512),
        Some(Error::BufferSize { index: 1, need_bytes: 1024, have_bytes: 512 })
    );
    drop(queue);
    for bad in [
        LitepcieConfig { reader_at: 2, ..LitepcieConfig::default() },
        LitepcieConfig { address_bits: 40, ..LitepcieConfig::default() },
        LitepcieConfig { depth: 0, ..LitepcieConfig::default() },
        LitepcieConfig { writer_irq: 32, ..LitepcieConfig::default() },
    ] {
        // SAFETY: the window is the model's.
        let refused = unsafe { Litepcie::open(card.window().unwrap(), Side::Writer, bad) };
        assert!(matches!(refused, Err(Error::Argument { .. })), "{bad:?}");
    }
    let far = LitepcieConfig { msi_at: 0x1_0000, ..LitepcieConfig::default() };
    // SAFETY: as above.
    let refused = unsafe { Litepcie::open(card.window().unwrap(), Side::Writer, far) }.map(drop);
    assert_eq!(
        refused,
        Err(Error::RegisterWindow {
            device: "litepcie",
            need_bytes: 0x1_0004,
            have_bytes: 0x1_0000
        })
    );
}

/// Registers that all read the same.
struct Same(u32);

// SAFETY: it touches no memory.
unsafe impl Model for Same {
    const WINDOW_BYTES: usize = 0x1_0000;
    fn advance(&mut self, _: &mut SimBus<'_>) {}
    fn read32(&mut self, _: usize, _: &mut SimBus<'_>) -> u32 {
        self.0
    }
    fn write32(&mut self, _: usize, _: u32, _: &mut SimBus<'_>) {}
    fn irq_at_ns(&self) -> Option<u64> {
        None
    }
    fn reset(&mut self) {}
}

#[test]
fn cards_that_are_gone_or_old_are_said() {
    let board = SimBoard::new(1);
    for side in [Side::Reader, Side::Writer, Side::Loopback] {
        let open = |value| {
            let card = SimDevice::with_model(&board, board.port(), Same(value));
            // SAFETY: the model touches no memory.
            unsafe { Litepcie::open(card.window().unwrap(), side, LitepcieConfig::default()) }
                .map(drop)
        };
        assert!(matches!(open(u32::MAX), Err(Error::Fault { what, .. }) if what.contains("gone")));
        assert!(matches!(open(0x5A), Err(Error::Fault { what, .. }) if what.contains("csr.csv")));
        // No idle bit.
        assert_eq!(
            open(0),
            Err(Error::WillNotStop { device: "litepcie", status: 0, waited_us: 1_000 })
        );
    }
}

#[test]
fn a_wait_wakes_for_an_end_that_was_seen_and_else_not() {
    for (side, ordered, packets, faults, ends) in [
        (Side::Writer, false, 0, Faults::NONE, false),
        (Side::Writer, false, 100, Faults::NONE, true),
        (Side::Writer, false, 100, Faults { lost_irq: 1000, ..Faults::NONE }, true),
        (Side::Writer, true, 0, Faults::NONE, false),
        (Side::Reader, true, 0, Faults::NONE, true),
        (Side::Reader, true, 0, Faults { hang: 1000, ..Faults::NONE }, false),
    ] {
        let board = SimBoard::with(SimConfig { seed: 1, faults });
        ground!(board, pool);
        let config = LitepcieConfig { ordered, settle_us: 10, ..LitepcieConfig::default() };
        let source = SourceConfig { packets, packet_bytes: 1024, ..SourceConfig::default() };
        let stream = if side == Side::Writer {
            StreamConfig::source(source, 4096)
        } else {
            StreamConfig::sink()
        };
        let card = SimDevice::with_model(
            &board,
            board.port(),
            LitepcieModel::new(LitepcieSpec { config, stream }),
        );
        let (window, watch) = (card.window().unwrap(), Watch::default());
        // SAFETY: the model is built so.
        let driver =
            unsafe { Litepcie::open(Watched::new(&window, &watch), side, config) }.unwrap();
        watch.waits.set(0);
        let mut queue = Queue::new(driver, 8).unwrap();
        let buf = pool.take().unwrap();
        queue
            .submit(
                [if side == Side::Writer {
                    buf.from_device(..1024)
                } else {
                    buf.to_device(..1024)
                }],
                &[],
            )
            .unwrap();
        assert_eq!(queue.wait::<1>(LIMIT).unwrap().is_some(), ends, "{side:?} {faults:?}");
        assert!(
            watch.waits.get() <= 8,
            "{side:?} {faults:?}: it woke {} times in 5 ms",
            watch.waits.get()
        );
        queue.stop().unwrap();
        while queue.take_back::<1>().unwrap().is_some() {}
    }
}

/// An event loop that sleeps by it would find no end until the next interrupt.
#[test]
fn no_event_file_where_ends_follow_interrupts() {
    let armed = |side, ordered| {
        let board = SimBoard::new(1);
        let config = LitepcieConfig { ordered, ..LitepcieConfig::default() };
        let card = SimDevice::with_model(
            &board,
            board.port(),
            LitepcieModel::new(LitepcieSpec { config, ..LitepcieSpec::default() }),
        );
        let (window, watch) = (card.window().unwrap(), Watch::default());
        watch.file.set(Some(7));
        // SAFETY: the model is built so.
        unsafe { Litepcie::open(Watched::new(&window, &watch), side, config) }
            .unwrap()
            .arm_irq()
            .unwrap()
    };
    assert_eq!(
        [armed(Side::Reader, true), armed(Side::Writer, false), armed(Side::Loopback, false)],
        [None; 3]
    );
    assert_eq!([armed(Side::Writer, true), armed(Side::Loopback, true)], [Some(7); 2]);
}

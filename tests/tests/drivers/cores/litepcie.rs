//! LitePCIe's DMA on its model: numbers, both sides and the loopback, edges and refusals.
#![allow(unsafe_code, reason = "cards that are not as they should be are models of the test's")]

use super::wakes_for_an_end;
use crate::prelude::*;
use contigo::drivers::litepcie::{Litepcie, LitepcieConfig, LitepcieCore, Side};
use contigo::sim::litepcie::{LitepcieModel, LitepcieSpec, channel};
use std::sync::{Arc, Mutex};

/// Buffers of one packet.
const BYTES: usize = 1024;

/// A card whose source sends so many packets, and whose reader's stream is a sink.
fn card(board: &SimBoard, config: LitepcieConfig, packets: u32) -> SimDevice<LitepcieModel> {
    let source = SourceConfig { packets, packet_bytes: BYTES, ..SourceConfig::default() };
    let stream = StreamConfig::source(source, 4096);
    let model = LitepcieModel::new(LitepcieSpec { config, stream });
    SimDevice::<LitepcieModel>::with_model(board, board.port(), model)
}

fn ordered(ordered: bool) -> LitepcieConfig {
    LitepcieConfig { ordered, ..LitepcieConfig::default() }
}

/// A job of one side.
fn job(pool: &Pool, side: Side) -> [Operand; 1] {
    if side == Side::Writer { receives(pool, ..BYTES) } else { sends(pool, ..BYTES) }
}

#[test]
fn writer_fills_buffers_in_order() {
    let (board, _, pool) = bench(1, 16, 4096);
    // Else eight buffers are full before the first one is reported, and the source loses packets.
    let card = card(&board, ordered(true), u32::MAX);
    let mut queue = Queue::new(card.window().unwrap().driver(Side::Writer).unwrap(), 8).unwrap();
    let next = |queue: &mut Queue<_>, number| {
        let [buf] = queue.end().buffers;
        assert!(packet::is(number, buf.view_at::<u8>(..BYTES).unwrap()), "packet {number}");
    };
    for number in 0..100 {
        while !queue.is_full() {
            queue.give(receives(&pool, ..BYTES));
        }
        next(&mut queue, number);
    }
    queue.give(receives(&pool, ..BYTES));
    // Without a poll, the table runs empty, and full buffers stay as they are.
    card.run_for(1_000).unwrap();
    clean(&board);
    for number in 100..108 {
        next(&mut queue, number);
    }
    queue.stop().unwrap();
}

/// The writes of a card that is not ordered reach memory after its count reports them.
#[test]
fn writer_waits_for_overtaken_writes() {
    for (is_ordered, steps) in [(false, 0), (true, 4)] {
        let (board, _, pool) = bench(1, 16, 4096);
        let card = card(&board, ordered(is_ordered), u32::MAX);
        let driver = card.window().unwrap().driver(Side::Writer).unwrap();
        // Nothing tells a contigo device that writes have arrived.
        assert_eq!(driver.stop_program().steps().len(), steps);
        let mut queue = Queue::new(driver, 8).unwrap();
        for round in 0..50 {
            while !queue.is_full() {
                queue.give(receives(&pool, ..BYTES));
            }
            if round % 3 == 0 {
                queue.clear().unwrap();
            } else {
                let _ = queue.end::<1>();
            }
        }
        drop(queue);
        clean(&board);
        assert_eq!(pool.taken(), 0, "ordered: {is_ordered}");
    }
}

#[test]
fn both_sides_work_side_by_side_in_threads() {
    let (board, _, pool) = bench(1, 16, 4096);
    let card = card(&board, LitepcieConfig::default(), u32::MAX);
    let core = card.window().unwrap().core().unwrap();
    let sides = [Side::Reader, Side::Writer].map(|side| (side, channel(&core, side).unwrap()));
    cases! {
        channel(&core, Side::Writer).map(drop) => Err(Error::HasDriver),
        channel(&core, Side::Loopback).map(drop) => Err(Error::Unsupported { .. }),
    }
    std::thread::scope(|scope| {
        for (side, driver) in sides {
            let pool = &pool;
            scope.spawn(move || {
                let mut queue = Queue::new(driver, 4).unwrap();
                let (mut done, began) = (0, std::time::Instant::now());
                while done < 100 {
                    assert!(began.elapsed() < Duration::from_secs(60));
                    while !queue.is_full() {
                        queue.give(job(pool, side));
                    }
                    let found = queue.wait::<1>(Duration::from_micros(200)).unwrap();
                    done += u32::from(found.is_some());
                }
                queue.stop().unwrap();
            });
        }
    });
    clean(&board);
    assert_eq!(pool.taken(), 0);
    let mut queue = Queue::new(channel(&core, Side::Writer).unwrap(), 4).unwrap();
    queue.give(receives(&pool, ..));
    core.reset(|| card.reset()).unwrap();
    assert_eq!(queue.fails::<1>(), Error::EndedByReset { device: "litepcie" });
}

/// What happens once.
type Once = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// It came between a descriptor's words, and the card ran a descriptor of address 0.
#[test]
fn reset_does_not_come_between_a_jobs_registers() {
    /// The last word of a descriptor of the reader's table, which puts it there.
    const WE: usize = 0x602C;
    let (board, _, pool) = bench(1, 1, 4096);
    let card =
        SimDevice::<LitepcieModel>::with_model(&board, board.port(), LitepcieModel::default());
    let resets: Once = Arc::default();
    let then = resets.clone();
    let bent = Bent::new(card.window().unwrap(), |_, value| value).writing(move |offset, value| {
        let once = (offset == WE).then(|| then.lock().unwrap().take()).flatten();
        once.into_iter().for_each(|resets| resets());
        Some(value)
    });
    // SAFETY: the model is this card, which no other code drives.
    let core = Arc::new(unsafe { LitepcieCore::open(bent) }.unwrap());
    // SAFETY: the model is built so.
    let driver = unsafe { core.channel(Side::Reader, LitepcieConfig::default()) }.unwrap();
    let mut queue = Queue::new(driver, 4).unwrap();
    let (told, seen) = std::sync::mpsc::channel();
    *resets.lock().unwrap() = Some(Box::new({
        let (core, card) = (core.clone(), card.clone());
        move || {
            let reset = std::thread::spawn(move || core.reset(|| card.reset()));
            told.send(reset.join().unwrap()).unwrap();
        }
    }));
    queue.give(sends(&pool, ..));
    cases! { seen.recv().unwrap() => Err(Error::Contended { .. }) }
}

#[test]
fn bad_input_is_refused_with_numbers() {
    let (board, _, pool) = bench(1, 2, 4096);
    let card =
        SimDevice::<LitepcieModel>::with_model(&board, board.port(), LitepcieModel::default());
    let mut queue = Queue::new(card.window().unwrap().driver(Side::Loopback).unwrap(), 8).unwrap();
    let mut error = |from: std::ops::Range<usize>, to: std::ops::Range<usize>| {
        queue.refuses(copies(&pool, from, to), &[])
    };
    cases! {
        error(256..512, 0..512) => Error::BufferAlign { index: 0, align_bytes: 512, .. },
        error(0..12, 0..512) => Error::Argument { value: 12, multiple_of: 8, .. },
        error(0..1024, 0..512)
            => Error::BufferSize { index: 1, need_bytes: 1024, have_bytes: 512 },
    }
    drop(queue);
    let was = LitepcieConfig::default();
    // SAFETY: the window is the model's.
    let open =
        |config| unsafe { Litepcie::open(card.window().unwrap(), Side::Writer, config) }.map(drop);
    cases! {
        open(LitepcieConfig { reader_at: 2, ..was }) => Err(Error::Argument { .. }),
        open(LitepcieConfig { address_bits: 40, ..was }) => Err(Error::Argument { .. }),
        open(LitepcieConfig { depth: 0, ..was }) => Err(Error::Argument { .. }),
        open(LitepcieConfig { writer_irq: 32, ..was }) => Err(Error::Argument { .. }),
        open(LitepcieConfig { msi_at: 0x1_0000, ..was })
            => Err(Error::RegisterWindow { need_bytes: 0x1_0004, have_bytes: 0x1_0000, .. }),
    }
}

#[test]
fn cards_that_are_gone_or_old_are_said() {
    let port = SimBoard::new(1).port();
    for side in [Side::Reader, Side::Writer, Side::Loopback] {
        let open = |answer| {
            let device = Numbers { port, len_bytes: 0x1_0000, answer };
            // SAFETY: there is no device.
            unsafe { Litepcie::open(device, side, LitepcieConfig::default()) }.map(drop)
        };
        cases! {
            open(|_| u32::MAX) => Err(Error::Fault { what, .. }) if what.contains("gone"),
            open(|_| 0x5A) => Err(Error::Fault { what, .. }) if what.contains("csr.csv"),
            // No idle bit.
            open(|_| 0)
                => Err(Error::WillNotStop { device: "litepcie", status: 0, waited_us: 1_000 }),
        }
    }
}

#[test]
fn wait_wakes_only_for_a_seen_end() {
    let lost = Faults { lost_irq: 1000, ..Faults::NONE };
    for (side, ordered, packets, faults, ends) in [
        (Side::Writer, false, 0, Faults::NONE, false),
        (Side::Writer, false, 100, Faults::NONE, true),
        (Side::Writer, false, 100, lost, true),
        (Side::Writer, true, 0, Faults::NONE, false),
        (Side::Reader, true, 0, Faults::NONE, true),
        (Side::Reader, true, 0, HANG, false),
    ] {
        let (board, _, pool) = faulty(1, faults, 1, 4096);
        let config = LitepcieConfig { ordered, settle_us: 10, ..LitepcieConfig::default() };
        let card = card(&board, config, packets);
        let (window, watch) = (card.window().unwrap(), Watch::default());
        // SAFETY: the model is built so.
        let driver =
            unsafe { Litepcie::open(Watched::new(&window, &watch), side, config) }.unwrap();
        let mut queue = Queue::new(driver, 8).unwrap();
        let case = format!("{side:?} {faults:?}");
        wakes_for_an_end(&mut queue, &watch, job(&pool, side), (ends, 8), &case);
        queue.clear().unwrap();
    }
}

/// An event loop that sleeps by it would find no end until the next interrupt.
#[test]
fn no_event_file_where_ends_follow_interrupts() {
    let board = SimBoard::new(1);
    for (side, is_ordered, file) in [
        (Side::Reader, true, None),
        (Side::Writer, false, None),
        (Side::Loopback, false, None),
        (Side::Writer, true, Some(7)),
        (Side::Loopback, true, Some(7)),
    ] {
        let config = ordered(is_ordered);
        let card = card(&board, config, 0);
        let (window, watch) = (card.window().unwrap(), Watch::default());
        watch.file.set(Some(7));
        // SAFETY: the model is built so.
        let driver = unsafe { Litepcie::open(Watched::new(&window, &watch), side, config) };
        assert_eq!(driver.unwrap().arm_irq(), Ok(file), "{side:?} {is_ordered}");
    }
}

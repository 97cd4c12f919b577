//! Jobs that the core takes, and those that it does not: lengths, rows, lists and reports.

use super::*;

#[test]
fn impossible_jobs_are_refused_early() {
    with(Faults::NONE, |board, pool, _own| {
        let build = AxiDmacBuild { length_bits: 10, length_align: 8, rows: false, ..copier() };
        let mut queue = open(&core(board, build), CONFIG)?;
        let rows = DmacRows { row_bytes: 64, rows: 2, from_stride: 64, to_stride: 64 }.words();
        cases! { queue.driver().check(&[], &[]) => Err(Error::Argument { .. }) }
        let mut refused =
            |from: std::ops::Range<usize>, to: std::ops::Range<usize>, rows: &[u32]| {
                queue.refuses(copies(pool, from, to), rows)
            };
        cases! {
            refused(0..1032, 0..2048, &[]) => Error::OperandTooLong { max_bytes: 1024, .. },
            refused(0..12, 0..16, &[]) => Error::Argument { value: 12, multiple_of: 8, .. },
            refused(32..64, 0..64, &[]) => Error::BufferAlign { index: 0, align_bytes: 64, .. },
            refused(0..64, 0..32, &[])
                => Error::BufferSize { index: 1, need_bytes: 64, have_bytes: 32 },
            refused(0..128, 0..128, &rows) => Error::Unsupported { .. },
        }
        // The source's word is wider.
        let mut queue = open(&core(board, AxiDmacBuild { words: [32, 8], ..copier() }), CONFIG)?;
        assert_eq!(queue.driver().found().length_align, 32);
        cases! {
            queue.refuses(copies(pool, ..200, ..200), &[])
                => Error::Argument { value: 200, multiple_of: 32, .. },
        }
        Ok(())
    });
}

#[test]
fn rows_follow_their_strides_exactly() {
    with(Faults::NONE, |board, pool, _own| {
        let mut queue = open(&core(board, copier()), CONFIG)?;
        // Four rows of 100 bytes: 256 apart, then 128.
        let rows = DmacRows { row_bytes: 100, rows: 4, from_stride: 256, to_stride: 128 };
        cases! {
            queue.refuses(copies(pool, ..867, ..), &rows.words())
                => Error::BufferSize { index: 0, need_bytes: 868, have_bytes: 867 },
        }
        let operands =
            [patterned(pool, 0)?.to_device(..868), filled(pool, 0xFF).from_device(..484)];
        let [_, to] = queue.run(operands, &rows.words(), LIMIT)?.buffers;
        for (index, byte) in to.view::<u8>()?.iter().enumerate() {
            let (row, column) = (index / 128, index % 128);
            let expected = if row < 4 && column < 100 { pattern(256 * row + column) } else { 0xFF };
            assert_eq!(*byte, expected, "byte {index}");
        }
        Ok(())
    });
}

#[test]
fn list_carries_more_than_length_register() {
    with(Faults::NONE, |board, pool, own| {
        let core = core(board, AxiDmacBuild { length_bits: 8, ..copier() });
        let mut queue = Queue::new(core.window()?.listed(CONFIG, own)?, 1)?;
        // 16 pieces of 256 bytes.
        let operands = [filled(pool, 9).to_device(..), pool.take()?.from_device(..)];
        let [_, to] = queue.run(operands, &[], LIMIT)?.buffers;
        assert!(to.view::<u8>()?.iter().all(|byte| *byte == 9));
        Ok(())
    });
    for build in [AxiDmacBuild { lists: false, ..copier() }, receiver(64)] {
        with(Faults::NONE, |board, _pool, own| {
            let refused = core(board, build).window()?.listed(CONFIG, own).unwrap_err();
            cases! { refused.error => Error::Unsupported { .. } }
            Ok(())
        });
    }
}

#[test]
fn reports_tell_lengths_unless_buffer_full() {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, receiver(300));
        let mut queue = open(&core, CONFIG)?;
        for _ in 0..4 {
            queue.give(receives(pool, ..1024));
        }
        // All four reports wait at once.
        core.run_for(20)?;
        for number in 0..4 {
            let done = queue.end::<1>();
            assert_eq!(done.bytes, Some(300));
            assert!(packet::is(number, done.buffers[0].view_at::<u8>(..300)?));
        }
        queue.give(receives(pool, ..300));
        assert_eq!(queue.end::<1>().bytes, None, "the whole buffer");
        drop(queue);
        // A buffer below the longest packet, where that is said.
        let mut queue = open(&core, DmacConfig { packet_bytes: 300, ..CONFIG })?;
        cases! {
            queue.refuses(receives(pool, ..299), &[])
                => Error::BufferSize { index: 0, need_bytes: 300, have_bytes: 299 },
        }
        queue.give(receives(pool, ..300));
        assert_eq!(queue.end::<1>().bytes, None, "the whole buffer");
        Ok(())
    });
}

#[test]
fn a_receiver_that_reports_takes_one_row() {
    let rows =
        |rows, row_bytes| DmacRows { row_bytes, rows, from_stride: 0, to_stride: 1024 }.words();
    with(Faults::NONE, |board, pool, _own| {
        let mut queue = open(&core(board, receiver(300)), CONFIG)?;
        cases! {
            // The report of three rows would be 300 bytes, of which 172 are not where it says.
            queue.refuses(receives(pool, ..), &rows(4, 128))
                => Error::Unsupported { fix: "give one job a row", .. },
            queue.run(receives(pool, ..1024), &rows(1, 1024), LIMIT)?.bytes => Some(300),
        }
        drop(queue);
        // A FIFO marks no ends, and there is nothing to report.
        let fifo = AxiDmacBuild { sides: [Side::Fifo, Side::Memory], ..receiver(256) };
        let mut queue = open(&core(board, fifo), CONFIG)?;
        let done = queue.run(receives(pool, ..), &rows(4, 128), LIMIT)?;
        assert_eq!(done.bytes, None);
        let last_row = done.buffers[0].view_at::<u8>(3 * 1024..3 * 1024 + 4)?;
        assert_ne!(last_row, [0; 4]);
        Ok(())
    });
}

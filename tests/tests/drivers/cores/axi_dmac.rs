//! The AXI DMAC: its versions, refusals, rows, lists, reports, and stops.

mod flaws;
mod stops;

use contigo::{
    CpuBuf, Driver, Error, Pool, Queue, Region, Result,
    drivers::axi_dmac::{DmacConfig, DmacKind, DmacRows},
    sim::{
        Faults, SimBoard, SimConfig, SimDevice,
        axi_dmac::{AxiDmacBuild, AxiDmacModel, Side},
        stream::{SourceConfig, StreamConfig, packet},
    },
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(5);
const CONFIG: DmacConfig = DmacConfig {
    burst_bytes: 128,
    fifo_bursts: 32,
    single_bursts: false,
    packet_bytes: 0,
    stop_us: 1_000,
};

/// A board's memory: 12 buffers of 4 KiB, and 4 KiB for descriptors.
fn with(faults: Faults, act: impl FnOnce(&SimBoard, &Pool, CpuBuf) -> Result<()>) {
    let board = SimBoard::with(SimConfig { seed: 5, faults });
    let region: Region = Region::new(board.memory(16 * 4096).unwrap()).unwrap();
    let own = region.pool(1, 4096).unwrap();
    let pool = region.pool(12, 4096).unwrap();
    act(&board, &pool, own.take().unwrap()).unwrap();
    let counts = board.counts();
    assert_eq!(
        (counts.unowned_accesses, counts.lost_writes, pool.taken(), own.taken()),
        (0, 0, 0, 0),
        "{counts:?}"
    );
}

fn core(board: &SimBoard, build: AxiDmacBuild) -> SimDevice<AxiDmacModel> {
    SimDevice::with_model(board, board.port(), AxiDmacModel::new(build))
}

fn copier() -> AxiDmacBuild {
    AxiDmacBuild { stream: StreamConfig::sink(), ..AxiDmacBuild::default() }
}

fn receiver(packet_bytes: usize) -> AxiDmacBuild {
    let source = SourceConfig { packet_bytes, ..SourceConfig::default() };
    AxiDmacBuild {
        sides: [Side::Stream, Side::Memory],
        stream: StreamConfig::source(source, 4096),
        ..AxiDmacBuild::default()
    }
}

/// The byte at a place.
fn pattern(index: usize) -> u8 {
    u8::try_from(index % 251).unwrap()
}

#[test]
fn the_core_says_how_it_is_built() {
    let found = |build| {
        let board = SimBoard::new(1);
        let core = core(&board, build);
        let driver = core.window().unwrap().driver(CONFIG).unwrap();
        *driver.found()
    };
    let all = found(copier());
    assert_eq!(
        (all.kind, all.words, all.max_bytes, all.length_align),
        (DmacKind::Copy, [8, 8], 1 << 24, 1)
    );
    assert_eq!(
        (all.address_align, all.rows, all.lists, all.address_bits, all.reports),
        (64, true, true, 32, false)
    );
    let less = AxiDmacBuild {
        version: 0x0004_0361,
        sides: [Side::Memory, Side::Fifo],
        words: [8, 16],
        length_bits: 14,
        length_align: 16,
        address_bits: 36,
        rows: false,
        lists: false,
        ..copier()
    };
    let less = found(less);
    assert_eq!(
        (less.kind, less.words, less.max_bytes, less.length_align),
        (DmacKind::Send, [8, 16], 1 << 14, 16)
    );
    // 4.3 does not tell its bursts: the setting does.
    assert_eq!(
        (less.address_align, less.rows, less.lists, less.address_bits),
        (128, false, false, 36)
    );
    // A core without descriptors has no reset of their reader, and is at rest all the same.
    assert!(!found(AxiDmacBuild { lists: false, ..copier() }).lists);
    assert!(found(receiver(64)).reports);
    assert!(!found(AxiDmacBuild { sides: [Side::Fifo, Side::Memory], ..receiver(64) }).reports);
}

#[test]
fn cores_that_cannot_be_driven_are_refused() {
    let refused = |build, coherent: bool| {
        let board = SimBoard::new(1);
        let port = if coherent { board.coherent_port() } else { board.port() };
        let core = SimDevice::with_model(&board, port, AxiDmacModel::new(build));
        core.window().unwrap().driver(CONFIG).map(drop).unwrap_err()
    };
    assert!(matches!(
        refused(AxiDmacBuild { version: 0x0004_0261, ..copier() }, false),
        Error::Setting { value: 0x0004_0261, .. }
    ));
    assert!(matches!(
        refused(AxiDmacBuild { version: 0x0005_0000, ..copier() }, false),
        Error::Setting { .. }
    ));
    assert!(matches!(
        refused(AxiDmacBuild { debug: false, ..copier() }, false),
        Error::Unsupported { .. }
    ));
    let streams = AxiDmacBuild { sides: [Side::Stream, Side::Stream], ..copier() };
    assert!(matches!(refused(streams, false), Error::Unsupported { .. }));
    let incoherent = AxiDmacBuild { coherent: false, ..copier() };
    assert!(matches!(refused(incoherent, true), Error::Setting { name: "CACHE_COHERENT", .. }));
    // 4.3 had no such parameter.
    assert!(matches!(
        refused(AxiDmacBuild { version: 0x0004_0361, ..copier() }, true),
        Error::Setting { .. }
    ));
}

#[test]
fn settings_and_bursts_that_no_core_works_with_are_refused() {
    let opened = |build, config| {
        let board = SimBoard::new(1);
        let core = core(&board, build);
        core.window().unwrap().driver(config).map(drop)
    };
    let old = AxiDmacBuild { version: 0x0004_0361, ..copier() };
    for (build, config, name, value) in [
        (copier(), DmacConfig { fifo_bursts: 12, ..CONFIG }, "fifo_bursts", 12),
        (copier(), DmacConfig { fifo_bursts: 0, ..CONFIG }, "fifo_bursts", 0),
        (copier(), DmacConfig { fifo_bursts: 64, ..CONFIG }, "fifo_bursts", 64),
        (copier(), DmacConfig { burst_bytes: 96, ..CONFIG }, "burst_bytes", 96),
        (copier(), DmacConfig { burst_bytes: 8192, ..CONFIG }, "burst_bytes", 8192),
        // One beat of the wider side.
        (AxiDmacBuild { words: [8, 64], ..copier() }, CONFIG, "MAX_BYTES_PER_BURST", 64),
        (AxiDmacBuild { words: [64, 8], ..copier() }, CONFIG, "MAX_BYTES_PER_BURST", 64),
        (AxiDmacBuild { words: [8, 128], ..old }, CONFIG, "MAX_BYTES_PER_BURST", 128),
    ] {
        let refused = opened(build, config).unwrap_err();
        assert!(
            matches!(refused, Error::Setting { name: found, value: had, .. }
                if (found, had) == (name, value)),
            "{refused}"
        );
    }
    assert_eq!(
        opened(
            AxiDmacBuild { words: [8, 32], ..copier() },
            DmacConfig { fifo_bursts: 16, ..CONFIG }
        ),
        Ok(())
    );
    assert_eq!(opened(AxiDmacBuild { words: [8, 64], ..old }, CONFIG), Ok(()));
}

#[test]
fn few_address_bits_are_found_and_kept() {
    let memory = [Side::Memory; 2];
    let (send, receive) = ([Side::Memory, Side::Stream], [Side::Stream, Side::Memory]);
    for (sides, address_bits) in [
        (memory, 29),
        (send, 29),
        (receive, 29),
        (memory, 16),
        (memory, 31),
        (send, 33),
        (receive, 64),
    ] {
        let board = SimBoard::new(1);
        let core = core(&board, AxiDmacBuild { sides, address_bits, ..copier() });
        let driver = core.window().unwrap().driver(CONFIG).unwrap();
        assert_eq!(
            (driver.found().address_bits, driver.addr_bits()),
            (address_bits, address_bits),
            "{sides:?}"
        );
    }
    // The board's memory begins at 256 MiB, which 28 bits do not reach.
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, AxiDmacBuild { address_bits: 28, ..copier() });
        let mut queue = Queue::new(core.window()?.driver(CONFIG)?, 1)?;
        let refused = queue
            .submit([pool.take()?.to_device(..64), pool.take()?.from_device(..64)], &[])
            .unwrap_err();
        assert!(matches!(refused.error, Error::Unreachable { last: 0x0FFF_FFFF, .. }), "{refused}");
        Ok(())
    });
}

#[test]
fn jobs_that_the_core_cannot_take_are_refused_before() {
    with(Faults::NONE, |board, pool, _own| {
        let build = AxiDmacBuild { length_bits: 10, length_align: 8, rows: false, ..copier() };
        let core = core(board, build);
        let driver = core.window()?.driver(CONFIG)?;
        let rows = DmacRows { row_bytes: 64, rows: 2, from_stride: 64, to_stride: 64 };
        assert!(matches!(driver.check(&[], &[]), Err(Error::Argument { .. })));
        let mut queue = Queue::new(driver, 1)?;
        let mut refused =
            |from: std::ops::Range<usize>, to: std::ops::Range<usize>, rows: &[u32]| {
                let operands =
                    [pool.take().unwrap().to_device(from), pool.take().unwrap().from_device(to)];
                queue.submit(operands, rows).unwrap_err().error
            };
        assert!(matches!(
            refused(0..1032, 0..2048, &[]),
            Error::OperandTooLong { max_bytes: 1024, .. }
        ));
        assert!(matches!(
            refused(0..12, 0..16, &[]),
            Error::Argument { value: 12, multiple_of: 8, .. }
        ));
        assert!(matches!(
            refused(32..64, 0..64, &[]),
            Error::BufferAlign { index: 0, align_bytes: 64, .. }
        ));
        assert!(matches!(
            refused(0..64, 0..32, &[]),
            Error::BufferSize { index: 1, need_bytes: 64, have_bytes: 32 }
        ));
        assert!(matches!(refused(0..128, 0..128, &rows.words()), Error::Unsupported { .. }));
        Ok(())
    });
}

#[test]
fn rows_go_where_their_strides_say_and_nowhere_else() {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, copier());
        let mut queue = Queue::new(core.window()?.driver(CONFIG)?, 1)?;
        let (mut from, mut to) = (pool.take()?, pool.take()?);
        for (index, byte) in from.view_mut::<u8>()?.iter_mut().enumerate() {
            *byte = pattern(index);
        }
        to.view_mut::<u8>()?.fill(0xFF);
        // Four rows of 100 bytes: 256 apart, then 128.
        let rows = DmacRows { row_bytes: 100, rows: 4, from_stride: 256, to_stride: 128 };
        let other = [pool.take()?.to_device(..867), pool.take()?.from_device(..)];
        let short = queue.submit(other, &rows.words()).unwrap_err();
        assert!(
            matches!(short.error, Error::BufferSize { index: 0, need_bytes: 868, have_bytes: 867 }),
            "{short}"
        );
        drop(short);
        let done =
            queue.run([from.to_device(..868), to.from_device(..484)], &rows.words(), LIMIT)?;
        let [_, to] = done.buffers;
        let seen = to.view::<u8>()?;
        for (index, byte) in seen.iter().enumerate() {
            let (row, column) = (index / 128, index % 128);
            let expected = if row < 4 && column < 100 { pattern(256 * row + column) } else { 0xFF };
            assert_eq!(*byte, expected, "byte {index}");
        }
        Ok(())
    });
}

#[test]
fn a_list_carries_what_a_length_register_does_not() {
    with(Faults::NONE, |board, pool, own| {
        let core = core(board, AxiDmacBuild { length_bits: 8, ..copier() });
        let mut queue = Queue::new(core.window()?.listed(CONFIG, own)?, 1)?;
        let (mut from, to) = (pool.take()?, pool.take()?);
        from.view_mut::<u8>()?.fill(9);
        // 16 pieces of 256 bytes.
        let [from, to] = queue.run([from.to_device(..), to.from_device(..)], &[], LIMIT)?.buffers;
        assert!(to.view::<u8>()?.iter().all(|byte| *byte == 9));
        drop((from, to));
        Ok(())
    });
    with(Faults::NONE, |board, _pool, own| {
        let core = core(board, AxiDmacBuild { lists: false, ..copier() });
        let refused = core.window()?.listed(CONFIG, own).map(drop).unwrap_err();
        assert!(matches!(refused.error, Error::Unsupported { .. }), "{}", refused.error);
        Ok(())
    });
    with(Faults::NONE, |board, _pool, own| {
        let core = core(board, receiver(64));
        let refused = core.window()?.listed(CONFIG, own).map(drop).unwrap_err();
        assert!(matches!(refused.error, Error::Unsupported { .. }), "{}", refused.error);
        Ok(())
    });
}

#[test]
fn reports_tell_lengths_and_a_full_buffer_has_none() {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, receiver(300));
        let mut queue = Queue::new(core.window()?.driver(CONFIG)?, 4)?;
        for _ in 0..4 {
            queue.submit([pool.take()?.from_device(..1024)], &[])?;
        }
        // All four reports wait at once.
        core.run_for(20)?;
        for number in 0..4 {
            let done = queue.wait::<1>(LIMIT)?.unwrap();
            assert_eq!(done.bytes, Some(300));
            let [buf] = done.buffers;
            assert!(packet::is(number, buf.view_at::<u8>(..300)?));
        }
        queue.submit([pool.take()?.from_device(..300)], &[])?;
        assert_eq!(queue.wait::<1>(LIMIT)?.unwrap().bytes, None, "the whole buffer");
        Ok(())
    });
}

#[test]
fn a_receiver_that_reports_takes_one_row() {
    let rows = |rows| DmacRows { row_bytes: 128, rows, from_stride: 0, to_stride: 1024 };
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, receiver(300));
        let mut queue = Queue::new(core.window()?.driver(CONFIG)?, 1)?;
        // The report of three rows would be 300 bytes, of which 172 are not where it says.
        let refused = queue.submit([pool.take()?.from_device(..)], &rows(4).words()).unwrap_err();
        assert!(
            matches!(refused.error, Error::Unsupported { fix: "give one job a row", .. }),
            "{refused}"
        );
        drop(refused);
        let one = DmacRows { row_bytes: 1024, ..rows(1) };
        let done = queue.run([pool.take()?.from_device(..1024)], &one.words(), LIMIT)?;
        assert_eq!(done.bytes, Some(300));
        Ok(())
    });
    // A FIFO marks no ends, and there is nothing to report.
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, AxiDmacBuild { sides: [Side::Fifo, Side::Memory], ..receiver(256) });
        let mut queue = Queue::new(core.window()?.driver(CONFIG)?, 1)?;
        let done = queue.run([pool.take()?.from_device(..)], &rows(4).words(), LIMIT)?;
        assert_eq!(done.bytes, None);
        let [buf] = done.buffers;
        assert_ne!(buf.view_at::<u8>(3 * 1024..3 * 1024 + 4)?, [0; 4], "the last row");
        Ok(())
    });
}

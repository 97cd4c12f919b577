//! Syncs: their ranges and directions, two threads, signals, and a module that goes away.

use super::{BLOCK, fake, old, synced};
use contigo::mem::{SyncRange, SyncScope};
use contigo::{Backend, Direction, Error};
use contigo_testkit::direct::{DirectSync as _, sync_list};
use contigo_testkit::fake_u_dma_buf::{Command, Config, FakeUDmaBuf, Kept};
use std::time::Duration;
use std::{fs, thread};

#[test]
fn coherent_memory_is_never_synced() {
    for config in [Config::default(), old()] {
        let fake = FakeUDmaBuf::new(Config { coherent: Some(true), ..config });
        let block = fake.open().unwrap();
        let mapping = block.mapping();
        assert_eq!((mapping.scope, mapping.coherent), (SyncScope::Coherent, Some(true)));
        block.device_sync(0..64, Direction::Bidirectional).unwrap();
        assert_eq!(fake.log(), []);
    }
}

#[test]
fn ranges_round_to_lines_inside_the_block() {
    for config in [Config::default(), old()] {
        let fake = FakeUDmaBuf::new(config);
        let block = fake.open().unwrap();
        block.device_sync(100..101, Direction::ToDevice).unwrap();
        block.cpu_sync(63..65, Direction::FromDevice).unwrap();
        block.device_sync(BLOCK - 1..BLOCK, Direction::Bidirectional).unwrap();
        block.cpu_sync(0..BLOCK, Direction::Bidirectional).unwrap();
        let end = BLOCK as u64;
        let expected = [
            synced(Command::ForDevice, 64..128, Direction::ToDevice),
            synced(Command::ForCpu, 0..128, Direction::FromDevice),
            synced(Command::ForDevice, end - 64..end, Direction::Bidirectional),
            synced(Command::ForCpu, 0..end, Direction::Bidirectional),
        ];
        assert_eq!(fake.log(), expected);
        assert_eq!(fake.kept().owner, 0);
    }
}

/// Slots of a ring in any order are one call, also with other buffers between them in the list; of
/// each direction its own.
#[test]
fn ranges_that_touch_are_one_call() {
    const SLOT: usize = 128;
    let slot = |index: usize| index * SLOT..index * SLOT + 100;
    let expected = |range: std::ops::Range<u64>, direction| {
        [Command::ForDevice, Command::ForCpu].map(|c| synced(c, range.clone(), direction))
    };
    for config in [Config::default(), old()] {
        for order in [[0, 1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1, 0], [4, 0, 7, 2, 1, 5, 3, 6]]
        {
            let fake = FakeUDmaBuf::new(config.clone());
            let block = fake.open().unwrap();
            let list = sync_list(Direction::FromDevice, order.map(slot));
            block.device_sync_all(&list).and(block.cpu_sync_all(&list)).unwrap();
            let all = 0..8 * SLOT as u64;
            assert_eq!(fake.log(), expected(all, Direction::FromDevice), "{order:?}");
        }
        // A gap of a line, and the same bytes in another direction, stay apart; empty ones are out.
        let fake = FakeUDmaBuf::new(config);
        let block = fake.open().unwrap();
        let of = |range, direction| SyncRange { range, direction };
        let (read, written) = (Direction::ToDevice, Direction::FromDevice);
        let list = [
            of(0..1, written),
            of(4096..4100, read),
            of(128..192, written),
            of(9..9, written),
            of(4160..4161, read),
            of(64..65, read),
        ];
        block.device_sync_all(&list).unwrap();
        let mut log = fake.log();
        log.sort_by_key(|one| one.range.start);
        let runs = [(0..64, written), (64..128, read), (128..192, written), (4096..4224, read)];
        assert_eq!(
            log,
            runs.map(|(range, direction)| synced(Command::ForDevice, range, direction))
        );
        block.device_sync_all(&[]).and(block.device_sync_all(&list[3..4])).unwrap();
        assert_eq!(fake.log().len(), 4, "nothing of nothing");
    }
}

#[test]
fn a_bad_range_refuses_the_list() {
    for config in [Config::default(), old(), Config { coherent: Some(true), ..Config::default() }] {
        let fake = FakeUDmaBuf::new(config);
        let block = fake.open().unwrap();
        let list = sync_list(Direction::FromDevice, [0..64, 4096..BLOCK + 1, 256..320]);
        let refused = Error::OutOfRange { start: 4096, end: BLOCK + 1, len_bytes: BLOCK };
        assert_eq!(block.device_sync_all(&list), Err(refused));
        assert_eq!(block.cpu_sync_all(&list), Err(refused));
        assert_eq!(fake.log(), []);
    }
}

#[test]
fn a_sync_leaves_the_sync_mode_alone() {
    let fake = fake();
    fake.open().unwrap().device_sync(0..64, Direction::FromDevice).unwrap();
    assert_eq!(fake.kept(), Kept { offset: 0, size: 64, direction: 2, owner: 1, mode: 1 });
}

#[test]
fn an_empty_range_does_nothing_at_all() {
    for config in [Config::default(), old()] {
        let fake = FakeUDmaBuf::new(config);
        let block = fake.open().unwrap();
        block.device_sync(256..512, Direction::ToDevice).unwrap();
        let (log, kept) = (fake.log(), fake.kept());
        // The module would run the command on the 256 bytes above, or change the owner.
        block.cpu_sync(0..0, Direction::FromDevice).unwrap();
        block.cpu_sync(BLOCK..BLOCK, Direction::FromDevice).unwrap();
        assert_eq!((fake.log(), fake.kept()), (log, kept));
    }
}

#[test]
#[allow(clippy::reversed_empty_ranges, reason = "the case")]
fn range_past_block_never_reaches_module() {
    let fake = fake();
    let block = fake.open().unwrap();
    for range in [0..BLOCK + 1, BLOCK + 64..BLOCK + 64, 128..64, 0..usize::MAX] {
        let refused = Error::OutOfRange { start: range.start, end: range.end, len_bytes: BLOCK };
        assert_eq!(block.device_sync(range, Direction::ToDevice), Err(refused));
    }
    assert_eq!(fake.log(), []);
    assert_eq!(fake.kept().offset, 0);
}

#[test]
fn syncs_of_two_threads_never_overlap() {
    for config in [Config::default(), old()] {
        let fake = FakeUDmaBuf::new(Config { rest: Duration::from_micros(300), ..config });
        let block = fake.open().unwrap();
        thread::scope(|scope| {
            for index in 0..4 {
                let block = &block;
                scope.spawn(move || {
                    let start = index * 4096;
                    let range = start..start + 64 * (index + 1);
                    for _ in 0..8 {
                        block.device_sync(range.clone(), Direction::ToDevice).unwrap();
                    }
                });
            }
        });
        assert_eq!(fake.overlaps(), 0);
        let log = fake.log();
        for index in 0..4 {
            let range = index * 4096..index * 4096 + 64 * (index + 1);
            assert_eq!(log.iter().filter(|one| one.range == range).count(), 8, "{range:?}");
        }
    }
}

#[test]
fn kept_lock_is_an_error() {
    let fake = fake();
    let block = fake.open().unwrap();
    fake.hold(true);
    let second = thread::scope(|scope| {
        scope.spawn(|| block.device_sync(0..64, Direction::ToDevice).unwrap());
        while fake.kept().size == 0 {
            thread::yield_now();
        }
        let second = block.cpu_sync(64..128, Direction::FromDevice);
        fake.hold(false);
        second
    });
    assert!(matches!(second, Err(Error::Contended { .. })), "{second:?}");
    assert_eq!(fake.log(), [synced(Command::ForDevice, 0..64, Direction::ToDevice)]);
}

#[test]
fn interrupted_write_is_retried_with_limit() {
    let fake = FakeUDmaBuf::new(Config { interrupts: 1, ..old() });
    fake.open().unwrap().device_sync(0..64, Direction::ToDevice).unwrap();
    assert_eq!(fake.log(), [synced(Command::ForDevice, 0..64, Direction::ToDevice)]);
    let fake = FakeUDmaBuf::new(Config { interrupts: u32::MAX, ..old() });
    let storm = Error::AttributeUnreadable { name: "sync_offset", errno: libc::EINTR };
    assert_eq!(fake.open().unwrap().device_sync(0..64, Direction::ToDevice), Err(storm));
}

#[test]
fn a_module_that_vanishes_is_an_error() {
    let by_ioctl = Error::Os { call: "ioctl(U_DMA_BUF_IOCTL_SET_SYNC)", errno: libc::ENODEV };
    let by_file = Error::AttributeUnreadable { name: "sync_offset", errno: libc::ENODEV };
    for (config, gone) in [(Config::default(), by_ioctl), (old(), by_file)] {
        let block = FakeUDmaBuf::new(Config { vanish_after: 1, ..config }).open().unwrap();
        block.device_sync(0..64, Direction::ToDevice).unwrap();
        assert_eq!(block.cpu_sync(0..64, Direction::ToDevice), Err(gone));
    }
}

#[test]
fn a_sync_opens_nothing() {
    let fake = FakeUDmaBuf::new(old());
    let block = fake.open().unwrap();
    fs::remove_dir_all(fake.class_dir()).unwrap();
    fs::remove_file(fake.device_file()).unwrap();
    block.device_sync(0..64, Direction::ToDevice).unwrap();
    assert_eq!(fake.log(), [synced(Command::ForDevice, 0..64, Direction::ToDevice)]);
}

//! `UDmaBuf` against a fake module: every trap of the module's interface, and every error, once.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "the counting allocator, and the mapping seen as bytes")]

use contigo::linux::memory::u_dma_buf::seam::{DevInfo, RealIoctl, Roots, SyncArgs, UDmaBufIoctl};
use contigo::{Align, Backend, BaseAddr, Bus, DevAddr, Direction, Error, PhysAddr, Region, SyncScope, UDmaBuf};
use contigo_testkit::direct::DirectSync as _;
use contigo_testkit::fake_u_dma_buf::{Command, Config, FakeIoctl, FakeUDmaBuf, Kept, Synced};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::{cell::Cell, fs, thread, time::Duration};

const BLOCK: usize = 64 << 10;

/// Counts what this thread allocates.
struct Counting;

thread_local!(static ALLOCATIONS: Cell<usize> = const { Cell::new(0) });

// SAFETY: forwards to the system's allocator; the count changes nothing of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn fake() -> FakeUDmaBuf {
    FakeUDmaBuf::new(Config::default())
}

/// A module before 4.7.0: no ioctls.
fn old() -> Config {
    Config { ioctls: false, class: "udmabuf", ..Config::default() }
}

fn synced(command: Command, range: std::ops::Range<u64>, direction: Direction) -> Synced {
    Synced { command, range, direction }
}

fn cpu_write<B: Backend>(block: &B, offset: usize, bytes: &[u8]) {
    let mapping = block.mapping();
    assert!(offset + bytes.len() <= mapping.len_bytes);
    // SAFETY: inside the mapping, which this test's thread alone uses.
    unsafe { mapping.cpu.as_ptr().add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}

fn cpu_read<const N: usize, B: Backend>(block: &B, offset: usize) -> [u8; N] {
    let mapping = block.mapping();
    assert!(offset + N <= mapping.len_bytes);
    // SAFETY: as in `cpu_write`.
    unsafe { mapping.cpu.as_ptr().add(offset).cast::<[u8; N]>().read_unaligned() }
}

#[test]
fn says_what_the_module_says() {
    let fake = fake();
    let block = fake.open().unwrap();
    let mapping = block.mapping();
    assert_eq!((mapping.len_bytes, mapping.base, mapping.bus), (BLOCK, BaseAddr::Phys(PhysAddr(0x3820_0000)), Bus::Soc));
    assert_eq!((mapping.scope, mapping.coherent), (SyncScope::Range { granule_bytes: 64 }, Some(false)));
    assert_eq!((block.dma_mask_bits(), block.name()), (Some(32), "u-dma-buf"));
    cpu_write(&block, BLOCK - 3, b"end");
    assert_eq!(fs::read(fake.device_file()).unwrap()[BLOCK - 3..], *b"end");
}

#[test]
fn the_granule_is_the_machines() {
    let line = Align::DLPACK;
    let fake = FakeUDmaBuf::new(Config { line, ..Config::default() });
    let block = fake.open().unwrap();
    assert_eq!(block.mapping().scope, SyncScope::Range { granule_bytes: 256 });
    block.cpu_sync(300..301, Direction::FromDevice).unwrap();
    assert_eq!(fake.log(), [synced(Command::ForCpu, 256..512, Direction::FromDevice)]);

    let size_bytes = 64 * 1023;
    let odd = FakeUDmaBuf::new(Config { line, size_bytes, ..Config::default() });
    assert_eq!(odd.open().unwrap_err(), Error::BlockSize { len_bytes: 64 * 1023, need_bytes: 256, line_bytes: 256 });
    let addr = 0x3820_0040;
    let askew = FakeUDmaBuf::new(Config { line, phys_addr: addr, ..Config::default() });
    let refused = Region::new(askew.open().unwrap()).unwrap_err();
    assert_eq!(refused.error, Error::Misaligned { addr, align_bytes: 256 });
}

#[test]
fn an_old_module_says_the_same_through_sysfs() {
    let fake = FakeUDmaBuf::new(old());
    fake.set("phys_addr", "0x38200000\n");
    let mapping = fake.open().unwrap().mapping();
    assert_eq!((mapping.len_bytes, mapping.base), (BLOCK, BaseAddr::Phys(PhysAddr(0x3820_0000))));
    assert_eq!((mapping.scope, mapping.coherent), (SyncScope::Range { granule_bytes: 64 }, Some(false)));
}

#[test]
fn einval_too_means_that_there_is_no_such_ioctl() {
    let fake = FakeUDmaBuf::new(Config { dev_info: Some(Err(libc::EINVAL)), ..Config::default() });
    assert_eq!(fake.open().unwrap().dma_mask_bits(), None);
    let fake = FakeUDmaBuf::new(Config { dev_info: Some(Err(libc::EIO)), ..Config::default() });
    assert_eq!(fake.open().unwrap_err(), Error::Os { call: "ioctl(U_DMA_BUF_IOCTL_GET_DEV_INFO)", errno: libc::EIO });
}

#[test]
fn optional_attributes_are_never_required() {
    let fake = fake();
    for name in ["size", "phys_addr", "sync_mode", "dma_coherent", "quirk_mmap_mode", "sync_for_cpu", "sync_for_device"] {
        fake.remove(name);
    }
    // Nobody says that it is coherent, or that it is not.
    assert_eq!(fake.open().unwrap().mapping().coherent, None);

    let fake = FakeUDmaBuf::new(Config { coherent: None, ..old() });
    fake.remove("sync_mode");
    fake.remove("quirk_mmap_mode");
    let mapping = fake.open().unwrap().mapping();
    assert_eq!((mapping.coherent, mapping.scope), (None, SyncScope::Range { granule_bytes: 64 }));
}

#[test]
fn coherent_memory_is_never_synced() {
    for config in [Config { coherent: Some(true), ..Config::default() }, Config { coherent: Some(true), ..old() }] {
        let fake = FakeUDmaBuf::new(config);
        let block = fake.open().unwrap();
        assert_eq!((block.mapping().scope, block.mapping().coherent), (SyncScope::Coherent, Some(true)));
        block.device_sync(0..64, Direction::Bidirectional).unwrap();
        assert_eq!(fake.log(), []);
    }
}

#[test]
fn ranges_are_rounded_out_to_whole_lines_and_stay_inside() {
    for config in [Config::default(), old()] {
        let fake = FakeUDmaBuf::new(config);
        let block = fake.open().unwrap();
        block.device_sync(100..101, Direction::ToDevice).unwrap();
        block.cpu_sync(63..65, Direction::FromDevice).unwrap();
        block.device_sync(BLOCK - 1..BLOCK, Direction::Bidirectional).unwrap();
        block.cpu_sync(0..BLOCK, Direction::Bidirectional).unwrap();
        let end = BLOCK as u64;
        assert_eq!(
            fake.log(),
            [
                synced(Command::ForDevice, 64..128, Direction::ToDevice),
                synced(Command::ForCpu, 0..128, Direction::FromDevice),
                synced(Command::ForDevice, end - 64..end, Direction::Bidirectional),
                synced(Command::ForCpu, 0..end, Direction::Bidirectional),
            ]
        );
        assert_eq!(fake.kept().owner, 0);
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
fn a_range_past_the_block_never_reaches_the_module() {
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
fn data_moves_only_with_a_sync_in_the_right_direction() {
    for config in [Config::default(), old()] {
        let fake = FakeUDmaBuf::new(config);
        let block = fake.open().unwrap();
        let mut seen = [0; 4];
        cpu_write(&block, 70, b"ping");
        fake.device_read(70, &mut seen);
        assert_eq!(seen, [0xDD; 4], "without a sync the device reads what was there before");
        block.device_sync(70..74, Direction::ToDevice).unwrap();
        fake.device_read(70, &mut seen);
        assert_eq!(&seen, b"ping");

        block.device_sync(128..192, Direction::FromDevice).unwrap();
        fake.device_write(130, b"pong");
        assert_ne!(&cpu_read::<4, _>(&block, 130), b"pong", "without a sync the CPU reads its own line");
        block.cpu_sync(128..192, Direction::FromDevice).unwrap();
        assert_eq!(&cpu_read::<4, _>(&block, 130), b"pong");
    }
}

#[test]
fn a_fresh_block_holds_dirty_lines_until_they_are_synced() {
    let fake = fake();
    let block = fake.open().unwrap();
    fake.device_write(0, b"device");
    fake.evict(0..64);
    block.cpu_sync(0..64, Direction::FromDevice).unwrap();
    assert_eq!(cpu_read(&block, 0), [0; 6], "the eviction of a dirty line came after the device's write");
    block.device_sync(0..BLOCK, Direction::Bidirectional).unwrap();
    fake.device_write(0, b"device");
    fake.evict(0..64);
    block.cpu_sync(0..64, Direction::FromDevice).unwrap();
    assert_eq!(&cpu_read::<6, _>(&block, 0), b"device");
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
                    for _ in 0..8 {
                        block.device_sync(start..start + 64 * (index + 1), Direction::ToDevice).unwrap();
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

/// A module that does as the fake does, after `before` said how a call ends that does not get that far.
struct Interposed<F> {
    module: FakeIoctl,
    before: F,
}

impl<F: Fn() -> Result<(), i32> + Send + Sync> UDmaBufIoctl for Interposed<F> {
    fn granule(&self) -> Align {
        self.module.granule()
    }
    fn get_dev_info(&self, device: i32) -> Result<DevInfo, i32> {
        self.module.get_dev_info(device)
    }
    fn get_sync(&self, device: i32) -> Result<SyncArgs, i32> {
        self.module.get_sync(device)
    }
    fn set_sync(&self, device: i32, args: &SyncArgs) -> Result<(), i32> {
        (self.before)()?;
        self.module.set_sync(device, args)
    }
    fn export(&self, device: i32, size: u64) -> Result<i32, i32> {
        self.module.export(device, size)
    }
    fn write_attribute(&self, file: i32, name: &'static str, text: &[u8]) -> Result<usize, i32> {
        (self.before)()?;
        self.module.write_attribute(file, name, text)
    }
}

#[test]
fn a_lock_that_is_not_given_back_is_an_error_and_not_a_hang() {
    let fake = fake();
    static ENTERED: AtomicU32 = AtomicU32::new(0);
    static HOLD: Mutex<()> = Mutex::new(());
    let before = || {
        // Only the first call is held: without a lock the second would get through.
        if ENTERED.fetch_add(1, SeqCst) == 0 {
            drop(HOLD.lock().unwrap());
        }
        Ok(())
    };
    let block = fake.open_with(Arc::new(Interposed { module: fake.module().clone(), before }), false).unwrap();
    thread::scope(|scope| {
        let held = HOLD.lock().unwrap();
        scope.spawn(|| block.device_sync(0..64, Direction::ToDevice).unwrap());
        while ENTERED.load(SeqCst) == 0 {
            thread::yield_now();
        }
        let second = block.cpu_sync(64..128, Direction::FromDevice);
        drop(held);
        assert!(matches!(second, Err(Error::Contended { .. })), "{second:?}");
    });
    assert_eq!(fake.log(), [synced(Command::ForDevice, 0..64, Direction::ToDevice)]);
}

#[test]
fn a_signal_during_a_write_is_tried_again_but_not_for_ever() {
    let fake = FakeUDmaBuf::new(old());
    let calls = AtomicU32::new(0);
    let every_other = move || if calls.fetch_add(1, SeqCst) & 1 == 0 { Err(libc::EINTR) } else { Ok(()) };
    let block = fake.open_with(Arc::new(Interposed { module: fake.module().clone(), before: every_other }), false).unwrap();
    block.device_sync(0..64, Direction::ToDevice).unwrap();
    assert_eq!(fake.log(), [synced(Command::ForDevice, 0..64, Direction::ToDevice)]);
    drop(block);
    let block = fake.open_with(Arc::new(Interposed { module: fake.module().clone(), before: || Err(libc::EINTR) }), false).unwrap();
    let storm = Error::AttributeUnreadable { name: "sync_offset", errno: libc::EINTR };
    assert_eq!(block.device_sync(0..64, Direction::ToDevice), Err(storm));
}

#[test]
fn a_block_is_opened_once_at_a_time() {
    let fake = fake();
    let first = fake.open().unwrap();
    assert_eq!(fake.open().unwrap_err(), Error::InUse { errno: libc::EWOULDBLOCK });
    drop(first);
    fake.open().unwrap();
}

/// The module has no device of this name.
const NOT_THERE: Error = Error::Os { call: "open(/sys/class/u-dma-buf/<name>)", errno: libc::ENOENT };

#[test]
fn a_name_is_one_file_name() {
    let long = "u".repeat(64);
    for name in ["", ".", "..", "a/b", "/dev/mem", "a\0b", &long] {
        assert_eq!(UDmaBuf::open(name).unwrap_err(), Error::BadName { len_bytes: name.len(), max_bytes: 63 }, "{name:?}");
    }
    let longest = "u".repeat(63);
    assert_eq!(UDmaBuf::open(&longest).unwrap_err(), NOT_THERE);
    FakeUDmaBuf::new(Config { name: longest, ..Config::default() }).open().unwrap();
}

#[test]
fn a_path_that_does_not_fit_is_refused() {
    let long = "d".repeat(300);
    for root in [&*long, "a\0b"] {
        let roots = Roots { dev: "/dev", class: root };
        // SAFETY: there is no such device, or the file is this test\'s own.
        let error = unsafe { UDmaBuf::open_with("udmabuf0", roots, Arc::new(RealIoctl), false) }.unwrap_err();
        assert_eq!(error, Error::BadName { len_bytes: root.len() + "/u-dma-buf/udmabuf0".len(), max_bytes: 255 });
    }
}

/// Opening `/dev/watchdog` starts it, and a UIO device's counts as its user.
#[test]
fn a_device_file_alone_is_not_a_u_dma_buf_and_is_not_opened() {
    let fake = FakeUDmaBuf::new(Config::default());
    fs::remove_dir_all(fake.class_dir()).unwrap();
    // Who opens it finds the lock: `InUse`.
    let locked = fs::File::open(fake.device_file()).unwrap();
    locked.lock().unwrap();
    assert_eq!(fake.open().unwrap_err(), NOT_THERE);
}

#[test]
fn a_missing_attribute_an_empty_an_unreadable_and_a_nonsensical_one_are_four_errors() {
    for name in ["size", "phys_addr"] {
        let fake = FakeUDmaBuf::new(old());
        fake.remove(name);
        assert_eq!(fake.open().unwrap_err(), Error::AttributeMissing { name });
    }
    for name in ["size", "phys_addr", "dma_coherent", "sync_mode"] {
        let fake = FakeUDmaBuf::new(old());
        for text in ["", "\n", "  \n"] {
            fake.set(name, text);
            assert_eq!(fake.open().unwrap_err(), Error::AttributeEmpty { name });
        }
        let padded = "0".repeat(64);
        for (text, value) in [("12 34\n", 12), ("-1\n", 0), ("0x\n", 0), ("0x1g\n", 1), ("yes\n", 0), ("1\0", 1), (&*padded, 0)] {
            fake.set(name, text);
            assert_eq!(fake.open().unwrap_err(), Error::AttributeNonsense { name, value }, "{text:?}");
        }
        fake.set(name, "0x10000000000000000\n");
        assert_eq!(fake.open().unwrap_err(), Error::AttributeNonsense { name, value: 1 << 60 });
        fake.set(name, "18446744073709551616\n");
        assert_eq!(fake.open().unwrap_err(), Error::AttributeNonsense { name, value: 1_844_674_407_370_955_161 });
        fake.make_unreadable(name);
        assert_eq!(fake.open().unwrap_err(), Error::AttributeUnreadable { name, errno: libc::EISDIR });
    }
}

#[test]
fn an_old_module_without_a_way_to_sync_is_refused_when_it_is_opened() {
    for name in ["sync_offset", "sync_size", "sync_direction", "sync_for_cpu", "sync_for_device"] {
        let fake = FakeUDmaBuf::new(old());
        fake.make_unreadable(name);
        assert_eq!(fake.open().unwrap_err(), Error::AttributeUnreadable { name, errno: libc::EISDIR });
        let fake = FakeUDmaBuf::new(old());
        fake.remove(name);
        assert_eq!(fake.open().unwrap_err(), Error::AttributeMissing { name });
    }
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let nonsense = |name, value| Error::AttributeNonsense { name, value };
    let open = |config: Config| FakeUDmaBuf::new(config).open().unwrap_err();
    for base in [Config::default(), old()] {
        assert_eq!(open(Config { phys_addr: 0, ..base.clone() }), nonsense("phys_addr", 0));
        let last_page = u64::MAX - 4095;
        assert_eq!(open(Config { phys_addr: last_page, ..base.clone() }), nonsense("phys_addr", last_page));
        for (size_bytes, len_bytes) in [(0, 0), (63, 63), (4096 + 32, 4128)] {
            let refused = Error::BlockSize { len_bytes, need_bytes: 64, line_bytes: 64 };
            assert_eq!(open(Config { size_bytes, ..base.clone() }), refused);
        }
        assert_eq!(open(Config { sync_mode: 8, ..base }), nonsense("sync_mode", 8));
    }
    let fake = FakeUDmaBuf::new(old());
    fake.set("dma_coherent", "2\n");
    assert_eq!(fake.open().unwrap_err(), nonsense("dma_coherent", 2));
}

#[test]
fn the_last_block_of_the_address_space_is_possible() {
    let phys_addr = u64::MAX - BLOCK as u64 + 1;
    let fake = FakeUDmaBuf::new(Config { phys_addr, ..Config::default() });
    assert_eq!(fake.open().unwrap().mapping().base, BaseAddr::Phys(PhysAddr(phys_addr)));
}

#[test]
fn ioctls_and_attributes_must_agree() {
    let truth = DevInfo { flags: 32, size: BLOCK as u64, addr: 0x3820_0000 };
    for (told, name, value) in [
        (DevInfo { size: truth.size * 2, ..truth }, "size", truth.size),
        (DevInfo { addr: 0x1000_0000, ..truth }, "phys_addr", truth.addr),
        (DevInfo { flags: 32 | 1 << 9, ..truth }, "dma_coherent", 0),
    ] {
        let fake = FakeUDmaBuf::new(Config { dev_info: Some(Ok(told)), ..Config::default() });
        assert_eq!(fake.open().unwrap_err(), Error::AttributeNonsense { name, value });
        // With nobody to disagree with, the ioctl is believed.
        fake.remove(name);
        fake.open().unwrap();
    }
}

#[test]
fn a_mode_that_maps_uncached_without_o_sync_is_refused() {
    for base in [Config::default(), old()] {
        for sync_mode in 0..=4 {
            FakeUDmaBuf::new(Config { sync_mode, ..base.clone() }).open().unwrap();
        }
        for sync_mode in 5..=7 {
            let error = FakeUDmaBuf::new(Config { sync_mode, ..base.clone() }).open().unwrap_err();
            assert!(matches!(error, Error::Unsuitable { name: "sync_mode", value, .. } if value == sync_mode), "{error}");
        }
    }
}

#[test]
fn a_translated_node_gives_a_bus_address_and_refuses_the_quirk() {
    let open = |quirk_mmap_mode, coherent| {
        let fake = FakeUDmaBuf::new(Config { quirk_mmap_mode, coherent, ..Config::default() });
        fs::create_dir_all(fake.class_dir().join("device/iommu_group")).unwrap();
        fake.open_translated().map(|block| block.mapping().base)
    };
    for (mode, coherent) in [(0, false), (1, false), (3, true)] {
        assert_eq!(open(mode, Some(coherent)), Ok(BaseAddr::Dev(DevAddr(0x3820_0000))));
    }
    for (mode, coherent) in [(2, true), (3, false), (4, true)] {
        let error = open(mode, Some(coherent)).unwrap_err();
        assert!(matches!(error, Error::Unsuitable { name: "quirk_mmap_mode", value, .. } if value == u64::from(mode)), "{error}");
    }
    assert_eq!(open(5, Some(false)), Err(Error::AttributeNonsense { name: "quirk_mmap_mode", value: 5 }));
    // A module that cannot say what it does had the quirk on ARM.
    let fake = FakeUDmaBuf::new(Config { quirk_mmap_mode: 0, ..old() });
    fs::create_dir_all(fake.class_dir().join("device/iommu_group")).unwrap();
    assert_eq!(fake.open_translated().unwrap_err(), Error::AttributeMissing { name: "quirk_mmap_mode" });
}

#[test]
fn an_address_that_something_translates_is_not_taken_for_a_physical_one() {
    for (kind, bytes, refused) in
        [("iommu_group", &b""[..], true), ("of_node/iommus", b"1234", true), ("dma-ranges", b"1234", true), ("dma-ranges", b"", false)]
    {
        let fake = FakeUDmaBuf::new(Config { quirk_mmap_mode: 1, ..Config::default() });
        let device = fake.class_dir().join("device");
        std::fs::create_dir_all(device.join("of_node")).unwrap();
        std::fs::write(device.join(kind), bytes).unwrap();
        match fake.open() {
            Ok(block) => assert!(!refused && block.mapping().base == BaseAddr::Phys(PhysAddr(0x3820_0000)), "{kind}"),
            Err(error) => assert!(refused && matches!(error, Error::Unsuitable { .. }), "{kind}: {error}"),
        }
        match fake.open_translated() {
            Ok(block) => assert!(refused && block.mapping().base == BaseAddr::Dev(DevAddr(0x3820_0000)), "{kind}"),
            Err(error) => assert!(!refused && matches!(error, Error::Unsuitable { .. }), "{kind}: {error}"),
        }
    }
}

/// As `of_dma_get_range` looks for it: an empty property is one-to-one, and so is the absent one of
/// the next bus; the first absent one above ends the search.
#[test]
fn a_translation_is_looked_for_as_the_kernel_does() {
    const SOME: Option<&[u8]> = Some(b"1234");
    const EMPTY: Option<&[u8]> = Some(b"");
    for (buses, refused) in [
        ([EMPTY, SOME, None], true),
        ([EMPTY, EMPTY, SOME], true),
        ([None, SOME, None], true),
        ([EMPTY, None, SOME], false),
        ([None, None, SOME], false),
        ([EMPTY; 3], false),
    ] {
        let fake = FakeUDmaBuf::new(Config { quirk_mmap_mode: 1, ..Config::default() });
        let mut bus = fake.class_dir().join("tree/top/middle/near");
        std::fs::create_dir_all(bus.join("node")).unwrap();
        std::fs::create_dir(fake.class_dir().join("device")).unwrap();
        std::os::unix::fs::symlink(bus.join("node"), fake.class_dir().join("device/of_node")).unwrap();
        for ranges in buses {
            if let Some(bytes) = ranges {
                std::fs::write(bus.join("dma-ranges"), bytes).unwrap();
            }
            bus.pop();
        }
        assert_eq!(fake.open().is_err(), refused, "{buses:?}");
        assert_eq!(fake.open_translated().is_ok(), refused, "{buses:?}");
    }
}

#[test]
fn a_module_that_vanishes_is_an_error() {
    let fake = FakeUDmaBuf::new(Config { vanish_after: 1, ..Config::default() });
    let block = fake.open().unwrap();
    block.device_sync(0..64, Direction::ToDevice).unwrap();
    let gone = Error::Os { call: "ioctl(U_DMA_BUF_IOCTL_SET_SYNC)", errno: libc::ENODEV };
    assert_eq!(block.cpu_sync(0..64, Direction::ToDevice), Err(gone));

    let fake = FakeUDmaBuf::new(Config { vanish_after: 1, ..old() });
    let block = fake.open().unwrap();
    block.device_sync(0..64, Direction::ToDevice).unwrap();
    let gone = Error::AttributeUnreadable { name: "sync_offset", errno: libc::ENODEV };
    assert_eq!(block.cpu_sync(0..64, Direction::ToDevice), Err(gone));
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

/// The real calls, also under qemu-user, which answers ENOSYS to an ioctl that it does not know.
struct Real;

impl UDmaBufIoctl for Real {
    fn get_dev_info(&self, device: i32) -> Result<DevInfo, i32> {
        RealIoctl.get_dev_info(device).map_err(|errno| if errno == libc::ENOSYS { libc::ENOTTY } else { errno })
    }
    fn get_sync(&self, device: i32) -> Result<SyncArgs, i32> {
        RealIoctl.get_sync(device).map_err(|errno| if errno == libc::ENOSYS { libc::ENOTTY } else { errno })
    }
    fn set_sync(&self, device: i32, args: &SyncArgs) -> Result<(), i32> {
        RealIoctl.set_sync(device, args)
    }
    fn export(&self, device: i32, size: u64) -> Result<i32, i32> {
        RealIoctl.export(device, size)
    }
    fn write_attribute(&self, file: i32, name: &'static str, text: &[u8]) -> Result<usize, i32> {
        RealIoctl.write_attribute(file, name, text)
    }
}

#[test]
fn the_real_calls_write_the_attributes_and_allocate_nothing() {
    // A regular file answers ENOTTY to the real ioctls, as an old module does; the attributes are regular files too.
    let fake = FakeUDmaBuf::new(old());
    let root = fake.class_dir().ancestors().nth(3).unwrap().to_str().unwrap().to_owned();
    let (dev, class) = (format!("{root}/dev"), format!("{root}/class"));
    let kernel = Arc::new(Real);
    let before = ALLOCATIONS.get();
    let roots = Roots { dev: &dev, class: &class };
    // SAFETY: there is no such device, or the file is this test\'s own.
    let block = unsafe { UDmaBuf::open_with("udmabuf0", roots, kernel.clone(), false) }.unwrap();
    block.device_sync(4096..8192, Direction::FromDevice).unwrap();
    block.cpu_sync(4096..8192, Direction::FromDevice).unwrap();
    // SAFETY: there is no such device, or the file is this test\'s own.
    let refused = unsafe { UDmaBuf::open_with("udmabuf0", roots, kernel.clone(), false) }.map(drop);
    drop(block);
    assert_eq!(ALLOCATIONS.get(), before);
    assert_eq!(refused, Err(Error::InUse { errno: libc::EWOULDBLOCK }));
    for (name, text) in [("sync_offset", "4096"), ("sync_size", "4096"), ("sync_direction", "2\n"), ("sync_for_cpu", "1\n")] {
        assert_eq!(fs::read_to_string(fake.class_dir().join(name)).unwrap(), text, "{name}");
    }
    assert_eq!(fs::read_to_string(fake.class_dir().join("sync_for_device")).unwrap(), "1\n");
}

#[test]
fn the_fake_has_the_modules_traps() {
    let fake = fake();
    let module = fake.module();
    let log = || fake.log().pop().unwrap();
    // The size is cut to 16 bytes: of 64 + 8 bytes, 8 stay unsynced.
    module.sync_word(Command::ForDevice, 4096 << 32 | 72 & 0xFFFF_FFF0 | 1 << 2 | 1).unwrap();
    assert_eq!(log(), synced(Command::ForDevice, 4096..4096 + 64, Direction::ToDevice));
    // A packed word keeps nothing; a word of just 1 uses what is kept.
    assert_eq!(fake.kept(), Kept { owner: 1, mode: 1, ..Kept::default() });
    module.sync_word(Command::ForCpu, 1).unwrap();
    assert_eq!(log(), synced(Command::ForCpu, 0..0, Direction::Bidirectional));
    // A direction and less than 16 bytes sync nothing, succeed, and change the owner.
    module.sync_word(Command::ForDevice, 15 | 1 << 2 | 1).unwrap();
    assert_eq!((log().range, fake.kept().owner), (0..0, 1));
    // Past the end; a packed direction of 3 is both.
    assert_eq!(module.sync_word(Command::ForCpu, (BLOCK as u64) << 32 | 16 | 1), Err(libc::EINVAL));
    module.sync_word(Command::ForCpu, 16 | 3 << 2 | 1).unwrap();
    assert_eq!(log(), synced(Command::ForCpu, 0..16, Direction::Bidirectional));
    // A word of 0 is no command.
    let count = fake.log().len();
    module.sync_word(Command::ForDevice, 0).unwrap();
    assert_eq!((fake.log().len(), fake.kept().owner), (count, 0));
}

#[test]
fn the_fake_keeps_arguments_and_refuses_a_direction_of_3() {
    let fake = fake();
    let module = fake.module();
    let set = |flags, size, offset| module.set_sync(-1, &SyncArgs { flags, size, offset });
    set(SyncArgs::FOR_DEVICE | 2 << 2, 128, 64).unwrap();
    // A size of 0 leaves the size, a direction of 3 the direction; the offset has no such value.
    set(SyncArgs::FOR_CPU | 3 << 2, 0, 0).unwrap();
    assert_eq!(fake.log().pop().unwrap(), synced(Command::ForCpu, 0..128, Direction::FromDevice));
    // Arguments that were refused are kept all the same. A command of 2 is none.
    assert_eq!(set(SyncArgs::FOR_DEVICE, 64, BLOCK as u64), Err(libc::EINVAL));
    assert_eq!(fake.kept().offset, BLOCK as u64);
    set(2, 64, 0).unwrap();
    assert_eq!(fake.kept().owner, 0);

    let file = fs::File::options().write(true).open(fake.class_dir().join("sync_direction")).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    assert_eq!(module.write_attribute(fd, "sync_direction", b"3"), Err(libc::EINVAL));
}

#[test]
fn the_block_is_exported_where_the_module_can() {
    let fake = fake();
    let region = contigo::Region::new(fake.open().unwrap()).unwrap();
    // SAFETY: nobody imports it.
    let fd = unsafe { region.export() }.unwrap();
    let mut buf = region.carve(64, contigo::Align::LINE).unwrap().into_buf();
    buf.view_mut::<u8>().unwrap().fill(0x3C);
    let file = fs::File::from(std::os::fd::AsFd::as_fd(&fd).try_clone_to_owned().unwrap());
    let mut bytes = [0; 64];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
    assert_eq!(bytes, [0x3C; 64], "the same memory");
    let old = FakeUDmaBuf::new(old());
    // SAFETY: as above.
    let refused = unsafe { contigo::Region::new(old.open().unwrap()).unwrap().export() }.map(drop);
    assert_eq!(refused, Err(Error::Os { call: "ioctl(U_DMA_BUF_IOCTL_EXPORT)", errno: libc::ENOTTY }));
}

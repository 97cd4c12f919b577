//! `HugeTlb` for real: as root with reserved huge pages. Elsewhere each test says why it is
//! skipped, and the clear error is what is tested instead.

use contigo::linux::memory::HugeTlb;
use contigo::mem::SyncScope;
use contigo::types::BaseAddr;
use contigo::{Backend, Direction, Error, PhysAddr};
use contigo_testkit::direct::DirectSync as _;
use contigo_testkit::emulated;
use contigo_testkit::fake_dma_heap::page_bytes;
use nix::errno::Errno;
use nix::libc;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Uid, fork, pause, setuid};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most pages of one block.
const MAX_PAGES: usize = 512;

/// One test at a time: they share the machine's huge pages.
static ONE: Mutex<()> = Mutex::new(());

/// The number on that line of a file like /proc/meminfo.
fn number(path: &str, key: &str) -> usize {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn meminfo(key: &str) -> usize {
    number("/proc/meminfo", key)
}

/// How many bytes of huge pages this process has: what others take meanwhile does not count.
fn huge_bytes() -> usize {
    number("/proc/self/status", "HugetlbPages:") * 1024
}

/// The kernel's own answer for one virtual page, read with std.
fn pagemap_entry(cpu: *const u8) -> u64 {
    let mut entry = [0; 8];
    let pagemap = File::open("/proc/self/pagemap").unwrap();
    pagemap.read_exact_at(&mut entry, cpu.addr() as u64 / page_bytes() * 8).unwrap();
    u64::from_ne_bytes(entry)
}

/// `Some` where `pages` huge pages can be had with their addresses; else says that `test` is
/// skipped, and why.
fn ready(test: &str, pages: usize) -> Option<MutexGuard<'static, ()>> {
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let here = std::hint::black_box(1_u8);
    let why = if let Some(why) = emulated::why() {
        why
    } else if meminfo("Hugepagesize:") != 2048 {
        "the default huge page is not 2 MiB here".to_owned()
    } else if meminfo("HugePages_Free:") < pages + meminfo("HugePages_Rsvd:") {
        format!("{pages} free huge pages needed: echo 64 > /proc/sys/vm/nr_hugepages")
    } else if pagemap_entry(&raw const here) << 9 == 0 {
        "the kernel hides physical addresses: run as root".to_owned()
    } else {
        return Some(guard);
    };
    contigo_testkit::skipped(&format!("hugetlb::{test}"), &why);
    None
}

/// Runs `child` in a forked process and returns its exit status. Other threads may hold std's locks
/// at the fork, so `child` neither allocates nor prints nor panics: what it calls is the runtime,
/// which does none of that.
fn in_child(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs only async-signal-safe calls, as said above, and ends with _exit.
    let ForkResult::Parent { child } = unsafe { fork() }.unwrap() else {
        // SAFETY: ends this process at once, with no destructors.
        unsafe { libc::_exit(child()) }
    };
    match waitpid(child, None).unwrap() {
        WaitStatus::Exited(_, status) => status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn block_is_whole_pages_at_confirmed_addresses() {
    let Some(_one) = ready("block_is_whole_pages_at_confirmed_addresses", 2) else {
        return;
    };
    let had_bytes = huge_bytes();
    let block = HugeTlb::new(3 << 20).unwrap();
    assert_eq!(huge_bytes(), had_bytes + (4 << 20), "every page is faulted in");
    let mapping = block.mapping();
    assert_eq!((block.name(), mapping.len_bytes), ("hugetlb", 4 << 20));
    assert_eq!(mapping.cpu.as_ptr().addr() % HugeTlb::PAGE_BYTES, 0);
    let mut addr = [0; 2];
    for (index, addr) in addr.iter_mut().enumerate() {
        let cpu = mapping.cpu.as_ptr().wrapping_add(index * HugeTlb::PAGE_BYTES);
        let frame = pagemap_entry(cpu) & ((1 << 55) - 1);
        *addr = frame * page_bytes();
        assert!(*addr != 0 && *addr % HugeTlb::PAGE_BYTES as u64 == 0, "{addr:#x}");
        let segment = block.segment(index * HugeTlb::PAGE_BYTES + 4100).unwrap();
        assert_eq!(segment.addr, *addr + 4100);
        assert!(segment.len_bytes >= HugeTlb::PAGE_BYTES - 4100);
    }
    let [first, second] = addr;
    assert_eq!(mapping.base, BaseAddr::Phys(PhysAddr(first)));
    let one_run = second == first + HugeTlb::PAGE_BYTES as u64;
    assert_eq!(block.segment(0).unwrap().len_bytes, if one_run { 4 << 20 } else { 2 << 20 });
    assert!(matches!(block.segment(4 << 20), Err(Error::OutOfRange { .. })));

    for offset in [0, 1, (2 << 20) - 1, 2 << 20, (4 << 20) - 1] {
        // SAFETY: offset < 4 MiB, the length of the mapping, which is alive and which only this
        // thread knows.
        unsafe {
            let byte = mapping.cpu.as_ptr().add(offset);
            assert_eq!(byte.read_volatile(), 0);
            byte.write_volatile(0xA5);
            assert_eq!(byte.read_volatile(), 0xA5);
        }
    }
    drop(block);
    assert_eq!(huge_bytes(), had_bytes, "dropped: the pages are back");
}

#[test]
fn a_fork_does_not_move_the_pages() {
    let Some(_one) = ready("a_fork_does_not_move_the_pages", 2) else { return };
    let block = HugeTlb::new(1).unwrap();
    let before = block.segment(0).unwrap();
    // SAFETY: the child only waits for its end.
    let ForkResult::Parent { child } = unsafe { fork() }.unwrap() else {
        loop {
            pause();
        }
    };
    // A page that parent and child share is copied by the first to write, and the copy lies
    // elsewhere. SAFETY: byte 0 of a live mapping that only this thread knows.
    unsafe { block.mapping().cpu.as_ptr().write_volatile(1) };
    let after = block.segment(0);
    nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).unwrap();
    waitpid(child, None).unwrap();
    assert_eq!(after, Ok(before));
}

#[test]
fn a_block_is_pinned_until_its_owner_drops_it() {
    let Some(_one) = ready("a_block_is_pinned_until_its_owner_drops_it", 2) else { return };
    // io_uring counts what it pins (`io_account_mem`); in KiB.
    let pinned = || number("/proc/self/status", "VmPin:");
    let before = pinned();
    let block = HugeTlb::new(2 * HugeTlb::PAGE_BYTES).unwrap();
    if !block.is_pinned() {
        return contigo_testkit::skipped(
            "hugetlb::a_block_is_pinned_until_its_owner_drops_it",
            "this kernel gives this process no io_uring",
        );
    }
    assert_eq!(pinned(), before + 4096);
    let mut block = Some(block);
    let child = || {
        drop(block.take());
        0
    };
    assert_eq!(in_child(child), 0);
    assert_eq!(pinned(), before + 4096, "a child that drops its copy lets go of nothing");
    drop(block);
    assert_eq!(pinned(), before, "at once");
}

#[test]
fn without_the_privilege_verify_is_refused() {
    let Some(_one) = ready("without_the_privilege_verify_is_refused", 1) else { return };
    let ordinary = |dumpable| {
        move || {
            let Ok(block) = HugeTlb::new(1) else { return 43 };
            if block.verify() != Ok(()) {
                return 44;
            }
            let given_up =
                setuid(Uid::from_raw(65534)).and_then(|()| prctl::set_dumpable(dumpable));
            match (given_up, block.verify()) {
                (Ok(()), Err(Error::PagemapHidden { .. })) if dumpable => 42,
                (Ok(()), Err(Error::AttributeUnreadable { errno, .. }))
                    if !dumpable && errno == Errno::EACCES as i32 =>
                {
                    42
                }
                _ => 45,
            }
        }
    };
    assert_eq!((in_child(ordinary(true)), in_child(ordinary(false))), (42, 42));
}

#[test]
fn on_a_pc_every_master_snoops() {
    let Some(_one) = ready("on_a_pc_every_master_snoops", 1) else { return };
    let block = HugeTlb::new(1).unwrap();
    let mapping = block.mapping();
    match mapping.scope {
        SyncScope::Coherent => assert_eq!(mapping.coherent, Some(true)),
        SyncScope::Range { granule_bytes } => {
            assert!(granule_bytes >= 64 && mapping.coherent.is_none())
        }
        other => panic!("{other:?}: no huge pages on such a machine"),
    }
    assert_eq!(block.device_sync(0..100, Direction::Bidirectional), Ok(()));
    assert_eq!(block.cpu_sync(0..100, Direction::Bidirectional), Ok(()));
    let beyond = block.cpu_sync(0..(2 << 20) + 1, Direction::FromDevice);
    assert!(matches!(beyond, Err(Error::OutOfRange { .. })));
}

#[test]
fn ordinary_user_is_told_of_hidden_address() {
    let hidden = || match HugeTlb::new(1) {
        Err(Error::PagemapHidden { page }) if page != 0 => 42,
        Err(Error::NoMemory { .. }) => 43,
        Err(_) => 44,
        Ok(_) => 45,
    };
    if Uid::effective().is_root() {
        let Some(_one) = ready("ordinary_user_is_told_of_hidden_address", 1) else { return };
        let nobody = Uid::from_raw(65534);
        // A process that changed its user may not read its own /proc: dumpable again, it is like
        // any other user's. It may lock nothing either; the hidden address is the more useful
        // message.
        let no_lock = || setrlimit(Resource::RLIMIT_MEMLOCK, 0, 0);
        let drop_to =
            || no_lock().and_then(|()| setuid(nobody)).and_then(|()| prctl::set_dumpable(true));
        let ordinary = || if drop_to().is_ok() { hidden() } else { 46 };
        assert_eq!(in_child(ordinary), 42);
        let undumpable = || match setuid(nobody).map(|()| HugeTlb::new(1)) {
            Ok(Err(Error::AttributeUnreadable { name: "/proc/self/pagemap", errno }))
                if errno == Errno::EACCES as i32 =>
            {
                42
            }
            _ => 44,
        };
        assert_eq!(in_child(undumpable), 42);
    } else {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let status = hidden();
        let why = format!(
            "not root, who gives up being it; this user got {status} (42 hidden, 43 no huge pages)"
        );
        contigo_testkit::skipped("hugetlb::ordinary_user_is_told_of_hidden_address", &why);
        assert!(status == 42 || status == 43);
    }
}

#[test]
fn more_than_is_reserved_is_enomem() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let surplus: usize = fs::read_to_string("/proc/sys/vm/nr_overcommit_hugepages")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    let there = meminfo("HugePages_Free:") + surplus;
    if emulated::why().is_some() || meminfo("Hugepagesize:") != 2048 || there >= MAX_PAGES {
        return contigo_testkit::skipped(
            "hugetlb::more_than_is_reserved_is_enomem",
            "an emulator runs it, or the huge page is not of 2 MiB, or enough can be had",
        );
    }
    let all = (there + 1) * HugeTlb::PAGE_BYTES;
    let refused = HugeTlb::new(all).unwrap_err();
    assert!(
        matches!(refused, Error::NoMemory { need_bytes, errno, .. }
            if need_bytes == all && errno == Errno::ENOMEM as i32),
        "{refused}"
    );
}

#[test]
fn bad_length_never_reaches_the_kernel() {
    let max_bytes = MAX_PAGES * HugeTlb::PAGE_BYTES;
    for len_bytes in [0, max_bytes + 1, usize::MAX] {
        let (value, max) = (len_bytes as u64, max_bytes as u64);
        let beyond = Error::Argument { name: "len_bytes", value, min: 1, max, multiple_of: 1 };
        assert_eq!(HugeTlb::new(len_bytes).unwrap_err(), beyond);
    }
}

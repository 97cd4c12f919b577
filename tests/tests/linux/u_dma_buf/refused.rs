//! Names, files and numbers that are refused when a block is opened.

use super::{BLOCK, fake, old};
use contigo::Error;
use contigo::linux::memory::UDmaBuf;
use contigo_testkit::fake_u_dma_buf::{Config, DevInfo, FakeUDmaBuf};
use std::fs;

#[test]
fn a_block_is_opened_once_at_a_time() {
    let fake = fake();
    let first = fake.open().unwrap();
    assert_eq!(fake.open().unwrap_err(), Error::InUse { errno: libc::EWOULDBLOCK });
    drop(first);
    fake.open().unwrap();
}

/// The module has no device of this name.
const NOT_THERE: Error =
    Error::Os { call: "open(/sys/class/u-dma-buf/<name>)", errno: libc::ENOENT };

#[test]
fn a_name_is_one_file_name() {
    let long = "u".repeat(64);
    for name in ["", ".", "..", "a/b", "/dev/mem", "a\0b", &long] {
        assert_eq!(
            UDmaBuf::open(name).unwrap_err(),
            Error::BadName { len_bytes: name.len(), max_bytes: 63 },
            "{name:?}"
        );
    }
    let longest = "u".repeat(63);
    assert_eq!(UDmaBuf::open(&longest).unwrap_err(), NOT_THERE);
    FakeUDmaBuf::new(Config { name: longest, ..Config::default() }).open().unwrap();
}

/// Opening `/dev/watchdog` starts it, and a UIO device's counts as its user.
#[test]
fn device_file_alone_is_no_u_dma_buf() {
    let fake = FakeUDmaBuf::new(Config::default());
    fs::remove_dir_all(fake.class_dir()).unwrap();
    // Who opens it finds the lock: `InUse`.
    let locked = fs::File::open(fake.device_file()).unwrap();
    locked.lock().unwrap();
    assert_eq!(fake.open().unwrap_err(), NOT_THERE);
}

/// Opening fails so with an old module, of whose attributes `change` makes another.
fn with_attribute(change: impl FnOnce(&FakeUDmaBuf)) -> Error {
    let fake = FakeUDmaBuf::new(old());
    change(&fake);
    fake.open().unwrap_err()
}

#[test]
fn attributes_fail_in_four_ways() {
    let syncs = ["sync_offset", "sync_size", "sync_direction", "sync_for_cpu", "sync_for_device"];
    for name in ["size", "phys_addr"].into_iter().chain(syncs) {
        let missing = with_attribute(|fake| fake.remove(name));
        assert_eq!(missing, Error::AttributeMissing { name });
    }
    for name in ["size", "phys_addr", "dma_coherent", "sync_mode"].into_iter().chain(syncs) {
        let unreadable = with_attribute(|fake| fake.make_unreadable(name));
        assert_eq!(unreadable, Error::AttributeUnreadable { name, errno: libc::EISDIR });
    }
    for name in ["size", "phys_addr", "dma_coherent", "sync_mode"] {
        for text in ["", "\n", "  \n"] {
            let empty = with_attribute(|fake| fake.set(name, text));
            assert_eq!(empty, Error::AttributeEmpty { name });
        }
        let padded = "0".repeat(64);
        for (text, value) in [
            ("12 34\n", 12),
            ("-1\n", 0),
            ("0x\n", 0),
            ("0x1g\n", 1),
            ("yes\n", 0),
            ("1\0", 1),
            (&*padded, 0),
            ("0x10000000000000000\n", 1 << 60),
            ("18446744073709551616\n", 1_844_674_407_370_955_161),
        ] {
            let wrong = with_attribute(|fake| fake.set(name, text));
            assert_eq!(wrong, Error::Unexpected { name, value }, "{text:?}");
        }
    }
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let nonsense = |name, value| Error::Unexpected { name, value };
    let open = |config: Config| FakeUDmaBuf::new(config).open().unwrap_err();
    for base in [Config::default(), old()] {
        assert_eq!(open(Config { phys_addr: 0, ..base.clone() }), nonsense("phys_addr", 0));
        let phys_addr = u64::MAX - 4095;
        let beyond = nonsense("phys_addr", phys_addr);
        assert_eq!(open(Config { phys_addr, ..base.clone() }), beyond);
        for (size_bytes, len_bytes) in [(0, 0), (63, 63), (4096 + 32, 4128)] {
            let refused = Error::BlockSize { len_bytes, need_bytes: 64, line_bytes: 64 };
            assert_eq!(open(Config { size_bytes, ..base.clone() }), refused);
        }
        assert_eq!(open(Config { sync_mode: 8, ..base }), nonsense("sync_mode", 8));
    }
    let neither = with_attribute(|fake| fake.set("dma_coherent", "2\n"));
    assert_eq!(neither, nonsense("dma_coherent", 2));
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
        assert_eq!(fake.open().unwrap_err(), Error::Unexpected { name, value });
        // Without the attribute to contradict it, the ioctl's answer is used.
        fake.remove(name);
        fake.open().unwrap();
    }
}

#[test]
fn uncached_mode_without_o_sync_is_refused() {
    for base in [Config::default(), old()] {
        for sync_mode in 0..=4 {
            FakeUDmaBuf::new(Config { sync_mode, ..base.clone() }).open().unwrap();
        }
        for sync_mode in 5..=7 {
            let error = FakeUDmaBuf::new(Config { sync_mode, ..base.clone() }).open().unwrap_err();
            assert!(
                matches!(error, Error::Setting { name: "sync_mode", value, .. }
                    if value == sync_mode),
                "{error}"
            );
        }
    }
}

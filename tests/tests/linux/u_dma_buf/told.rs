//! A block says what its module says, in every version of the module.

use super::{BLOCK, cpu_write, fake, old, synced};
use contigo::mem::SyncScope;
use contigo::types::BaseAddr;
use contigo::{Align, Backend, Bus, Direction, Error, PhysAddr, Region};
use contigo_testkit::direct::DirectSync as _;
use contigo_testkit::fake_u_dma_buf::{Command, Config, FakeUDmaBuf};
use std::fs;

#[test]
fn says_what_the_module_says() {
    for config in [Config::default(), old()] {
        let fake = FakeUDmaBuf::new(config);
        let block = fake.open().unwrap();
        let mapping = block.mapping();
        assert_eq!((mapping.len_bytes, mapping.bus), (BLOCK, Bus::Soc));
        assert_eq!(mapping.base, BaseAddr::Phys(PhysAddr(0x3820_0000)));
        let ranged = SyncScope::Range { granule_bytes: 64 };
        assert_eq!((mapping.scope, mapping.coherent), (ranged, Some(false)));
        assert_eq!(block.name(), "u-dma-buf");
        cpu_write(&block, BLOCK - 3, b"end");
        assert_eq!(fs::read(fake.device_file()).unwrap()[BLOCK - 3..], *b"end");
    }
    assert_eq!(fake().open().unwrap().dma_mask_bits(), Some(32));
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
    let no_lines = Error::BlockSize { len_bytes: 64 * 1023, need_bytes: 256, line_bytes: 256 };
    assert_eq!(odd.open().unwrap_err(), no_lines);
    let addr = 0x3820_0040;
    let askew = FakeUDmaBuf::new(Config { line, phys_addr: addr, ..Config::default() });
    let refused = Region::new(askew.open().unwrap()).unwrap_err();
    assert_eq!(refused.error, Error::Misaligned { addr, align_bytes: 256 });
}

#[test]
fn einval_too_means_that_there_is_no_such_ioctl() {
    let fake = FakeUDmaBuf::new(Config { dev_info: Some(Err(libc::EINVAL)), ..Config::default() });
    assert_eq!(fake.open().unwrap().dma_mask_bits(), None);
    let fake = FakeUDmaBuf::new(Config { dev_info: Some(Err(libc::EIO)), ..Config::default() });
    assert_eq!(
        fake.open().unwrap_err(),
        Error::Os { call: "ioctl(U_DMA_BUF_IOCTL_GET_DEV_INFO)", errno: libc::EIO }
    );
}

#[test]
fn optional_attributes_are_never_required() {
    let fake = fake();
    let facts = ["size", "phys_addr", "sync_mode", "dma_coherent", "quirk_mmap_mode"];
    facts.iter().chain(&["sync_for_cpu", "sync_for_device"]).for_each(|name| fake.remove(name));
    // No attribute states that it is coherent, or that it is not.
    assert_eq!(fake.open().unwrap().mapping().coherent, None);

    let fake = FakeUDmaBuf::new(Config { coherent: None, ..old() });
    fake.remove("sync_mode");
    fake.remove("quirk_mmap_mode");
    let mapping = fake.open().unwrap().mapping();
    assert_eq!((mapping.coherent, mapping.scope), (None, SyncScope::Range { granule_bytes: 64 }));
}

#[test]
fn last_block_of_address_space_is_possible() {
    let phys_addr = u64::MAX - BLOCK as u64 + 1;
    let fake = FakeUDmaBuf::new(Config { phys_addr, ..Config::default() });
    assert_eq!(fake.open().unwrap().mapping().base, BaseAddr::Phys(PhysAddr(phys_addr)));
}

#[test]
fn the_block_is_exported_where_the_module_can() {
    let fake = fake();
    let region = Region::new(fake.open().unwrap()).unwrap();
    // SAFETY: no driver imports it.
    let fd = unsafe { region.export() }.unwrap();
    let mut buf = region.alloc(64, Align::LINE).unwrap();
    buf.view_mut::<u8>().unwrap().fill(0x3C);
    let file = fs::File::from(fd);
    let mut bytes = [0; 64];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
    assert_eq!(bytes, [0x3C; 64], "the same memory");
    let old = FakeUDmaBuf::new(old());
    // SAFETY: as above.
    let refused = unsafe { Region::new(old.open().unwrap()).unwrap().export() }.map(drop);
    assert_eq!(
        refused,
        Err(Error::Os { call: "ioctl(U_DMA_BUF_IOCTL_EXPORT)", errno: libc::ENOTTY })
    );
}

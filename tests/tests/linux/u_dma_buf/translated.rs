//! Nodes behind a translation: their addresses are bus addresses, and are not taken for others.

use super::old;
use contigo::linux::memory::UDmaBuf;
use contigo::types::BaseAddr;
use contigo::{Backend, DevAddr, Error, PhysAddr};
use contigo_testkit::fake_u_dma_buf::{Config, FakeUDmaBuf};
use std::fs;

#[test]
fn translated_node_has_a_bus_address() {
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
        assert!(
            matches!(error, Error::Setting { name: "quirk_mmap_mode", value, .. }
                if value == u64::from(mode)),
            "{error}"
        );
    }
    assert_eq!(open(5, Some(false)), Err(Error::Unexpected { name: "quirk_mmap_mode", value: 5 }));
    // A module that cannot say what it does had the quirk on ARM.
    let fake = FakeUDmaBuf::new(Config { quirk_mmap_mode: 0, ..old() });
    fs::create_dir_all(fake.class_dir().join("device/iommu_group")).unwrap();
    let silent = Error::AttributeMissing { name: "quirk_mmap_mode" };
    assert_eq!(fake.open_translated().unwrap_err(), silent);
}

#[test]
fn translated_address_is_not_physical() {
    for (kind, bytes, refused) in [
        ("iommu_group", &b""[..], true),
        ("of_node/iommus", b"1234", true),
        ("dma-ranges", b"1234", true),
        ("dma-ranges", b"", false),
    ] {
        let fake = FakeUDmaBuf::new(Config { quirk_mmap_mode: 1, ..Config::default() });
        let device = fake.class_dir().join("device");
        fs::create_dir_all(device.join("of_node")).unwrap();
        fs::write(device.join(kind), bytes).unwrap();
        let base = |opened: Result<UDmaBuf, Error>| opened.map(|block| block.mapping().base);
        let (plain, translated) = (base(fake.open()), base(fake.open_translated()));
        let (right, wrong, base) = if refused {
            (translated, plain, BaseAddr::Dev(DevAddr(0x3820_0000)))
        } else {
            (plain, translated, BaseAddr::Phys(PhysAddr(0x3820_0000)))
        };
        assert_eq!(right, Ok(base), "{kind}");
        assert!(matches!(wrong, Err(Error::Unsupported { .. })), "{kind}: {wrong:?}");
    }
}

/// As `of_dma_get_range` looks for it: an empty property is one-to-one, and so is the absent one of
/// the next bus; the first absent one above ends the search.
#[test]
fn translation_is_found_as_in_the_kernel() {
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
        fs::create_dir_all(bus.join("node")).unwrap();
        fs::create_dir(fake.class_dir().join("device")).unwrap();
        std::os::unix::fs::symlink(bus.join("node"), fake.class_dir().join("device/of_node"))
            .unwrap();
        for ranges in buses {
            if let Some(bytes) = ranges {
                fs::write(bus.join("dma-ranges"), bytes).unwrap();
            }
            bus.pop();
        }
        assert_eq!(fake.open().is_err(), refused, "{buses:?}");
        assert_eq!(fake.open_translated().is_ok(), refused, "{buses:?}");
    }
}

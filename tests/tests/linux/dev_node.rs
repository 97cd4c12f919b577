//! The runtime's side of the kernel module `contigo`: what it asks, in which order, and what
//! becomes of every refusal. The kernel is a fake of the header `kernel-helpers/uapi/contigo.h`;
//! the module itself is tested in the lab.

mod device;
mod event_loop;
mod imports;
mod irq;
mod memory;
mod several;
mod stops;

use contigo::linux::dev_node::{DevNode, DmaBuf};
use contigo::linux::memory::DmaHeap;
use contigo::mem::SyncScope;
use contigo::types::BaseAddr;
use contigo::{Backend, Bus, DevAddr, Error, PhysAddr, Port};
use contigo_testkit::fake_dev_node::{DevNodeConfig, Event, FakeDevNode, OFFSET};
use contigo_testkit::fake_dma_heap::{FakeHeap, HEAP, Pages, page_bytes};
use nix::libc;
use std::ops::Range;
use std::sync::Arc;

const HP0: Port = Port {
    name: "hp0",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 32,
    window: (0, u32::MAX as u64),
    coherent: false,
};

fn os(call: &'static str, errno: i32) -> Error {
    Error::Os { call, errno }
}

/// A kernel with such a device, and the device's open file.
fn opened(config: DevNodeConfig) -> (FakeDevNode, DevNode) {
    let kernel = FakeDevNode::new(config);
    let dev_node = kernel.open_dev_node().unwrap();
    (kernel, dev_node)
}

fn plain() -> (FakeDevNode, DevNode) {
    opened(DevNodeConfig::default())
}

/// A block of a dma-heap, imported for the device.
fn on_heap(dev_node: &DevNode, name: &str, len_bytes: usize) -> Result<DmaBuf, Error> {
    let heap = Arc::new(FakeHeap::new(Pages::Entry(0)));
    DmaHeap::allocate_for_from(heap, dev_node, name, len_bytes)
}

fn bytes_of(pages: u64) -> usize {
    (pages * page_bytes()).try_into().unwrap()
}

fn synced(for_cpu: bool, range: Range<usize>) -> Event {
    Event::Synced { handle: 1, for_cpu, start: range.start as u64, end: range.end as u64 }
}

#[test]
fn opening_says_what_is_wrong() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let open = || kernel.open_dev_node().map(drop);
    assert_eq!(
        DevNode::open_from(Arc::new(kernel.clone()), "other").unwrap_err(),
        Error::NotFound { what: "device of the kernel module contigo", among: 1.into() }
    );
    let dev_node = kernel.open_dev_node().unwrap();
    assert_eq!(open(), Err(Error::InUse { errno: libc::EBUSY }));
    drop(dev_node);
    assert_eq!(open(), Ok(()));
    kernel.refuse("ioctl(CONTIGO_GET_INFO)", libc::ENODEV);
    assert_eq!(open(), Err(os("ioctl(CONTIGO_GET_INFO)", libc::ENODEV)));
    kernel.refuse("open(/dev/contigo/)", libc::EIO);
    assert_eq!(open(), Err(os("open(/dev/contigo/)", libc::EIO)));
    kernel.refuse("open(/dev/contigo/)", libc::EPERM);
    assert!(matches!(open(), Err(Error::Denied { errno: libc::EPERM, .. })));
}

#[test]
fn what_the_module_says_is_distrusted() {
    let base = DevNodeConfig::default();
    let granules = [0, 3, 96, 8192, u32::MAX].map(|granule_bytes| {
        ("granule_bytes", granule_bytes, DevNodeConfig { granule_bytes, ..base })
    });
    let sizes = [0, 40, 183].map(|argsz| ("argsz", argsz, DevNodeConfig { argsz, ..base }));
    let others = [
        ("interrupts", 17, DevNodeConfig { interrupts: 17, ..base }),
        // Two drivers of the same registers.
        ("mmap_offset", 0, DevNodeConfig { windows: 2, overlapping: true, ..base }),
    ];
    for (field, wrong, config) in granules.into_iter().chain(sizes).chain(others) {
        let refused = FakeDevNode::new(config).open_dev_node().unwrap_err();
        assert!(
            matches!(refused, Error::Unexpected { name, value }
                if name == format!("{field} of CONTIGO_GET_INFO") && value == u64::from(wrong)),
            "{field} = {wrong}: {refused:?}"
        );
    }
    // A later module of the same ABI has more to say, and a PC's caches round nothing.
    let (_kernel, dev_node) = opened(DevNodeConfig { argsz: 4096, granule_bytes: 1, ..base });
    let scope = dev_node.allocate(4096).unwrap().mapping().scope;
    assert_eq!(scope, SyncScope::Range { granule_bytes: 32 });
}

#[test]
fn kernels_facts_reach_port_and_memory() {
    for (coherent, translated) in [(false, false), (true, false), (false, true), (true, true)] {
        let (kernel, dev_node) =
            opened(DevNodeConfig { coherent, translated, ..DevNodeConfig::default() });
        let info = dev_node.info().unwrap();
        assert_eq!(
            (dev_node.is_coherent(), info.coherent, info.translated),
            (coherent, coherent, translated)
        );
        assert_eq!(
            (info.confined, info.can_reset, info.armed, info.iommu),
            (false, false, false, false)
        );
        assert_eq!(info.window_len_bytes, [0x1000, 0, 0, 0, 0, 0]);
        assert_eq!(info.stop_windows, [true, false, false, false, false, false]);
        assert_eq!((info.buffers, info.quarantined, info.quarantined_bytes), (0, 0, 0));
        assert_eq!((info.interrupts, info.addr_bits), (1, 32));

        let claimed = Port { offset: 7, coherent, ..HP0 };
        let seen = dev_node.seen_through(claimed);
        if translated {
            assert_eq!(seen.offset, 0, "the kernel has added it");
            assert_ne!(seen.bus, Bus::Soc, "addresses of this device alone");
        } else {
            assert_eq!(seen, claimed);
        }
        let ranged = SyncScope::Range { granule_bytes: 64 };
        let (imported, own) = (
            on_heap(&dev_node, HEAP, bytes_of(1) + 1).unwrap(),
            dev_node.allocate(bytes_of(1) + 1).unwrap(),
        );
        for (name, mapping, scope, addr) in [
            (imported.name(), imported.mapping(), SyncScope::Whole, 0x1000_0000),
            (own.name(), own.mapping(), ranged, 0x1100_0000),
        ] {
            assert_eq!(name, if scope == ranged { "contigo" } else { "dma-heap" });
            assert_eq!((mapping.len_bytes, mapping.bus), (bytes_of(2), seen.bus), "{name}");
            assert_eq!(mapping.coherent, Some(coherent), "{name}");
            assert_eq!(mapping.scope, if coherent { SyncScope::Coherent } else { scope }, "{name}");
            let base = if translated {
                BaseAddr::Dev(DevAddr(addr + OFFSET))
            } else {
                BaseAddr::Phys(PhysAddr(addr))
            };
            assert_eq!(mapping.base, base, "{name}");
            let mut bytes = [1; 8];
            kernel.device_read(base.raw(), &mut bytes).unwrap();
            assert_eq!(bytes, [0; 8], "{name} is zeroed");
        }
    }
    let translated = DevNodeConfig { translated: true, ..DevNodeConfig::default() };
    let [one, other] = [(); 2].map(|()| opened(translated).1.seen_through(HP0).bus);
    assert_ne!(one, other, "two devices' address spaces");
}

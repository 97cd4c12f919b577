//! A contigo device's registers and its reset: what one file serves.

use super::{heap, os};
use contigo::{
    Error, Mmio, Region,
    hw::Wired,
    linux::{Spin, memory::DmaHeap},
};
use contigo_gemm8::Gemm8;
use contigo_testkit::{
    fake_dev_node::{Call, DevNodeConfig, Event, FakeDevNode},
    fake_dma_heap::HEAP,
};
use nix::libc;

fn config() -> DevNodeConfig {
    DevNodeConfig { windows: 2, ..DevNodeConfig::default() }
}

#[test]
fn registers_are_mapped_once_and_keep_the_file() {
    let kernel = FakeDevNode::new(config());
    kernel.set_register(0, 8, 0x1234_5678);
    kernel.set_register(1, 0, 7);
    let dev_node = kernel.open_dev_node().unwrap();
    let (first, second) = (dev_node.registers(0).unwrap(), dev_node.registers(1).unwrap());
    assert_eq!((first.len_bytes(), first.read32(8)), (0x1000, 0x1234_5678));
    assert_eq!((second.len_bytes(), second.read32(0)), (0x1000, 7));
    // SAFETY: memory.
    unsafe { second.write32(4, 9) };
    assert_eq!(kernel.register(1, 4), 9);
    assert_eq!(
        dev_node.registers(0).map(drop),
        Err(Error::InUse { errno: libc::EBUSY }),
        "two drivers of one device"
    );
    assert_eq!(
        dev_node.registers(2).map(drop),
        Err(Error::NotFound { what: "window of this contigo device's registers", among: 2.into() })
    );
    assert!(matches!(
        dev_node.registers(6).map(drop),
        Err(Error::Argument { name: "window", value: 6, max: 5, .. })
    ));
    assert!(matches!(dev_node.registers(u32::MAX).map(drop), Err(Error::Argument { .. })));
}

#[test]
fn registers_that_cannot_be_mapped_say_why() {
    let kernel = FakeDevNode::new(DevNodeConfig { hidden: 1, ..config() });
    let dev_node = kernel.open_dev_node().unwrap();
    assert!(matches!(dev_node.registers(0).map(drop), Err(Error::Unsupported { .. })));
    kernel.refuse(Call::Map, libc::ENODEV);
    assert_eq!(dev_node.registers(1).map(drop), Err(os("mmap(/dev/contigo/)", libc::ENODEV)));
    kernel.refuse(Call::Open, 0);
    assert_eq!(dev_node.registers(1).map(drop), Ok(()), "no driver has them");
}

#[test]
fn removed_device_reads_ones() {
    let kernel = FakeDevNode::new(config());
    let dev_node = kernel.open_dev_node().unwrap();
    let registers = dev_node.registers(0).unwrap();
    let block = DmaHeap::allocate_for_from(heap(), &dev_node, HEAP, 4096).unwrap();
    kernel.take_away();
    assert_eq!((registers.read32(0), registers.read32(0xFFC)), (u32::MAX, u32::MAX));
    let gone = |call| Err(os(call, libc::ENODEV));
    assert_eq!(dev_node.info().map(drop), gone("ioctl(CONTIGO_GET_INFO)"));
    // SAFETY: there is no device.
    assert_eq!(unsafe { dev_node.reset() }, gone("ioctl(CONTIGO_RESET)"));
    assert_eq!(dev_node.irq(0).unwrap().arm(), gone("read(/dev/contigo/)"));
    assert_eq!(
        Region::new(block).map(drop).map_err(|refused| refused.error),
        gone("ioctl(CONTIGO_GET_SEGMENTS)")
    );
    // SAFETY: as above.
    let device = unsafe { Wired::new(registers, Spin, super::HP0) };
    // SAFETY: as above.
    let opened = unsafe { Gemm8::open(device) }.map(drop);
    assert!(opened.is_err(), "no driver takes ones for its core");
}

#[test]
fn reset_gives_back_what_was_kept() {
    let kernel = FakeDevNode::new(DevNodeConfig { can_reset: false, ..config() });
    // SAFETY: there is no device.
    let refused = unsafe { kernel.open_dev_node().unwrap().reset() };
    assert_eq!(refused, Err(os("ioctl(CONTIGO_RESET)", libc::EOPNOTSUPP)));
    let kernel = FakeDevNode::new(DevNodeConfig { can_reset: true, ..config() });
    let dev_node = kernel.open_dev_node().unwrap();
    assert!(dev_node.info().unwrap().can_reset);
    // SAFETY: as above.
    unsafe { dev_node.reset().unwrap() };
    assert_eq!(kernel.log(), [Event::Reset]);
    kernel.refuse(Call::Reset, libc::EIO);
    // SAFETY: as above.
    assert_eq!(unsafe { dev_node.reset() }, Err(os("ioctl(CONTIGO_RESET)", libc::EIO)));
}

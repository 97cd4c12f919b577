//! A contigo device's registers and its reset: what one file serves.

use super::{on_heap, opened, os};
use contigo::hw::Wired;
use contigo::linux::Spin;
use contigo::{Error, Mmio, Region};
use contigo_gemm8::Gemm8;
use contigo_testkit::fake_dev_node::{DevNodeConfig, Event};
use contigo_testkit::fake_dma_heap::HEAP;
use nix::libc;

fn config() -> DevNodeConfig {
    DevNodeConfig { windows: 2, ..DevNodeConfig::default() }
}

#[test]
fn registers_are_mapped_once_and_keep_the_file() {
    let (kernel, dev_node) = opened(config());
    kernel.set_register(0, 8, 0x1234_5678);
    kernel.set_register(1, 0, 7);
    let (first, second) = (dev_node.registers(0).unwrap(), dev_node.registers(1).unwrap());
    assert_eq!((first.len_bytes(), first.read32(8)), (0x1000, 0x1234_5678));
    assert_eq!((second.len_bytes(), second.read32(0)), (0x1000, 7));
    // SAFETY: memory.
    unsafe { second.write32(4, 9) };
    assert_eq!(kernel.register(1, 4), 9);
    let refused = |window| dev_node.registers(window).map(drop).unwrap_err();
    assert_eq!(refused(0), Error::InUse { errno: libc::EBUSY }, "two drivers of one device");
    let what = "window of this contigo device's registers";
    assert_eq!(refused(2), Error::NotFound { what, among: 2.into() });
    for window in [6, u32::MAX] {
        let beyond = refused(window);
        assert!(matches!(beyond, Error::Argument { name: "window", max: 5, .. }), "{beyond:?}");
    }
}

#[test]
fn registers_that_cannot_be_mapped_say_why() {
    let (kernel, dev_node) = opened(DevNodeConfig { hidden: 1, ..config() });
    let registers = |window| dev_node.registers(window).map(drop);
    assert!(matches!(registers(0), Err(Error::Unsupported { .. })));
    kernel.refuse("mmap(/dev/contigo/)", libc::ENODEV);
    assert_eq!(registers(1), Err(os("mmap(/dev/contigo/)", libc::ENODEV)));
    kernel.refuse_none();
    assert_eq!(registers(1), Ok(()), "no driver has them");
}

#[test]
fn removed_device_reads_ones() {
    let (kernel, dev_node) = opened(config());
    let registers = dev_node.registers(0).unwrap();
    let block = on_heap(&dev_node, HEAP, 4096).unwrap();
    kernel.take_away();
    assert_eq!((registers.read32(0), registers.read32(0xFFC)), (u32::MAX, u32::MAX));
    let gone = |call| Err(os(call, libc::ENODEV));
    assert_eq!(dev_node.info().map(drop), gone("ioctl(CONTIGO_GET_INFO)"));
    // SAFETY: there is no device.
    assert_eq!(unsafe { dev_node.reset() }, gone("ioctl(CONTIGO_RESET)"));
    assert_eq!(dev_node.irq(0).unwrap().arm(), gone("ioctl(CONTIGO_WAIT)"));
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
fn a_reset_or_its_refusal_is_the_kernels() {
    for (can_reset, answer) in
        [(false, Err(libc::EOPNOTSUPP)), (true, Ok(())), (true, Err(libc::EIO))]
    {
        let (kernel, dev_node) = opened(DevNodeConfig { can_reset, ..config() });
        assert_eq!(dev_node.info().unwrap().can_reset, can_reset);
        if answer == Err(libc::EIO) {
            kernel.refuse("ioctl(CONTIGO_RESET)", libc::EIO);
        }
        // SAFETY: there is no device.
        let reset = unsafe { dev_node.reset() };
        assert_eq!(reset, answer.map_err(|errno| os("ioctl(CONTIGO_RESET)", errno)));
        assert_eq!(kernel.log() == [Event::Reset], answer.is_ok());
    }
}

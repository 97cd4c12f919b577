//! A guard's registers and its reset: what one file serves.

use super::{heap, os};
use contigo::{
    Error, Mmio, Region,
    hw::Wired,
    linux::{Spin, memory::DmaHeap},
};
use contigo_gemm8::Gemm8;
use contigo_testkit::{
    fake_dma_heap::HEAP,
    fake_guard::{Call, Event, FakeGuard, GuardConfig},
};
use nix::libc;

fn config() -> GuardConfig {
    GuardConfig { windows: 2, ..GuardConfig::default() }
}

#[test]
fn registers_are_mapped_once_and_keep_the_file() {
    let kernel = FakeGuard::new(config());
    kernel.set_register(0, 8, 0x1234_5678);
    kernel.set_register(1, 0, 7);
    let guard = kernel.open_guard().unwrap();
    let (first, second) = (guard.registers(0).unwrap(), guard.registers(1).unwrap());
    assert_eq!((first.len_bytes(), first.read32(8)), (0x1000, 0x1234_5678));
    assert_eq!((second.len_bytes(), second.read32(0)), (0x1000, 7));
    // SAFETY: memory.
    unsafe { second.write32(4, 9) };
    assert_eq!(kernel.register(1, 4), 9);
    assert_eq!(
        guard.registers(0).map(drop),
        Err(Error::InUse { errno: libc::EBUSY }),
        "two drivers of one device"
    );
    assert_eq!(
        guard.registers(2).map(drop),
        Err(Error::NotFound { what: "window of this guard's registers", among: 2.into() })
    );
    assert!(matches!(
        guard.registers(6).map(drop),
        Err(Error::Argument { name: "window", value: 6, max: 5, .. })
    ));
    assert!(matches!(guard.registers(u32::MAX).map(drop), Err(Error::Argument { .. })));
}

#[test]
fn registers_that_cannot_be_mapped_say_why() {
    let kernel = FakeGuard::new(GuardConfig { hidden: 1, ..config() });
    let guard = kernel.open_guard().unwrap();
    assert!(matches!(guard.registers(0).map(drop), Err(Error::Unsupported { .. })));
    kernel.refuse(Call::Map, libc::ENODEV);
    assert_eq!(guard.registers(1).map(drop), Err(os("mmap(/dev/contigo/)", libc::ENODEV)));
    kernel.refuse(Call::Open, 0);
    assert_eq!(guard.registers(1).map(drop), Ok(()), "no driver has them");
}

#[test]
fn removed_device_reads_ones() {
    let kernel = FakeGuard::new(config());
    let guard = kernel.open_guard().unwrap();
    let registers = guard.registers(0).unwrap();
    let block = DmaHeap::allocate_for_from(heap(), &guard, HEAP, 4096).unwrap();
    kernel.take_away();
    assert_eq!((registers.read32(0), registers.read32(0xFFC)), (u32::MAX, u32::MAX));
    let gone = |call| Err(os(call, libc::ENODEV));
    assert_eq!(guard.info().map(drop), gone("ioctl(CONTIGO_GET_INFO)"));
    // SAFETY: there is no device.
    assert_eq!(unsafe { guard.reset() }, gone("ioctl(CONTIGO_RESET)"));
    assert_eq!(guard.irq(0).unwrap().arm(), gone("read(/dev/contigo/)"));
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
    let kernel = FakeGuard::new(GuardConfig { can_reset: false, ..config() });
    // SAFETY: there is no device.
    let refused = unsafe { kernel.open_guard().unwrap().reset() };
    assert_eq!(refused, Err(os("ioctl(CONTIGO_RESET)", libc::EOPNOTSUPP)));
    let kernel = FakeGuard::new(GuardConfig { can_reset: true, ..config() });
    let guard = kernel.open_guard().unwrap();
    assert!(guard.info().unwrap().can_reset);
    // SAFETY: as above.
    unsafe { guard.reset().unwrap() };
    assert_eq!(kernel.log(), [Event::Reset]);
    kernel.refuse(Call::Reset, libc::EIO);
    // SAFETY: as above.
    assert_eq!(unsafe { guard.reset() }, Err(os("ioctl(CONTIGO_RESET)", libc::EIO)));
}

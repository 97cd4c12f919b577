//! Registers, interrupts, bus mastering.

use super::{opened, refused, unsuitable};
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};
use contigo::{Device, Error, Mmio, Wait};
use contigo_testkit::fake_vfio::uapi::MSI;
use contigo_testkit::fake_vfio::{Event, FakeVfio, Machine, Way};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use std::{mem, thread};

fn open(vfio: &Vfio, interrupt: Interrupt) -> Result<VfioDevice, Error> {
    VfioDevice::open(vfio, 0, interrupt)
}

#[test]
fn reset_before_mastering_and_stopped_on_drop() {
    for way in [Way::Group, Way::Iommufd] {
        let (kernel, vfio) = opened(Machine::with(way));
        let before = kernel.log().len();
        let device = open(&vfio, Interrupt::Any).unwrap();
        assert!(kernel.masters() && vfio.can_reset());
        assert_eq!(
            kernel.log()[before..],
            [Event::BusMaster(false), Event::Irq(MSI, true), Event::Reset, Event::BusMaster(true)]
        );
        assert_eq!((*device.port(), device.interrupt()), (vfio.port(), Interrupt::Msi));
        let before = kernel.log().len();
        drop(device);
        assert_eq!(kernel.log()[before..], [Event::BusMaster(false), Event::Irq(MSI, false)]);
        assert!(!kernel.masters() && open(&vfio, Interrupt::Any).is_ok(), "and again");
    }
}

#[test]
fn unresettable_device_must_be_at_rest() {
    let (kernel, vfio) = opened(Machine { resets: false, ..Machine::default() });
    // SAFETY: nothing drives it.
    let reset = unsafe { vfio.reset() };
    for refused in [open(&vfio, Interrupt::Any).map(drop), reset] {
        let no_reset = "the kernel knows no reset for this PCI function alone";
        assert_eq!(unsuitable(refused.unwrap_err()), (no_reset, 0));
    }
    assert!(!kernel.masters());
    let asked = Cell::new(0);
    let busy = |device: &mut VfioDevice| {
        asked.set(asked.get() + 1);
        assert!(
            !kernel.masters() && device.read32(0) == 0,
            "its registers answer, and it may not master the bus"
        );
        Err(Error::WillNotStop { device: "it", status: 1, waited_us: 5 })
    };
    // SAFETY: it is a file; nothing does DMA.
    let refused = unsafe { VfioDevice::open_unreset(&vfio, 0, Interrupt::Any, busy) };
    assert!(
        matches!(refused, Err(Error::WillNotStop { .. })) && !kernel.masters() && asked.get() == 1
    );
    // SAFETY: as above.
    let device = unsafe { VfioDevice::open_unreset(&vfio, 0, Interrupt::Any, |_| Ok(())) }.unwrap();
    assert!(kernel.masters() && !kernel.log().contains(&Event::Reset));
    drop(device);
    assert!(!kernel.masters());
}

#[test]
fn its_registers_have_one_owner() {
    let again = |vfio: &Vfio| open(vfio, Interrupt::Any).map(drop);
    let (kernel, vfio) = opened(Machine::default());
    let device = open(&vfio, Interrupt::Any).unwrap();
    assert_eq!(again(&vfio), Err(Error::HasDriver));
    assert!(kernel.masters(), "the first one is unharmed");
    drop(device);
    mem::forget(open(&vfio, Interrupt::Any).unwrap());
    assert_eq!(again(&vfio), Err(Error::HasDriver), "a forgotten one may still write");

    // A device whose bus mastering cannot be turned off is not opened again.
    let (kernel, vfio) = opened(Machine::default());
    let device = open(&vfio, Interrupt::Any).unwrap();
    kernel.fail("pwrite(PCI configuration)", 0, Errno::EIO);
    drop(device);
    assert_eq!(again(&vfio), Err(Error::HasDriver));
    // A failure to turn off the interrupt alone is harmless: bus mastering still ends.
    let (kernel, vfio) = opened(Machine::default());
    let device = open(&vfio, Interrupt::Any).unwrap();
    kernel.fail("ioctl(VFIO_DEVICE_SET_IRQS)", 0, Errno::EIO);
    drop(device);
    assert!(!kernel.masters());
}

#[test]
fn registers_are_read_and_written_where_they_are() {
    let (_kernel, vfio) = opened(Machine { bar_bytes: 8192, ..Machine::default() });
    let device = open(&vfio, Interrupt::Any).unwrap();
    assert_eq!(device.len_bytes(), 8192);
    for offset in [0, 4, 8188] {
        assert_eq!(device.read32(offset), 0);
        // SAFETY: memory, no device.
        unsafe { device.write32(offset, 0x1234_0000 + u32::try_from(offset).unwrap()) };
    }
    for offset in [0, 4, 8188] {
        assert_eq!(device.read32(offset), 0x1234_0000 + u32::try_from(offset).unwrap());
    }
    for offset in [8192, 8190, 1, usize::MAX] {
        assert_eq!(device.read32(offset), u32::MAX);
    }
}

#[test]
fn bars_that_cannot_be_mapped_whole_are_refused() {
    let (_kernel, vfio) = opened(Machine::default());
    let refused = |bar| VfioDevice::open(&vfio, bar, Interrupt::Any).unwrap_err();
    for bar in [6, 7, 255] {
        let value = bar.into();
        let beyond = Error::Argument { name: "bar", value, min: 0, max: 5, multiple_of: 1 };
        assert_eq!(refused(bar), beyond);
    }
    let (unmappable, kept) = ("this BAR cannot be mapped", "the kernel keeps parts of this BAR");
    assert_eq!(unsuitable(refused(5)), (unmappable, 0));
    for (what, machine) in [
        (unmappable, Machine { maps: false, ..Machine::default() }),
        (unmappable, Machine { bar_bytes: 0, ..Machine::default() }),
        (kept, Machine { bar_capability: Some(1), ..Machine::default() }),
        (kept, Machine { bar_capability: Some(u16::MAX), ..Machine::default() }),
    ] {
        let (kernel, vfio) = opened(machine.clone());
        assert_eq!(unsuitable(open(&vfio, Interrupt::Any).unwrap_err()), (what, 0), "{machine:?}");
        assert!(!kernel.masters());
    }
    let (_kernel, vfio) = opened(Machine { bar_capability: Some(3), ..Machine::default() });
    assert!(open(&vfio, Interrupt::Any).is_ok(), "the MSI-X table may be mapped with the rest");
    let (_kernel, vfio) = opened(Machine { bar_bytes: 1 << 40, ..Machine::default() });
    let too_large = open(&vfio, Interrupt::Any).map(drop);
    assert!(
        too_large.is_ok() || matches!(too_large, Err(Error::Os { call: "mmap(BAR)", .. })),
        "{too_large:?}"
    );
}

#[test]
fn the_first_interrupt_that_there_is() {
    use Interrupt::{Any, Intx, Msi, MsiX, Polled};
    for (irqs, wanted, got) in [
        ([1, 1, 1], Any, Some(Msi)),
        ([1, 0, 8], Any, Some(MsiX)),
        ([1, 0, 0], Any, Some(Intx)),
        ([0, 0, 0], Any, Some(Polled)),
        ([1, 1, 1], Polled, Some(Polled)),
        ([1, 1, 1], Intx, Some(Intx)),
        ([1, 32, 1], MsiX, Some(MsiX)),
        ([1, 1, 0], MsiX, None),
        ([1, 0, 1], Msi, None),
        ([0, 1, 1], Intx, None),
    ] {
        let (kernel, vfio) = opened(Machine { irqs, ..Machine::default() });
        match (open(&vfio, wanted), got) {
            (Ok(device), Some(got)) => {
                assert_eq!(device.interrupt(), got, "{irqs:?}, {wanted:?}");
                let messages = got == Msi || got == MsiX;
                assert_eq!(device.raw_fd().is_some(), messages, "only a wait unmasks the line");
                assert_eq!(kernel.raise(), got != Polled);
            }
            (Err(error), None) => {
                assert_eq!(unsuitable(error), ("the device has no interrupt of this type", 0))
            }
            other => panic!("{irqs:?}, {wanted:?}: {other:?}"),
        }
    }
}

#[test]
fn wait_ends_at_interrupt_or_its_limit() {
    for interrupt in [Interrupt::Msi, Interrupt::MsiX, Interrupt::Intx] {
        let (kernel, vfio) = opened(Machine { irqs: [1, 1, 1], ..Machine::default() });
        let device = open(&vfio, interrupt).unwrap();
        let timed = |timeout_us| {
            let begin_us = device.now_us();
            device.wait_at_most(timeout_us).unwrap();
            device.now_us() - begin_us
        };
        assert!(kernel.raise());
        assert!(timed(10_000_000) < 5_000_000, "{interrupt:?} came before the wait");
        assert!(timed(20_000) >= 19_000, "its count was taken: the next wait lasts");
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(30));
                assert!(kernel.raise());
            });
            let waited_us = timed(10_000_000);
            assert!((1_000..5_000_000).contains(&waited_us), "{interrupt:?}: {waited_us} us");
        });
        assert_eq!(timed(0) / 1_000_000, 0);
        assert!(kernel.raise(), "after the wait it may come again");
        // An event loop arms first: that forgets what came, and unmasks.
        let armed = || {
            // SAFETY: the device, and so its descriptor, lives until the end of this round.
            unsafe { BorrowedFd::borrow_raw(device.arm_irq().unwrap().unwrap()) }
        };
        let rings = |fd: BorrowedFd<'_>| {
            poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() > 0
        };
        kernel.fail("ppoll(eventfd)", 0, Errno::EIO);
        let fd = armed(); // one call less than a wait: it does not sleep
        let failed = Error::Os { call: "ppoll(eventfd)", errno: Errno::EIO as i32 };
        assert_eq!(device.wait_at_most(1), Err(failed), "a wait does, once");
        assert!(!rings(fd) && kernel.raise() && rings(fd), "{interrupt:?}");
        assert!(!rings(armed()) && kernel.raise(), "{interrupt:?}");
        let is_level = interrupt == Interrupt::Intx;
        assert_eq!(kernel.raise(), !is_level, "a level is masked until the next wait");
        assert_eq!(kernel.log().contains(&Event::Unmasked), is_level);
    }
    let (kernel, vfio) = opened(Machine { irqs: [1, 0, 0], ..Machine::default() });
    let device = open(&vfio, Interrupt::Intx).unwrap();
    kernel.fail("ioctl(VFIO_DEVICE_SET_IRQS)", 0, Errno::EIO);
    let failed = Error::Os { call: "ioctl(VFIO_DEVICE_SET_IRQS)", errno: Errno::EIO as i32 };
    assert_eq!(device.wait_at_most(1), Err(failed));
    drop(device);
    let polled = open(&vfio, Interrupt::Polled).unwrap();
    assert!(polled.wait_at_most(u32::MAX).is_ok(), "a pause, whatever the limit");
}

#[test]
fn failed_call_gives_registers_back() {
    for (call, nth) in [
        ("pwrite(PCI configuration)", 0),
        ("pread(PCI configuration)", 1),
        ("ioctl(VFIO_DEVICE_GET_REGION_INFO)", 0),
        ("ioctl(VFIO_DEVICE_GET_IRQ_INFO)", 0),
        ("eventfd", 0),
        ("ioctl(VFIO_DEVICE_SET_IRQS)", 0),
        ("ioctl(VFIO_DEVICE_RESET)", 0),
        ("pwrite(PCI configuration)", 1),
        ("pread(PCI configuration)", 3),
    ] {
        let expected = Error::Os { call, errno: Errno::EIO as i32 };
        let (kernel, vfio) = opened(Machine::default());
        let files = kernel.open_files();
        kernel.fail(call, nth, Errno::EIO);
        assert_eq!(open(&vfio, Interrupt::Any).map(drop), Err(expected), "{call} {nth}");
        assert!(!kernel.masters(), "{call} {nth}");
        assert_eq!(kernel.open_files(), files, "{call} {nth}: no eventfd stays");
        assert!(open(&vfio, Interrupt::Any).is_ok(), "{call} {nth}");
    }
}

#[test]
fn command_register_that_drops_bits_is_refused() {
    let unexpected = |value| Error::Unexpected { name: "the PCI command register", value };
    // Memory space stays off: the function would not answer.
    let kernel = FakeVfio::new(Machine { command_mask: 0b100, ..Machine::default() });
    assert_eq!(refused(&kernel), unexpected(0));
    // It cannot master the bus.
    let (_kernel, vfio) = opened(Machine { command_mask: 0b010, ..Machine::default() });
    assert_eq!(open(&vfio, Interrupt::Any).map(drop), Err(unexpected(0b010)));
}

#[test]
fn a_reset_from_outside() {
    let (kernel, vfio) = opened(Machine::default());
    let device = open(&vfio, Interrupt::Any).unwrap();
    let before = kernel.log().len();
    // SAFETY: nothing drives it.
    let reset = || unsafe { vfio.reset() };
    reset().unwrap();
    assert_eq!(kernel.log()[before..], [Event::Reset]);
    kernel.fail("ioctl(VFIO_DEVICE_RESET)", 0, Errno::EAGAIN);
    let failed = Error::Os { call: "ioctl(VFIO_DEVICE_RESET)", errno: Errno::EAGAIN as i32 };
    assert_eq!(reset(), Err(failed));
    assert!(kernel.masters(), "a configured function stays configured");
    drop(device);
}

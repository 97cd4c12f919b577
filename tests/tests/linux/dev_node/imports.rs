//! Foreign dma-bufs, imported for a contigo device.

use super::{HP0, on_heap, opened, os, plain};
use contigo::linux::dev_node::{DevNode, DmaBuf};
use contigo::{Align, Backend as _, Direction, Error, Region};
use contigo_testkit::fake_dev_node::DevNodeConfig;
use contigo_testkit::fake_dma_heap::HEAP;
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::ftruncate;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

pub(super) fn buffer(len_bytes: usize) -> OwnedFd {
    let fd = memfd_create("camera", MFdFlags::MFD_CLOEXEC).unwrap();
    ftruncate(&fd, len_bytes as _).unwrap();
    fd
}

pub(super) fn import(dev_node: &DevNode, fd: &OwnedFd) -> Result<DmaBuf, Error> {
    // SAFETY: the test's own memory, which no other code touches.
    unsafe { DmaBuf::import(dev_node, fd.as_fd()) }
}

#[test]
fn an_import_that_fails_leaves_nothing() {
    let (kernel, dev_node) = plain();
    let fd = buffer(4096);
    let import = |fd: &OwnedFd| import(&dev_node, fd).map(drop);
    for (call, errno) in [
        ("ioctl(CONTIGO_IMPORT)", libc::ENOSPC),
        ("ioctl(CONTIGO_IMPORT)", libc::EINVAL),
        ("fcntl(F_DUPFD_CLOEXEC)", libc::EMFILE),
    ] {
        kernel.refuse(call, errno);
        assert_eq!(import(&fd), Err(os(call, errno)));
    }
    // It is mapped for the device, and cannot be for this process: read-only, or empty.
    kernel.refuse_none();
    let read_only = File::open(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap().into();
    for (fd, errno) in [(read_only, libc::EACCES), (buffer(0), libc::EINVAL)] {
        assert_eq!(import(&fd), Err(os("mmap(dma-buf)", errno)));
    }
    assert_eq!(kernel.imports(), 0, "released again");
    for (name, len_bytes) in [("a/b", 4096), ("", 4096), (HEAP, 0), ("no-such-heap-here", 4096)] {
        assert!(on_heap(&dev_node, name, len_bytes).is_err(), "{len_bytes} bytes of {name:?}");
    }
}

#[test]
fn imports_are_bounded_and_fix_the_mask() {
    let (kernel, dev_node) = plain();
    let fd = buffer(4096);
    let refused = |errno| Err(os("ioctl(CONTIGO_IMPORT)", errno));
    let mask_refused = |errno| Err(os("ioctl(CONTIGO_SET_DMA_BITS)", errno));
    let once = import(&dev_node, &fd).unwrap();
    assert_eq!(import(&dev_node, &fd).map(drop), refused(libc::EBUSY), "it is mapped already");
    drop(once);
    let mut blocks: Vec<_> = (0..256).map(|_| import(&dev_node, &buffer(4096)).unwrap()).collect();
    assert_eq!(import(&dev_node, &fd).map(drop), refused(libc::ENOSPC));
    blocks.pop();
    drop(import(&dev_node, &fd).unwrap());
    assert_eq!(dev_node.set_addr_bits(32), mask_refused(libc::EBUSY));
    drop(blocks);
    assert_eq!((kernel.imports(), dev_node.set_addr_bits(32)), (0, Ok(())));
    assert_eq!(dev_node.set_addr_bits(31), mask_refused(libc::EINVAL));
}

#[test]
fn scattered_memory_is_no_region() {
    for (run_bytes, pages) in [(4096_u64, 3_u64), (4096, 40), (8192, 5)] {
        let (kernel, dev_node) = opened(DevNodeConfig { run_bytes, ..DevNodeConfig::default() });
        let end = (pages * run_bytes).try_into().unwrap();
        let block = import(&dev_node, &buffer(end)).unwrap();
        for page in 0..pages {
            let run = block.segment((page * run_bytes + 5).try_into().unwrap()).unwrap();
            let addr = 0x1000_0000 + 2 * page * run_bytes + 5;
            assert_eq!((run.addr, run.len_bytes as u64), (addr, run_bytes - 5));
        }
        assert!(matches!(block.segment(end), Err(Error::OutOfRange { start, .. }) if start == end));
        let refused = Region::new(block).unwrap_err();
        assert!(
            matches!(refused.error, Error::NotContiguous { offset_bytes, .. }
                if offset_bytes as u64 == run_bytes),
            "{refused:?}"
        );
        drop(refused);
        assert_eq!(kernel.imports(), 0);
    }
    let (kernel, dev_node) = plain();
    kernel.refuse("ioctl(CONTIGO_GET_SEGMENTS)", libc::EFAULT);
    let refused = Region::new(import(&dev_node, &buffer(4096)).unwrap()).unwrap_err();
    assert_eq!(refused.error, os("ioctl(CONTIGO_GET_SEGMENTS)", libc::EFAULT));
    for more_segments in [1, 17, u32::MAX - 1] {
        let (_kernel, dev_node) =
            opened(DevNodeConfig { more_segments, ..DevNodeConfig::default() });
        let value = u64::from(more_segments.wrapping_add(1));
        let refused = Error::Unexpected { name: "count of CONTIGO_GET_SEGMENTS", value };
        let block = import(&dev_node, &buffer(8192)).unwrap();
        assert_eq!(block.segment(0), Err(refused), "{more_segments} more than there are");
    }
}

/// A sync of one buffer would throw away the CPU's writes to another.
#[test]
fn import_without_snooping_holds_one_buffer() {
    for coherent in [false, true] {
        let (_kernel, dev_node) = opened(DevNodeConfig { coherent, ..DevNodeConfig::default() });
        let region = Region::new(import(&dev_node, &buffer(8192)).unwrap()).unwrap();
        let first = region.alloc(64, Align::LINE).unwrap();
        let second = region.alloc(64, Align::LINE).map(drop);
        if coherent {
            assert_eq!(second, Ok(()));
            continue;
        }
        assert_eq!(second, Err(Error::WholeBlock { shared_bytes: 64 }));
        let (part, _rest) = first.split_at(32).unwrap_or_else(|refused| panic!("{refused:?}"));
        // SAFETY: no device is given the address.
        let refused = unsafe { part.hand_over(&HP0, 32, .., Direction::ToDevice) }.unwrap_err();
        assert!(matches!(refused.error, Error::WholeBlock { .. }), "{refused:?}");
    }
}

#[test]
fn writers_are_waited_for_within_bounds() {
    let (kernel, dev_node) = plain();
    let fd = buffer(4096);
    let written = |micros| {
        // SAFETY: the test's own memory, which no other code touches.
        unsafe { DmaBuf::import_written(&dev_node, fd.as_fd(), Duration::from_micros(micros)) }
            .map(drop)
    };
    assert_eq!([0, 10_000_000].map(written), [Ok(()); 2]);
    // The time is over, which is an answer of ppoll(2) and no error of it; and an error.
    for errno in [libc::ETIMEDOUT, libc::EIO] {
        kernel.refuse("ppoll(dma-buf)", errno);
        assert_eq!(written(1), Err(os("ppoll(dma-buf)", errno)));
    }
    assert_eq!(kernel.imports(), 0, "it was not imported");
}

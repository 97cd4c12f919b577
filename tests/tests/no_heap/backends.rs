//! A thousand jobs on each backend without the heap.

use super::counting::{Uncounted, count, uncounted};
use super::{board, none_on, wide};
use contigo::linux::dev_node::DevNode;
use contigo::linux::memory::{DmaHeap, HugeTlb, UDmaBuf};
use contigo::linux::os::seam::{Fd, Running, SystemCalls};
use contigo::sim::OnBoard;
use contigo::{Align, Direction, Error, Mmio as _, Port, Wait as _};
use contigo_testkit::direct::DirectSync as _;
use contigo_testkit::fake_dev_node::{self, DevNodeConfig, FakeDevNode};
use contigo_testkit::fake_dma_heap::{FakeHeap, HEAP, Pages};
use contigo_testkit::fake_u_dma_buf::{Config, FakeUDmaBuf};
use nix::sys::ioctl::ioctl_num_type;
use std::ffi::{CStr, CString, c_int, c_void};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

#[test]
fn none_on_the_simulated_boards_memory() {
    let board = board();
    none_on("sim", &board, board.port(), true, || board.memory(128 << 10));
    none_on("sim, snooped", &board, board.coherent_port(), true, || board.memory(128 << 10));
}

#[test]
fn none_on_huge_pages() {
    let board = board();
    match HugeTlb::new(1) {
        Ok(block) => drop(block),
        Err(why) => {
            return contigo_testkit::skipped("no_heap::none_on_huge_pages", &why.to_string());
        }
    }
    none_on("hugetlb", &board, wide(&board), true, || OnBoard::new(&board, HugeTlb::new(2 << 20)?));
}

#[test]
fn none_on_u_dma_buf() {
    for (name, config) in [
        ("coherent", Config { coherent: Some(true), ..Config::default() }),
        ("by ioctl", Config::default()),
        ("by sysfs", Config { ioctls: false, ..Config::default() }),
    ] {
        let snooped = config.coherent == Some(true);
        let fake = FakeUDmaBuf::new(Config { size_bytes: 128 << 10, ..config });
        let kernel = Arc::new(Uncounted(fake.module().clone()));
        let board = board();
        let port = Port { coherent: snooped, ..wide(&board) };
        // The fake's bus is not the simulated board's, so a sync that is not snooped brings back
        // nothing of its device.
        none_on(name, &board, port, snooped, || {
            // SAFETY: no address is translated.
            let block = unsafe { UDmaBuf::open_from(kernel, "udmabuf0", Align::LINE, false)? };
            OnBoard::new(&board, block)
        });
        assert_eq!(fake.log().is_empty(), snooped, "the syncs reached the module");
    }
}

#[test]
fn none_on_a_dma_heap() {
    let (board, kernel) = (board(), Arc::new(Uncounted(FakeHeap::new(Pages::Contiguous))));
    none_on("dma-heap", &board, wide(&board), true, || {
        OnBoard::new(&board, DmaHeap::allocate_from(kernel, HEAP, 128 << 10)?)
    });
}

/// The memory of a contigo: of its own, and a dma-heap's where the device snoops. Where it does
/// not, that holds one buffer.
#[test]
fn none_on_a_contigo_device() {
    for coherent in [true, false] {
        let (board, heap) = (board(), Arc::new(Uncounted(FakeHeap::new(Pages::Entry(0)))));
        let fake = FakeDevNode::new(DevNodeConfig { coherent, ..DevNodeConfig::default() });
        let kernel = Arc::new(Uncounted(fake.clone()));
        let (dev_node, allocations) = count(|| DevNode::open_from(kernel, fake_dev_node::NAME));
        let dev_node = dev_node.unwrap();
        let port = Port { coherent, ..wide(&board) };
        assert_eq!(allocations, 0);
        for interrupts in [1, 2] {
            let kernel = FakeDevNode::new(DevNodeConfig { interrupts, ..DevNodeConfig::default() });
            let dev_node =
                DevNode::open_from(Arc::new(Uncounted(kernel)), fake_dev_node::NAME).unwrap();
            let (waited, allocations) = count(|| {
                let (registers, irq) = (dev_node.registers(0)?, dev_node.irq(0)?);
                irq.arm()?;
                irq.wait_at_most(1).map(|()| registers.read32(0))
            });
            assert_eq!((waited, allocations), (Ok(0), 0), "registers and {interrupts} interrupts");
        }
        // The fake's bus is not the simulated board's, so a sync that is not snooped brings back
        // nothing of its device.
        none_on("contigo", &board, port, coherent, || {
            OnBoard::new(&board, dev_node.allocate(128 << 10)?)
        });
        let synced =
            fake.log().iter().any(|event| matches!(event, fake_dev_node::Event::Synced { .. }));
        assert_eq!(synced, !coherent, "the syncs reached the module");
        let (exported, allocations) = count(|| {
            let region = contigo::Region::new(dev_node.allocate(4096)?)?;
            // SAFETY: no other code touches it.
            unsafe { region.export() }
        });
        assert_eq!((exported.is_ok(), allocations), (true, 0), "an export");
        if coherent {
            none_on("dma-heap by a contigo device", &board, port, true, || {
                OnBoard::new(
                    &board,
                    DmaHeap::allocate_for_from(heap.clone(), &dev_node, HEAP, 128 << 10)?,
                )
            });
        }
    }
}

/// The real calls on a fake's files, which are in this folder, also under qemu-user, which answers
/// ENOSYS to an ioctl that it does not know.
struct Real(PathBuf);

// SAFETY: the running kernel's calls, on files of the fake's that no other code has.
unsafe impl SystemCalls for Real {
    fn open(&self, path: &CStr, flags: c_int) -> Result<Fd, i32> {
        // The longer path is this test's; the call is counted.
        let path = uncounted(|| {
            let path = format!("{}{}", self.0.display(), path.to_str().unwrap());
            CString::new(path).unwrap()
        });
        Running.open(&path, flags)
    }

    unsafe fn ioctl(
        &self,
        file: &Fd,
        request: ioctl_num_type,
        argument: *mut c_void,
    ) -> Result<c_int, i32> {
        // SAFETY: the caller's promise.
        let answer = unsafe { Running.ioctl(file, request, argument) };
        answer.map_err(|errno| if errno == libc::ENOSYS { libc::ENOTTY } else { errno })
    }
}

#[test]
fn none_in_the_real_calls_of_u_dma_buf() {
    // A regular file answers ENOTTY to the real ioctls, as an old module does; the attributes are
    // regular files too.
    let fake = FakeUDmaBuf::new(Config { ioctls: false, class: "udmabuf", ..Config::default() });
    let kernel = Arc::new(Real(fake.device_file().ancestors().nth(2).unwrap().to_owned()));
    // SAFETY: no address is translated.
    let open = || unsafe { UDmaBuf::open_from(kernel.clone(), "udmabuf0", Align::LINE, false) };
    let (refused, allocations) = count(|| {
        let block = open().unwrap();
        block.device_sync(4096..8192, Direction::FromDevice).unwrap();
        block.cpu_sync(4096..8192, Direction::FromDevice).unwrap();
        open().map(drop)
    });
    assert_eq!(allocations, 0);
    assert_eq!(refused, Err(Error::InUse { errno: libc::EWOULDBLOCK }));
    for (name, text) in [
        ("sync_offset", "4096"),
        ("sync_size", "4096"),
        ("sync_direction", "2\n"),
        ("sync_for_cpu", "1\n"),
    ] {
        assert_eq!(fs::read_to_string(fake.class_dir().join(name)).unwrap(), text, "{name}");
    }
    assert_eq!(fs::read_to_string(fake.class_dir().join("sync_for_device")).unwrap(), "1\n");
}

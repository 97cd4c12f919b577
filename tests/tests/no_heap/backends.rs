//! A thousand jobs on each backend without the heap.

use super::{
    board,
    counting::{Uncounted, count},
    none_on, wide,
};
use contigo::{
    Mmio as _, Port, Wait as _,
    linux::{
        guard::Guard,
        memory::{DmaHeap, HugeTlb, UDmaBuf, u_dma_buf::seam::Roots},
    },
    sim::OnBoard,
};
use contigo_testkit::{
    emulated,
    fake_dma_heap::{FakeHeap, HEAP, Pages},
    fake_guard::{self, FakeGuard, GuardConfig},
    fake_u_dma_buf::{Config, FakeUDmaBuf},
};
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
        Err(why) => return emulated::skipped("no_heap::none_on_huge_pages", &why.to_string()),
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
        let (class, device) = (fake.class_dir(), fake.device_file());
        let roots = Roots {
            dev: device.parent().unwrap().to_str().unwrap(),
            class: class.ancestors().nth(2).unwrap().to_str().unwrap(),
        };
        let kernel = Arc::new(Uncounted(fake.module().clone()));
        let board = board();
        let port = Port { coherent: snooped, ..wide(&board) };
        // The fake's bus is not the simulated board's, so a sync that is not snooped brings back
        // nothing of its device.
        none_on(name, &board, port, snooped, || {
            // SAFETY: the fake's own folders and module.
            let block = unsafe { UDmaBuf::open_with("udmabuf0", roots, kernel, false)? };
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

/// The memory of a guard: of its own, and a dma-heap's where the device snoops. Where it does not,
/// that holds one buffer.
#[test]
fn none_on_a_guard() {
    for coherent in [true, false] {
        let (board, heap) = (board(), Arc::new(Uncounted(FakeHeap::new(Pages::Entry(0)))));
        let fake = FakeGuard::new(GuardConfig { coherent, ..GuardConfig::default() });
        let kernel = Arc::new(Uncounted(fake.clone()));
        let (guard, allocations) = count(|| Guard::open_from(kernel, fake_guard::NAME));
        let guard = guard.unwrap();
        let port = Port { coherent, ..wide(&board) };
        assert_eq!(allocations, 0);
        for interrupts in [1, 2] {
            let kernel = FakeGuard::new(GuardConfig { interrupts, ..GuardConfig::default() });
            let guard = Guard::open_from(Arc::new(Uncounted(kernel)), fake_guard::NAME).unwrap();
            let (waited, allocations) = count(|| {
                let (registers, irq) = (guard.registers(0)?, guard.irq(0)?);
                irq.arm()?;
                irq.wait_at_most(1).map(|()| registers.read32(0))
            });
            assert_eq!((waited, allocations), (Ok(0), 0), "registers and {interrupts} interrupts");
        }
        // The fake's bus is not the simulated board's, so a sync that is not snooped brings back
        // nothing of its device.
        none_on("guard", &board, port, coherent, || {
            OnBoard::new(&board, guard.allocate(128 << 10)?)
        });
        let synced =
            fake.log().iter().any(|event| matches!(event, fake_guard::Event::Synced { .. }));
        assert_eq!(synced, !coherent, "the syncs reached the module");
        let (exported, allocations) = count(|| {
            let region = contigo::Region::new(guard.allocate(4096)?)?;
            // SAFETY: no other code touches it.
            unsafe { region.export() }
        });
        assert_eq!((exported.is_ok(), allocations), (true, 0), "an export");
        if coherent {
            none_on("dma-heap by a guard", &board, port, true, || {
                OnBoard::new(
                    &board,
                    DmaHeap::allocate_for_from(heap.clone(), &guard, HEAP, 128 << 10)?,
                )
            });
        }
    }
}

//! A child of fork(2) gets no memory and no registers of its parent, so that neither has a second
//! owner.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "fork, and a fake's dma-buf is imported; a test that panics has failed, which is its purpose"
)]

use contigo::{Backend, DmaBuf, DmaHeap, HugeTlb, Mmio};
use contigo_testkit::{
    emulated,
    fake_devices::FakeDevices,
    fake_dma_heap::{FakeHeap, HEAP, Pages},
    fake_guard::{FakeGuard, GuardConfig},
    fake_u_dma_buf::{Config, FakeUDmaBuf},
};
use nix::{
    sys::{
        memfd::{MFdFlags, memfd_create},
        signal::{Signal, kill},
        wait::waitpid,
    },
    unistd::{ForkResult, fork, ftruncate, pause},
};
use std::{fs, os::fd::AsFd, sync::Arc};

/// The mappings of this process, and of a child that it makes now.
fn maps_here_and_in_a_child() -> [String; 2] {
    // SAFETY: the child only waits for its end.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => loop {
            pause();
        },
        ForkResult::Parent { child } => {
            let maps = ["self".into(), child.to_string()].map(|pid| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap());
            kill(child, Signal::SIGKILL).unwrap();
            waitpid(child, None).unwrap();
            maps
        }
    }
}

/// The parent has mapped `what`, a part of a file's name, and a child of it has not.
#[track_caller]
fn stays_with_the_parent(what: &str) {
    let [here, child] = maps_here_and_in_a_child();
    assert!(here.contains(what), "{what} is mapped");
    let inherited: Vec<_> = child.lines().filter(|line| line.contains(what)).collect();
    assert!(inherited.is_empty(), "the child has {inherited:?}");
}

/// QEMU's user mode takes the advice, and keeps it to itself.
fn skipped(test: &str) -> bool {
    emulated::why().inspect(|why| emulated::skipped(&format!("fork::{test}"), why)).is_some()
}

#[test]
fn memory_stays_with_the_parent() {
    if skipped("memory_stays_with_the_parent") {
        return;
    }
    let u_dma_buf = FakeUDmaBuf::new(Config::default());
    let _block = u_dma_buf.open().unwrap();
    stays_with_the_parent(u_dma_buf.device_file().to_str().unwrap());

    let block = DmaHeap::allocate_from(Arc::new(FakeHeap::new(Pages::Contiguous)), HEAP, 4096).unwrap();
    let file = fs::read_link(format!("/proc/self/fd/{}", block.raw_fd())).unwrap();
    stays_with_the_parent(file.to_str().unwrap());

    let guard = FakeGuard::new(GuardConfig::default()).open_guard().unwrap();
    let camera = memfd_create("fork-camera", MFdFlags::MFD_CLOEXEC).unwrap();
    ftruncate(&camera, 4096).unwrap();
    // SAFETY: the test's own memory, which nobody else touches.
    let import = unsafe { DmaBuf::import(&guard, camera.as_fd()) }.unwrap();
    assert_eq!(import.mapping().len_bytes, 4096);
    stays_with_the_parent("fork-camera");

    // Where the machine has them: tests/hugetlb.rs says why not.
    if let Ok(_pages) = HugeTlb::new(1) {
        stays_with_the_parent("anon_hugepage");
    }
}

#[test]
fn registers_stay_with_the_parent() {
    if skipped("registers_stay_with_the_parent") {
        return;
    }
    let tree = FakeDevices::new();
    tree.uio(0, None, "core");
    let (registers, _irq) = tree.open(0).unwrap().into_parts();
    assert_eq!(registers.read32(4), 7);
    stays_with_the_parent(tree.path("dev/uio0").to_str().unwrap());

    let guard = FakeGuard::new(GuardConfig::default()).open_guard().unwrap();
    let registers = guard.registers(0).unwrap();
    assert_eq!(registers.len_bytes(), 0x1000);
    stays_with_the_parent("guard-registers");
}

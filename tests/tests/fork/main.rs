//! A child of fork(2) gets no memory and no registers of its parent, so that neither has a second
//! owner.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "fork, and a fake's dma-buf is imported; a test that panics has failed, which is its \
        purpose"
)]

mod no_syscalls;

use contigo::dlpack::{DataType, Shape, TensorSpec, TensorTable};
use contigo::hw::{Wired, poll_until};
use contigo::linux::Spin;
use contigo::linux::dev_node::DmaBuf;
use contigo::linux::memory::{DmaHeap, HugeTlb};
use contigo::mem::DevSlice;
use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{SimBoard, SimDevice};
use contigo::{
    Align, Backend, Bus, Completion, Device, Driver, Mmio, OperandSpec, Port, Queue, Region, Result,
};
use contigo_testkit::emulated;
use contigo_testkit::fake_dev_node::{DevNodeConfig, FakeDevNode};
use contigo_testkit::fake_devices::FakeDevices;
use contigo_testkit::fake_dma_heap::{FakeHeap, HEAP, Pages};
use contigo_testkit::fake_u_dma_buf::{Config, FakeUDmaBuf};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, ftruncate, pause};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

/// The mappings of this process, and of a child that it makes now.
fn maps_here_and_in_a_child() -> [String; 2] {
    // SAFETY: the child only waits for its end.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => loop {
            pause();
        },
        ForkResult::Parent { child } => {
            let maps = ["self".into(), child.to_string()]
                .map(|pid| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap());
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
    emulated::why().inspect(|why| contigo_testkit::skipped(&format!("fork::{test}"), why)).is_some()
}

#[test]
fn memory_stays_with_the_parent() {
    if skipped("memory_stays_with_the_parent") {
        return;
    }
    let u_dma_buf = FakeUDmaBuf::new(Config::default());
    let _block = u_dma_buf.open().unwrap();
    stays_with_the_parent(u_dma_buf.device_file().to_str().unwrap());

    let block =
        DmaHeap::allocate_from(Arc::new(FakeHeap::new(Pages::Contiguous)), HEAP, 4096).unwrap();
    let file = fs::read_link(format!("/proc/self/fd/{}", block.raw_fd())).unwrap();
    stays_with_the_parent(file.to_str().unwrap());

    let dev_node = FakeDevNode::new(DevNodeConfig::default()).open_dev_node().unwrap();
    let camera = memfd_create("fork-camera", MFdFlags::MFD_CLOEXEC).unwrap();
    ftruncate(&camera, 4096).unwrap();
    // SAFETY: the test's own memory, which no other code touches.
    let import = unsafe { DmaBuf::import(&dev_node, camera.as_fd()) }.unwrap();
    assert_eq!(import.mapping().len_bytes, 4096);
    stays_with_the_parent("fork-camera");
    let own = dev_node.allocate(4096).unwrap();
    assert_eq!(own.mapping().len_bytes % 4096, 0);
    stays_with_the_parent("contigo-memory");

    // Where the machine has them: tests/tests/linux/hugetlb.rs says why not.
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

    let dev_node = FakeDevNode::new(DevNodeConfig::default()).open_dev_node().unwrap();
    let registers = dev_node.registers(0).unwrap();
    assert_eq!(registers.len_bytes(), 0x1000);
    stays_with_the_parent("contigo-registers");
}

/// The end of a child that does `act`, which neither allocates nor panics.
fn in_a_child(act: impl FnOnce()) -> WaitStatus {
    // SAFETY: the child ends without a destructor.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            act();
            // SAFETY: the child ends here.
            unsafe { nix::libc::_exit(0) }
        }
        ForkResult::Parent { child } => waitpid(child, None).unwrap(),
    }
}

const DONE: usize = 0x100;
const STOPS: usize = 0x104;
const LIMIT: Duration = Duration::from_millis(20);

/// A driver of registers that are a file's: the test ends its jobs, and sees its stops.
struct Counts<D> {
    device: D,
    told: u32,
}

// SAFETY: there is no device.
unsafe impl<D: Device> Driver for Counts<D> {
    contigo::forward!(|this| this.device => port, simulated);
    fn name(&self) -> &'static str {
        "counts"
    }
    fn addr_bits(&self) -> u32 {
        32
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::from_device()] }
    }
    fn depth(&self) -> usize {
        4
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<()> {
        Ok(())
    }
    unsafe fn submit(&mut self, _: usize, _: &[DevSlice], _: &[u32]) -> Result<()> {
        Ok(())
    }
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let told = self.told;
        let ended = poll_until(&self.device, timeout, |device| device.read32(DONE) != told)?;
        self.told += u32::from(ended);
        Ok(ended.then_some(Completion::of(told as usize % 4)))
    }
    fn stop(&mut self) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.device.write32(STOPS, self.device.read32(STOPS) + 1) };
        self.told = self.device.read32(DONE);
        Ok(())
    }
}

/// A child has the value of its parent's queue, and no registers: what it does with the queue ends
/// it before anything of a job is touched.
#[test]
fn queue_in_child_takes_and_stops_nothing() {
    if skipped("queue_in_child_takes_and_stops_nothing") {
        return;
    }
    let tree = FakeDevices::new();
    tree.uio(0, None, "core");
    let (registers, _irq) = tree.open(0).unwrap().into_parts();
    let module = FakeUDmaBuf::new(Config::default());
    let region = Region::new(module.open().unwrap()).unwrap();
    let pool = region.pool(4, 256).unwrap();
    let port = Port {
        name: "fake",
        bus: Bus::Soc,
        offset: 0,
        addr_bits: 32,
        window: (0, u64::from(u32::MAX)),
        coherent: false,
    };
    // SAFETY: no device is behind the registers.
    let device = unsafe { Wired::new(registers, Spin, port) };
    let mut queue = Queue::new(Counts { device, told: 0 }, 4).unwrap();
    for _ in 0..2 {
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    let ended = |jobs: u32| {
        let file = fs::File::options().write(true).open(tree.path("dev/uio0")).unwrap();
        file.write_all_at(&jobs.to_le_bytes(), DONE as u64).unwrap();
    };
    let stops = || tree.word("dev/uio0", STOPS as u64);
    ended(1);
    let before = (stops(), queue.counts());
    let fault = |status| {
        assert!(matches!(status, WaitStatus::Signaled(_, Signal::SIGSEGV, _)), "{status:?}")
    };
    fault(in_a_child(|| drop(queue.wait::<1>(Duration::ZERO))));
    fault(in_a_child(|| drop(queue.wait_device::<1>(Duration::ZERO))));
    fault(in_a_child(|| _ = queue.stop()));
    fault(in_a_child(|| _ = queue.clear()));
    fault(in_a_child(|| {
        // SAFETY: the child's copy, which it does not use again.
        drop(unsafe { std::ptr::read(&raw const queue) });
    }));
    assert_eq!((stops(), queue.counts(), queue.len()), (before.0, before.1, 2));
    assert_eq!(queue.wait::<1>(LIMIT).unwrap().map(|done| done.job), Some(0));
    assert!(queue.wait::<1>(Duration::ZERO).unwrap().is_none(), "the second goes on");
    ended(2);
    assert_eq!(queue.wait::<1>(LIMIT).unwrap().map(|done| done.job), Some(1));
}

/// A framework in a child calls the deleter of a tensor whose holder has gone: the buffer is the
/// parent's, who gets it back when its own framework calls the deleter.
#[test]
fn a_deleter_in_a_child_gives_nothing_back() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let region = Region::new(SimBoard::new(1).memory(64 * 1024).unwrap()).unwrap();
    let spec = TensorSpec::new(DataType::U8, Shape::new(&[64]).unwrap());
    let mut lent = TENSORS.lend(region.alloc(64, Align::LINE).unwrap(), &spec).unwrap();
    let tensor = lent.tensor().unwrap().as_ptr();
    drop(lent);
    // SAFETY: the tensor is out, and each process has its own.
    let delete = || unsafe { ((*tensor).deleter.unwrap())(tensor) };
    let ended = in_a_child(delete);
    assert!(matches!(ended, WaitStatus::Exited(_, 0)), "{ended:?}");
    assert_eq!((region.users(), TENSORS.taken()), (2, 1));
    delete();
    assert_eq!((region.users(), TENSORS.taken(), TENSORS.misuses()), (1, 0, 0));
}

/// On the simulated board a child has a copy of the board. It has none of the queue's jobs.
#[test]
fn sim_queue_in_child_leaves_parents_jobs() {
    if skipped("sim_queue_in_child_leaves_parents_jobs") {
        return;
    }
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let pool = region.pool(4, 256).unwrap();
    let device = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue = Queue::new(device.window().unwrap().simple().unwrap(), 4).unwrap();
    let mut from = pool.take().unwrap();
    from.view_mut::<u8>().unwrap().fill(7);
    queue.submit([from.to_device(..), pool.take().unwrap().from_device(..)], &[]).unwrap();
    let ended = in_a_child(|| drop(queue.wait::<2>(LIMIT)));
    assert!(matches!(ended, WaitStatus::Signaled(_, Signal::SIGSEGV, _)), "{ended:?}");
    assert_eq!(
        (queue.len(), board.now_ns() < 1_000_000, pool.taken()),
        (1, true, 2),
        "nothing of it reached the parent"
    );
    let [_, to] = queue.wait::<2>(LIMIT).unwrap().unwrap().buffers;
    assert_eq!(to.view::<u8>().unwrap(), [7; 256]);
}

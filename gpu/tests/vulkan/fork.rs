//! A child of fork, which has the parent's objects and none of its driver's threads.

use super::{
    LIMIT, kernel, region,
    shaders::{XOR, compiled, xor},
    with_shader,
};
use contigo::{
    Backend, DevAddr, Driver, Error, Queue, job::Launch, mem::DevSlice, types::BaseAddr,
};
use contigo_gpu::{
    Pages,
    vulkan::{VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule},
};
use nix::{
    sys::wait::{WaitStatus, waitpid},
    unistd::{ForkResult, fork},
};
use std::{
    env,
    process::{self, Command},
    sync::atomic::{AtomicUsize, Ordering},
};

const CHILD: &str = "CONTIGO_VULKAN_FORKS";

/// Pages whose end is counted.
struct Counted(Pages);

static DROPPED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all of it is the pages'.
unsafe impl Backend for Counted {
    contigo::forward!(|this| this.0 => name, mapping, sync_for_device, sync_for_cpu);
}

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

/// In a process of its own, which has one thread of this program's.
#[test]
fn a_child_of_fork_is_told_so() {
    const TEST: &str = "fork::a_child_of_fork_is_told_so";
    if env::var_os(CHILD).is_some() {
        return forks(TEST);
    }
    if with_shader(TEST, XOR).is_none() {
        return;
    }
    let mut child = Command::new(env::current_exe().unwrap());
    let said = child
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(
        said.status.success() && String::from_utf8_lossy(&said.stdout).contains("@fork told all"),
        "{said:?}"
    );
}

fn forks(test: &str) {
    let (gpu, module) = with_shader(test, XOR).unwrap();
    let spirv = compiled(XOR).unwrap();
    let memory = VulkanMemory::import(gpu, Counted(Pages::new(1).unwrap())).unwrap();
    let region = region(gpu, 64 << 10);
    let pool = region.pool(2, 4_096).unwrap();
    let words = Launch::of(16, 64).with(&[1_024, 1]);
    // The parent's own. A child has neither a region's account nor a queue's, and touches none of
    // it.
    let mut running = Queue::new(kernel(&module, xor()), 1).unwrap();
    running
        .submit([pool.take().unwrap().to_device(..), pool.take().unwrap().from_device(..)], &words)
        .unwrap();
    // Both have these: a driver with a job under way, and an idle one.
    let [mut busy, mut idle] = [(); 2].map(|()| kernel(&module, xor()));
    let BaseAddr::Dev(base) = memory.mapping().base else { panic!("{:?}", memory.mapping()) };
    let operands = [0, 4_096].map(|at| DevSlice {
        addr: DevAddr(base.0 + at),
        offset_bytes: 0,
        len_bytes: 4_096,
    });
    busy.check(&operands, &words).unwrap();
    // SAFETY: the bytes are this job's until it has ended, below.
    unsafe { busy.submit(0, &operands, &words) }.unwrap();

    let forked = Error::Forked { owner_pid: process::id() };
    // SAFETY: the child calls nothing of the driver, as is seen here, and ends by itself.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            // SAFETY: it ends this process where something waits for ever.
            unsafe { libc::alarm(60) };
            let told = |told: bool, line| {
                if !told {
                    // SAFETY: the handlers of an exit are the parent's, and are left out.
                    unsafe { libc::_exit(line) }
                }
            };
            told(VulkanGpu::open(0).err() == Some(forked), 1);
            told(
                (VulkanGpu::count().err(), VulkanGpu::list().err()) == (Some(forked), Some(forked)),
                2,
            );
            told(
                VulkanMemory::import(gpu, Pages::new(1).unwrap())
                    .is_err_and(|refused| refused.error == forked),
                3,
            );
            // SAFETY: glslangValidator made it.
            told(unsafe { VulkanModule::load(gpu, &spirv) }.err() == Some(forked), 4);
            // SAFETY: it is never made.
            told(
                unsafe { VulkanKernel::new(&module, c"main", xor(), [64, 1, 1]) }.err()
                    == Some(forked),
                5,
            );
            told(idle.check(&operands, &words).err() == Some(forked), 6);
            // SAFETY: it is refused.
            told(unsafe { idle.submit(0, &operands, &words) }.err() == Some(forked), 7);
            told((busy.poll(LIMIT).err(), busy.stop().err()) == (Some(forked), Some(forked)), 8);
            told(gpu.is_hung(), 9);
            drop((memory, busy, idle));
            // Its bytes are the parent's, and so is its object.
            told(DROPPED.load(Ordering::SeqCst) == 0, 10);
            drop(module);
            // SAFETY: as above.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
            // Nothing of it has hurt the parent.
            assert!(busy.poll(LIMIT).unwrap().is_some());
            let [_, output] = running.wait(LIMIT).unwrap().unwrap().buffers;
            assert!(output.view::<u32>().unwrap().iter().all(|word| *word == 1));
            drop(memory);
            assert!(DROPPED.load(Ordering::SeqCst) == 1 && !gpu.is_hung());
            println!("@fork told all");
        }
    }
}

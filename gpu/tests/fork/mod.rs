//! A child of fork has the parent's objects, and none of its driver's threads: it calls nothing of
//! the driver. Both interfaces have this test; `super` has what their child is refused.

use super::child::{child, is_child};
use super::fork::{answers, said_by};
use super::{Gpu, Kernel, LIMIT, Memory, Opened, opened};
use contigo::job::Launch;
use contigo::mem::DevSlice;
use contigo::types::BaseAddr;
use contigo::{Backend, Driver, Error, Queue};
use contigo_gpu::Pages;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pages whose end is counted.
pub(crate) struct Counted(Pages);

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

/// What a child has of its parent.
pub(crate) struct Inherited<'o> {
    pub(crate) opened: &'o Opened,
    pub(crate) memory: &'o Memory<Counted>,
    /// With a job under way.
    pub(crate) busy: &'o mut Kernel,
    pub(crate) operands: &'o [DevSlice],
    pub(crate) words: &'o [u32],
    /// The code of `scale`.
    pub(crate) code: &'o [u8],
}

/// In a process of its own, which has one thread of this program's.
#[test]
fn a_child_of_fork_is_told_so() {
    if is_child() {
        return forks();
    }
    if opened().is_some() {
        let said = said_by(child());
        assert!(said.contains("@fork told all"), "{said}");
    }
}

fn forks() {
    let opened = opened().unwrap();
    let (code, ..) = opened.code_of_scale();
    let memory = Memory::import(opened.gpu, Counted(Pages::new(1).unwrap())).unwrap();
    let region = opened.region(1 << 16);
    // Each word times 3, and 1 more.
    let words = Launch::of(16, 64).with(&[1_024, 3]);
    // The parent's own: one job gave its buffer back, one left it with the device, and one is under
    // way. A child has neither a region's account nor a queue's, and touches none of it.
    let mut queue = Queue::new(opened.scale(), 1).unwrap();
    let [done, kept, mut under_way] =
        [(); 3].map(|()| region.alloc(4_096, opened.align()).unwrap());
    under_way.view_mut::<u32>().unwrap().fill(5);
    drop(queue.run([done.in_out(..)], &words, LIMIT).unwrap());
    queue.submit([kept.in_out(..)], &words).unwrap();
    let [kept] = queue.wait_device(LIMIT).unwrap().unwrap().buffers;
    queue.submit([under_way.in_out(..)], &words).unwrap();
    // Both have these: a driver with a job under way, and an idle one.
    let [mut busy, mut idle] = [(); 2].map(|()| opened.scale());
    let BaseAddr::Dev(addr) = memory.mapping().base else { panic!("{:?}", memory.mapping()) };
    let operands = [DevSlice { addr, offset_bytes: 0, len_bytes: 4_096 }];
    busy.check(&operands, &words).unwrap();
    // SAFETY: the bytes are this job's until it has ended, below.
    unsafe { busy.submit(0, &operands, &words) }.unwrap();

    let forked = Error::Forked { owner_pid: process::id() };
    // SAFETY: the child calls nothing of the driver, and ends by itself.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            // SAFETY: it ends this process where something waits for ever.
            unsafe { libc::alarm(60) };
            let told = |told: bool, line: i32| {
                if !told {
                    // SAFETY: the handlers of an exit are the parent's, and are left out.
                    unsafe { libc::_exit(line) }
                }
            };
            told(Gpu::open(0).err() == Some(forked), 1);
            let mut child = Inherited {
                opened: &opened,
                memory: &memory,
                busy: &mut busy,
                operands: &operands,
                words: &words,
                code: &code,
            };
            for (answer, line) in answers(&mut child).into_iter().zip(100..) {
                told(answer == Err(forked), line);
            }
            // SAFETY: it is refused.
            told(unsafe { idle.submit(0, &operands, &words) } == Err(forked), 2);
            let stopped = busy.stop();
            told(stopped == Err(forked) || matches!(stopped, Err(Error::WillNotStop { .. })), 3);
            drop((memory, busy, idle));
            // Its bytes are the parent's, and so is its object.
            told(DROPPED.load(Ordering::SeqCst) == 0, 4);
            drop(opened);
            // SAFETY: as above.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
            // Nothing of it has hurt the parent.
            assert!(busy.poll(LIMIT).unwrap().is_some() && kept.into_cpu().is_ok());
            let [under_way] = queue.wait(LIMIT).unwrap().unwrap().buffers;
            assert!(under_way.view::<u32>().unwrap().iter().all(|word| *word == 16));
            drop(memory);
            assert_eq!(DROPPED.load(Ordering::SeqCst), 1);
            println!("@fork told all");
        }
    }
}

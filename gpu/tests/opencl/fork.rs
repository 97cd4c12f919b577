//! A child of fork has the parent's objects, and none of its driver's threads: it calls nothing of
//! the driver. (A library before the machine's loader ends it there with 77.)

use super::{
    WAIT,
    broken::{BROKEN, said, words},
    built, child, device, in_place, is_child,
    memory::Part,
    module, region, run_there,
};
use contigo::{
    Backend, Direction, Driver, Error, OperandSpec, Queue,
    job::{Parameter::Operand, Signature},
    mem::DevSlice,
    types::BaseAddr,
};
use contigo_gpu::opencl::{Log, OpenClGpu, OpenClKernel, OpenClMemory, OpenClModule};
use contigo_testkit::emulated;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_child_of_fork_is_told_so() {
    const THIS: &str = "fork::a_child_of_fork_is_told_so";
    if !is_child() {
        if device(THIS).is_none() {
            return;
        }
        let mut child = child(THIS);
        let library = built("broken", "-Wl,--no-as-needed,-l:libOpenCL.so.1");
        if let Ok(library) = &library {
            child.env("OPENCL_DYLIB_PATH", library).env(BROKEN, "forked");
        }
        let said = said(child);
        assert!(said.contains("CHILD of fork: Ok(0)"), "{said}");
        return library.map_or_else(
            |why| emulated::skipped(THIS, &why),
            |library| std::fs::remove_file(library).unwrap(),
        );
    }
    let gpu = device(THIS).unwrap();
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let (memory, owner_pid) =
        (OpenClMemory::import(gpu, Part::new(0, 1 << 16, &DROPPED)).unwrap(), std::process::id());
    let module = module(gpu);
    let region = region(gpu, 1 << 16);
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    // The parent's own: one job gave its buffer back, one left it with the device, and one is under
    // way. A child has neither a region's account nor a queue's, and touches none of it.
    let [done, kept, under_way] = [(); 3].map(|()| region.alloc(4096, gpu.align()).unwrap());
    drop(queue.run([done.in_out(..)], &words(), WAIT).unwrap());
    let [kept] = run_there(&mut queue, [kept.in_out(..)], &words());
    queue.submit([under_way.in_out(..)], &words()).unwrap();
    // Both have these: a driver with a job under way, and an idle one.
    let [mut busy, mut idle] = [(); 2].map(|()| in_place(&module, "flip", c"flip"));
    let BaseAddr::Dev(addr) = memory.mapping().base else { panic!("{:?}", memory.mapping()) };
    let operands = [DevSlice { addr, offset_bytes: 0, len_bytes: 4096 }];
    busy.check(&operands, &words()).unwrap();
    // SAFETY: the bytes are this job's until it has ended, below.
    unsafe { busy.submit(0, &operands, &words()) }.unwrap();
    // SAFETY: the child calls nothing of the driver, as is seen here, and ends by itself.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            let forked = Err(Error::Forked { owner_pid });
            let told = OpenClGpu::open(0).map(drop) == forked;
            // SAFETY: nothing is handed over.
            let handed = unsafe {
                [
                    memory.sync_for_device(0..4096, Direction::Bidirectional),
                    memory.sync_for_cpu(0..4096, Direction::Bidirectional),
                ]
            };
            let refused = handed == [forked; 2] && memory.settled(0..4096) == forked;
            // SAFETY: it is refused.
            let refused = refused && unsafe { idle.submit(0, &operands, &words()) } == forked;
            // SAFETY: the source of the parent's; its kernel works in place.
            let build =
                unsafe { OpenClModule::build(gpu, super::SOURCE, c"", &mut Log::new()) }.map(drop);
            let signature = Signature::new("flip", &[Operand(OperandSpec::in_out())]).unwrap();
            // SAFETY: as above.
            let kernel = unsafe { OpenClKernel::new(&module, c"flip", signature) }.map(drop);
            let refused = refused && [build, kernel] == [forked; 2];
            let refused = refused && matches!(busy.stop(), Err(Error::WillNotStop { .. }));
            drop((busy, idle, memory));
            drop(module);
            // Its bytes are the parent's, and so is its object.
            let told = told && refused && DROPPED.load(Ordering::SeqCst) == 0;
            // SAFETY: ends this process without its exit handlers, which are the parent's.
            unsafe { nix::libc::_exit(i32::from(!told)) };
        }
        nix::unistd::ForkResult::Parent { child } => {
            let status = nix::sys::wait::waitpid(child, None).unwrap();
            let code = match status {
                nix::sys::wait::WaitStatus::Exited(_, code) => Ok(code),
                other => Err(other),
            };
            println!("CHILD of fork: {code:?}");
            // Nothing of it has hurt the parent.
            assert!(busy.poll(WAIT).unwrap().is_some() && kept.into_cpu().is_ok());
            let [_under_way] = queue.wait(WAIT).unwrap().unwrap().buffers;
            drop(memory);
            assert_eq!(DROPPED.load(Ordering::SeqCst), 1);
        }
    }
}

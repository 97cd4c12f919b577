#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]
//! Jobs that do not end and devices that are lost, on a driver that is none: what stays, and what
//! goes again.

use super::super::{VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule};
use super::fake::{self, live, state};
use super::{LIMIT, buffers_of, clean, gpu, kernel, module};
use crate::Pages;
use ash::vk;
use contigo::job::{Launch, Words};
use contigo::types::BaseAddr;
use contigo::{Error, Operand, Queue, Region};

const LOST: Error = Error::Gpu { call: "vkGetFenceStatus", code: -4, name: "VK_ERROR_DEVICE_LOST" };

/// The driver's answer about a fence in the queue, from now on.
fn fences(answer: vk::Result) {
    state(|state| state.fences = answer);
}

fn wrong() -> Vec<String> {
    state(|state| state.wrong.clone())
}

fn queue(module: &VulkanModule) -> Queue<VulkanKernel> {
    Queue::new(kernel(module).unwrap(), 1).unwrap()
}

fn region(gpu: &'static VulkanGpu) -> Region {
    Region::new(VulkanMemory::allocate(gpu, 1).unwrap()).unwrap()
}

fn operands(region: &Region) -> [Operand; 2] {
    let [from, to] = buffers_of(region);
    [from.to_device(..), to.from_device(..)]
}

fn words() -> Words {
    Launch::of(1, 64).with(&[0; 3])
}

/// Memory that may still be written stays mapped, and so does all else of that device.
fn stays(gpu: &'static VulkanGpu, end: impl FnOnce(Queue<VulkanKernel>, [Operand; 2])) {
    let module = module(gpu).unwrap();
    let (queue, region) = (queue(&module), region(gpu));
    let before = live();
    let BaseAddr::Dev(base) = region.base() else { panic!("{:?}", region.base()) };
    let first = region.host_ptr_of(&gpu.port(), base).unwrap();
    end(queue, operands(&region));
    drop((region, module));
    assert_eq!((live(), wrong()), (before, vec![]));
    // SAFETY: it was leaked.
    assert_eq!(unsafe { first.read_volatile() }, 0);
}

#[test]
fn a_lost_device_is_told_and_keeps_everything() {
    let gpu = gpu();
    stays(gpu, |mut queue, operands| {
        queue.submit(operands, &words()).unwrap();
        fences(vk::Result::ERROR_DEVICE_LOST);
        let failed = queue.wait::<2>(LIMIT).unwrap_err();
        assert_eq!(failed.cause, LOST);
        assert!(
            matches!(failed.error, Error::WillNotStop { device: "moved", status: 0xFFFF_FFFC, .. }),
            "{failed:?}"
        );
        assert!(failed.buffers.is_none() && gpu.is_hung());
        // It does not come back, whatever a fence says later.
        fences(vk::Result::SUCCESS);
        assert!(matches!(queue.stop(), Err(Error::WillNotStop { .. })) && queue.len() == 1);
    });
}

/// A fence of a lost device may be signalled, and no other kernel's job is reported as ended by it.
#[test]
fn a_fence_of_a_lost_device_is_not_believed() {
    let gpu = gpu();
    let (module, region) = (module(gpu).unwrap(), region(gpu));
    let [mut first, mut second] = [(); 2].map(|()| queue(&module));
    first.submit(operands(&region), &words()).unwrap();
    second.submit(operands(&region), &words()).unwrap();
    fences(vk::Result::ERROR_DEVICE_LOST);
    assert!(first.wait::<2>(LIMIT).is_err() && gpu.is_hung());
    fences(vk::Result::SUCCESS);
    let failed = second.wait::<2>(LIMIT).unwrap_err();
    assert_eq!(failed.cause, LOST);
    assert!(
        matches!(failed.error, Error::WillNotStop { status: 0xFFFF_FFFC, .. })
            && failed.buffers.is_none(),
        "{failed:?}"
    );
}

#[test]
fn refused_job_comes_back_or_queue_is_lost() {
    let gpu = gpu();
    let (module, region) = (module(gpu).unwrap(), region(gpu));
    let mut queue = queue(&module);
    state(|state| state.failing = Some(("submit", 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY)));
    let refused = queue.submit(operands(&region), &words()).unwrap_err();
    assert!(
        matches!(refused.error, Error::Gpu { call: "vkQueueSubmit", code: -1, .. }),
        "{refused:?}"
    );
    drop(refused.buffers.unwrap());
    drop(queue.run(operands(&region), &words(), LIMIT).unwrap());
    drop((queue, region, module));
    clean();

    for answer in [vk::Result::ERROR_DEVICE_LOST, vk::Result::ERROR_UNKNOWN] {
        let gpu = self::gpu();
        state(|state| *state = fake::State::default());
        state(|state| state.failing = Some(("submit", 1, answer)));
        stays(gpu, |mut queue, operands| {
            let refused = queue.submit(operands, &words()).unwrap_err();
            assert!(
                matches!(refused.error, Error::WillNotStop { .. }) && refused.buffers.is_none(),
                "{refused:?}"
            );
            assert!(gpu.is_hung());
        });
    }
}

#[test]
fn endless_job_is_waited_for_with_a_limit() {
    let gpu = gpu();
    stays(gpu, |mut queue, operands| {
        fences(vk::Result::NOT_READY);
        let failed = queue.run(operands, &words(), LIMIT).unwrap_err();
        assert!(
            matches!(
                failed.error,
                Error::WillNotStop { device: "moved", status: 1, waited_us: 5_000.. }
            ),
            "{failed:?}"
        );
        assert_eq!(failed.cause, Error::Timeout { timeout_us: 5_000 });
        assert!(failed.buffers.is_none() && gpu.is_hung());
    });
}

/// A kernel that is dropped under its job: its queue asks it to stop, and leaves it alone.
fn forget(module: &VulkanModule, region: &Region) {
    queue(module).submit(operands(region), &words()).unwrap();
}

#[test]
fn late_end_of_forgotten_job_ends_leaking() {
    let gpu = gpu();
    let (module, region) = (module(gpu).unwrap(), region(gpu));
    fences(vk::Result::NOT_READY);
    forget(&module, &region);
    forget(&module, &region);
    assert!(gpu.is_hung());
    let before = live();
    drop(VulkanMemory::allocate(gpu, 1).unwrap());
    assert_eq!(live().len(), before.len() + 2, "memory was freed beside a job that goes on");
    fences(vk::Result::SUCCESS);
    assert!(!gpu.is_hung());
    for _ in 0..2 * 256 {
        drop(VulkanMemory::allocate(gpu, 1).unwrap());
    }
    assert_eq!((live().len(), wrong()), (before.len() + 2, vec![]));
}

/// 16 forgotten kernels are looked at again, whose places are free then. One more hangs for ever.
#[test]
fn too_many_forgotten_kernels_hang_for_ever() {
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 128 * 4_096).unwrap()).unwrap();
    for (count, hangs) in [(16, false), (1, false), (17, true)] {
        fences(vk::Result::NOT_READY);
        (0..count).for_each(|_| forget(&module, &region));
        assert!(gpu.is_hung());
        fences(vk::Result::SUCCESS);
        assert_eq!(gpu.is_hung(), hangs, "{count}");
    }
    let before = live().len();
    drop(VulkanMemory::allocate(gpu, 1).unwrap());
    assert_eq!(live().len(), before + 2);
}

/// An import that fails beside such a job gives the memory back, and frees nothing of the driver's.
#[test]
fn failed_import_in_hang_leaks_driver_part() {
    let gpu = gpu();
    let (module, region) = (module(gpu).unwrap(), region(gpu));
    let mut queue = queue(&module);
    fences(vk::Result::NOT_READY);
    drop(queue.run(operands(&region), &words(), LIMIT).unwrap_err());
    let before = live().len();
    state(|state| state.failing = Some(("bind_memory", 2, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)));
    let refused = VulkanMemory::import(gpu, Pages::new(1).unwrap()).unwrap_err();
    assert!(matches!(refused.error, Error::Gpu { call: "vkBindBufferMemory", .. }), "{refused:?}");
    // A full table refuses what was imported.
    let full = std::iter::repeat_with(|| VulkanMemory::allocate(gpu, 1)).find_map(Result::err);
    assert!(matches!(full, Some(Error::TooMany { most: 256, .. })), "{full:?}");
    // Beside the region 255 blocks and the two that were refused: a buffer and its memory each.
    assert_eq!((live().len() - before, wrong()), (2 * (255 + 2), vec![]));
}

/// It ends after all: then nothing was lost.
#[test]
fn a_job_that_ends_late_frees_everything() {
    let gpu = gpu();
    let (module, region) = (module(gpu).unwrap(), region(gpu));
    let mut queue = queue(&module);
    fences(vk::Result::NOT_READY);
    drop(queue.run(operands(&region), &words(), LIMIT).unwrap_err());
    assert!(gpu.is_hung());
    fences(vk::Result::SUCCESS);
    assert!(queue.take_back::<2>().unwrap().is_none());
    queue.stop().unwrap();
    assert!(!gpu.is_hung());
    // The job's buffers stayed with the queue, and come back now.
    drop(queue.take_back::<2>().unwrap().unwrap());
    drop((queue, region, module));
    clean();
}

//! A job that never ends, in a child process: it is reported in time, and everything stays.

use super::child::{child, ends_in_time, has_seen_it_all, is_child, is_mapped, said_until_end};
use super::shaders::{ENDLESS, SCALE, scale};
use super::{kernel, region, with_shader};
use contigo::job::Parameter::Operand;
use contigo::job::{Launch, Signature};
use contigo::{Error, OperandSpec, Queue, Region};
use contigo_gpu::vulkan::VulkanMemory;
use std::time::{Duration, Instant};

#[test]
fn endless_queue_is_told_and_keeps_all() {
    if is_child() {
        return as_child();
    }
    if with_shader(ENDLESS).is_some() {
        said_until_end(child());
    }
}

fn first_byte(region: &Region) -> usize {
    let contigo::types::BaseAddr::Dev(base) = region.base() else { panic!("{:?}", region.base()) };
    let port = contigo_gpu::vulkan::VulkanGpu::open(0).unwrap().port();
    region.host_ptr_of(&port, base).unwrap().as_ptr().addr()
}

fn as_child() {
    ends_in_time();
    const LIMIT: Duration = Duration::from_millis(300);
    let Some((gpu, module)) = with_shader(ENDLESS) else { return };
    let Some((_, other)) = with_shader(SCALE) else { return };
    let bystander = kernel(&other, scale());
    let operand = OperandSpec { min_bytes: 4 * 65, ..OperandSpec::in_out() };
    let signature = Signature::new("endless", &[Operand(operand)]).unwrap();
    let endless = kernel(&module, signature).stopping_within(LIMIT);
    let mut queue = Queue::new(endless, 1).unwrap();
    let (whole, idle) = (region(gpu, 64 << 10), region(gpu, 64 << 10));
    let (addr, idle_addr) = (first_byte(&whole), first_byte(&idle));
    let buffer = whole.alloc(4_096, gpu.align()).unwrap();
    let groups = gpu.facts().max_groups;
    let launch = Launch {
        grid: [groups[0].min(65_535), groups[1].min(65_535), 1],
        block: [64, 1, 1],
        shared_bytes: 0,
    };

    let since = Instant::now();
    queue.submit([buffer.in_out(..)], &launch.with(&[])).unwrap();
    let submitted = since.elapsed();
    // The look ends in time, and stops nothing.
    let looked = queue.wait::<1>(LIMIT);
    assert!(matches!(looked, Ok(None)), "{looked:?}");
    // The stop ends in time too.
    let failed = queue.stop().unwrap_err();
    let took = since.elapsed();
    println!("submit {submitted:?}, wait and stop {took:?}: {failed:?}");
    assert!(submitted < Duration::from_secs(5), "{submitted:?}");
    assert!(took >= 2 * LIMIT && took < Duration::from_secs(10), "{took:?}");
    let Error::WillNotStop { device: "endless", status: 1, waited_us } = failed else {
        panic!("{failed:?}")
    };
    assert!(u128::from(waited_us) >= LIMIT.as_micros() && waited_us < 5_000_000, "{waited_us}");
    assert!(queue.len() == 1 && queue.is_stopped() && gpu.is_hung());
    assert!(queue.take_back::<1>().unwrap().is_none(), "a buffer of a job that goes on");

    // It blocks neither a second stop, nor the drops, nor an allocation.
    assert!(matches!(queue.stop(), Err(Error::WillNotStop { .. })));
    let since = Instant::now();
    drop(queue);
    drop(whole);
    drop(idle);
    drop(bystander);
    VulkanMemory::allocate(gpu, 1).map(drop).unwrap();
    drop((module, other));
    assert!(since.elapsed() < Duration::from_secs(5));
    assert!(is_mapped(addr), "memory of a job that goes on was freed");
    assert!(is_mapped(idle_addr), "memory was freed beside a job that goes on");
    assert!(gpu.is_hung());
    has_seen_it_all();
}

//! A job that never ends, in a child process: it is reported in time, and everything stays.

use super::{
    kernel, region,
    shaders::{ENDLESS, SCALE, scale},
    skipped, with_shader,
};
use contigo::{
    Error, OperandSpec, Queue, Region,
    job::{Launch, Parameter::Operand, Signature},
};
use contigo_gpu::vulkan::VulkanMemory;
use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

const CHILD: &str = "CONTIGO_VULKAN_HANGS";
/// The beginning of each line that the child writes.
const SAYS: &str = "@hang ";
const END: &str = "@hang all of it stays";

#[test]
fn endless_queue_is_told_and_keeps_all() {
    const TEST: &str = "hang::endless_queue_is_told_and_keeps_all";
    if with_shader(TEST, ENDLESS).is_none() {
        return;
    }
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "hang::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (tell, told) = mpsc::channel();
    let output = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
    });
    let (deadline, mut lines) = (Instant::now() + Duration::from_secs(120), Vec::new());
    let ended = loop {
        match told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) if line.contains(END) => break true,
            Ok(line) => lines.push(line),
            Err(_) => break false,
        }
    };
    // A device's thread may keep it from ending by itself.
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = reader.join();
    assert!(ended, "the child said no more than: {lines:#?}");
    if let Some(line) = lines.iter().find(|line| line.contains("ended by itself")) {
        skipped(TEST, line);
    }
}

fn say(line: &str) {
    println!("{SAYS}{line}");
}

/// Is the page that has this byte still mapped?
fn is_mapped(addr: usize) -> bool {
    let hex = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter_map(|line| line.split_once(' ')?.0.split_once('-'))
        .any(|(from, to)| (hex(from)..hex(to)).contains(&addr))
}

fn first_byte(region: &Region) -> usize {
    let contigo::types::BaseAddr::Dev(base) = region.base() else { panic!("{:?}", region.base()) };
    let port = contigo_gpu::vulkan::VulkanGpu::open(0).unwrap().port();
    region.host_ptr_of(&port, base).unwrap().as_ptr().addr()
}

/// The child: nothing where it is not one.
#[test]
fn child() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    const LIMIT: Duration = Duration::from_millis(300);
    let Some((gpu, module)) = with_shader("hang::child", ENDLESS) else { return };
    let Some((_, other)) = with_shader("hang::child", SCALE) else { return };
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
    say(&format!("submit {submitted:?}, wait and stop {took:?}: {failed:?}"));
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
    say(&format!("dropped in {:?}", since.elapsed()));
    assert!(since.elapsed() < Duration::from_secs(5));
    assert!(is_mapped(addr), "memory of a job that goes on was freed");
    assert!(is_mapped(idle_addr), "memory was freed beside a job that goes on");
    assert!(gpu.is_hung());
    println!("{END}");
    // The parent ends this process now. Where it is gone, the driver's handlers of an exit, which
    // might wait for the job, are left out.
    thread::sleep(Duration::from_secs(60));
    // SAFETY: nothing runs behind this call.
    unsafe { libc::_exit(0) }
}

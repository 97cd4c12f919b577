#![allow(
    unsafe_code,
    reason = "which core is behind the registers, and how it is wired, is a claim; memory is read \
              through raw pointers that a device may still write, and programs lie"
)]
//! gemm8 behind the gate, as a SoC has a core: no IOMMU and no reset keeps it from memory, only the
//! gate does. By UIO, and by the module contigo, where a program is killed while the core writes
//! and its memory is another's at once.

use super::{CANARY, SLOTS, long_operands, operands, product, timeouts, write_until_killed};
use crate::apart::{kill_many, kill_one};
use crate::machine::heaps;
use crate::setup::virt_port;
use crate::verdict::{Seen, Tried, fail, others};
use contigo::drivers::axi_gate::{AxiGate, Gated, Part, WINDOW_BYTES};
use contigo::job::{StopProgram, StopStep};
use contigo::linux::dev_node::{DevNode, OwnMemory};
use contigo::linux::memory::{DmaHeap, HugeTlb};
use contigo::names::{AnyDevice, Attach, DeviceName, OpenDevice};
use contigo::{Align, Backend as _, Error, Queue, Region, Result};
use contigo_gemm8::{Gemm, Gemm8, Output};
use fastrand::Rng;
use std::fs;
use std::io::PipeWriter;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// One test: its name, and what it does with the device of that name.
pub(crate) type Test = (&'static str, fn(&DeviceName) -> Tried);

pub(crate) const UIO: &[Test] =
    &[("uio-products-polled", products), ("uio-timeout-stops", stopped)];
pub(crate) const CONTIGO: &[Test] = &[
    ("contigo-products-polled", products),
    ("contigo-timeout-stops", stopped),
    ("contigo-killed-while-it-writes", killed),
    ("contigo-killed-unstopped-is-caught", told_lies),
    ("contigo-killed-unarmed-is-kept", kept),
];

const ROUNDS: u64 = 50;
const GATE: usize = WINDOW_BYTES;
/// As long to write as fits the memory: 100,000 cycles at the least.
const LONG: Gemm = Gemm { m: 896, n: 512, k: 16, output: Output::Int32 { relu: false } };

/// The core with its gate, in one window.
type Driver<'d> = Gated<Gemm8<Part<'d, AnyDevice>>, Part<'d, AnyDevice>>;

/// The registers, and no interrupt: `uio_pci_generic` and the module have the line alone, which a
/// function in a program beside QEMU cannot lower.
fn attached(opened: &OpenDevice) -> Result<AnyDevice> {
    // SAFETY: `machine.rs` found the lab's function, with no IOMMU before it.
    unsafe { opened.attach_wired(virt_port(opened), Attach { window: 0, interrupt: false }) }
}

fn driver(device: &AnyDevice) -> Result<Driver<'_>> {
    // SAFETY: no other code has the device, and each part is made once.
    let part = |from| unsafe { Part::new(device, from, GATE) };
    // SAFETY: the function is gemm8's Verilog, whose only master passes the gate in the same window
    // (`rtl/cores/gemm8/top.v`), which has its reset.
    unsafe {
        let gate = AxiGate::open(part(GATE)?)?;
        Ok(Gated::new(Gemm8::open(part(0)?)?, gate).in_window(GATE))
    }
}

/// The core's queue. The module gets the program that stops it, where that has the device.
fn queue<'d>(opened: &OpenDevice, device: &'d AnyDevice) -> Result<Queue<Driver<'d>>> {
    let driver = driver(device)?;
    if let Some(dev_node) = opened.dev_node() {
        // SAFETY: window 0 is the core's, and the program shuts its gate.
        unsafe { dev_node.arm(&contigo::Driver::stop_program(&driver), 0)? };
    }
    // SAFETY: by UIO nothing has started the core; a platform device always masters the bus.
    unsafe { opened.enable_bus_master()? };
    Ok(Queue::new(driver, 1)?)
}

fn products(name: &DeviceName) -> Tried {
    let opened = name.open()?;
    // A, B and bias are in the first block, with room behind them, and C in the second one.
    let (first, second) = (ground(&opened)?, ground(&opened)?);
    let device = attached(&opened)?;
    let [a, b, bias, c] = SLOTS;
    let [a, b, bias] = [a, b, bias].map(|len| first.alloc(len, Align::PAGE));
    let mut operands = [a?, b?, bias?, second.alloc(c, Align::PAGE)?];
    let mut core = queue(&opened, &device)?;
    let (mut seen, mut rng, begun) = (Seen::default(), Rng::with_seed(1), Instant::now());
    for _ in 0..ROUNDS {
        operands = product(&mut seen, &mut core, operands, &mut rng)?;
    }
    seen.detail = format!("{ROUNDS} random products, {} ms", begun.elapsed().as_millis());
    Ok(seen)
}

fn stopped(name: &DeviceName) -> Tried {
    let opened = name.open()?;
    let (first, second) = (ground(&opened)?, ground(&opened)?);
    let device = attached(&opened)?;
    let mut core = queue(&opened, &device)?;
    timeouts(&mut core, &LONG, long_operands(&first, &LONG)?, operands(&second)?)
}

/// A huge page, which is one run, and as much of a heap.
const BYTES: usize = HugeTlb::PAGE_BYTES;

/// A block for the device `opened`: by the module its own, and without it one of a heap, whose
/// address pagemap tells (before 6.9), or a huge page on a kernel without heaps.
fn ground(opened: &OpenDevice) -> Result<Region> {
    match (opened.dev_node(), heaps().first()) {
        (Some(dev_node), _) => Ok(Region::new(dev_node.allocate(BYTES)?)?),
        (None, Some(heap)) => Ok(Region::new(DmaHeap::allocate(heap, BYTES)?)?),
        (None, None) => Ok(Region::new(HugeTlb::new(BYTES)?)?),
    }
}

/// As root, and as many as the ordinary user: 200 together.
const KILLS: u64 = 100;
/// Where the program lies: enough to see that the check catches it.
const LIES: u64 = 10;
/// Of those, so many must be caught, or the check proves nothing.
const CAUGHT: u64 = 5;
/// In which a core that writes does so: 10,000 words of C.
const A_WHILE: Duration = Duration::from_millis(25);
/// A page comes back a moment after its process's end.
const FREED: Duration = Duration::from_millis(500);
/// More blocks than any of these machines has.
const MOST: usize = 64;

/// A program's last words to the module.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// The steps that shut the gate.
    Gate,
    /// A poll that always holds: "stopped", while the core writes.
    Lie,
    Nothing,
}

/// The device, for the next program: soon after the end of the one before.
fn next(name: &DeviceName) -> Result<OpenDevice> {
    let end = Instant::now() + FREED;
    loop {
        match name.open() {
            Err(Error::InUse { .. }) if Instant::now() < end => sleep(Duration::from_millis(1)),
            opened => return opened,
        }
    }
}

/// All memory that the device can have, in blocks.
fn all(opened: &OpenDevice) -> Result<Vec<OwnMemory>> {
    let dev_node = opened.dev_node().ok_or(Error::NotFound { what: "contigo", among: 0.into() })?;
    let mut blocks = Vec::with_capacity(MOST);
    while blocks.len() < MOST {
        match dev_node.allocate(BYTES) {
            Ok(block) => blocks.push(block),
            Err(Error::NoMemory { .. } | Error::TooMany { .. }) => return Ok(blocks),
            Err(error) => return Err(error),
        }
    }
    Err(Error::TooMany { what: "blocks of this machine's memory for a device", most: MOST as u64 })
}

/// How many bytes of the next owner's are written by another program's device. It has all memory,
/// and so what that program had.
fn next_owner(name: &DeviceName) -> Result<u64> {
    let opened = next(name)?;
    let blocks = all(&opened)?;
    let canary = u64::from_ne_bytes([CANARY; 8]);
    let starts = || blocks.iter().map(|block| block.mapping().cpu.as_ptr().cast::<u64>());
    let words =
        || starts().flat_map(|start| (0..BYTES / 8).map(move |index| start.wrapping_add(index)));
    // SAFETY: within its mapping, which begins at a page; no reference to it exists.
    words().for_each(|word| unsafe { word.write_volatile(canary) });
    sleep(A_WHILE);
    // SAFETY: as above.
    let found = words().map(|word| unsafe { word.read_volatile() });
    Ok(found.map(|word| others(&word.to_ne_bytes(), CANARY)).sum())
}

fn works(name: &DeviceName, leaves: Leaves, pipe: &mut PipeWriter) -> Result<()> {
    let opened = name.open()?;
    opened.dev_node().ok_or(Error::NotFound { what: "contigo", among: 0.into() })?;
    let region = ground(&opened)?;
    let device = attached(&opened)?;
    let mut core = match leaves {
        Leaves::Gate => queue(&opened, &device)?,
        Leaves::Lie => lying(&opened, &device)?,
        Leaves::Nothing => Queue::new(driver(&device)?, 1)?,
    };
    let port = opened.seen_through(virt_port(&opened));
    write_until_killed(&mut core, &region, &port, &LONG, pipe)
}

fn lying<'d>(opened: &OpenDevice, device: &'d AnyDevice) -> Result<Queue<Driver<'d>>> {
    // Its ID, "GATE" (rtl/gate/registers.md).
    let holds = StopStep::poll_until(GATE, u32::MAX, 0x4741_5445, 1_000);
    let program = StopProgram::new(&[holds]).unwrap_or_default();
    if let Some(dev_node) = opened.dev_node() {
        // SAFETY: it is a lie, and the test sees what comes of it: the memory is the test's own.
        unsafe { dev_node.arm(&program, 0)? };
    }
    Ok(Queue::new(driver(device)?, 1)?)
}

fn quiet(name: &DeviceName) -> Result<()> {
    let opened = name.open()?;
    let device = attached(&opened)?;
    drop(queue(&opened, &device)?);
    Ok(())
}

fn killed(name: &DeviceName) -> Tried {
    let work = |pipe: &mut PipeWriter| Ok(works(name, Leaves::Gate, pipe)?);
    kill_many(KILLS, work, || Ok(next_owner(name)?))
}

/// The same with a lie: the check must see it.
fn told_lies(name: &DeviceName) -> Tried {
    let (mut caught, mut bytes) = (0, 0);
    for round in 0..LIES {
        kill_one(round, |pipe| Ok(works(name, Leaves::Lie, pipe)?))?;
        let written = next_owner(name)?;
        (caught, bytes) = (caught + u64::from(written > 0), bytes + written);
        quiet(name)?;
    }
    let detail = format!(
        "{LIES} programs killed that said stopped too early: {caught} next owners were written, \
         {bytes} bytes"
    );
    Ok(Seen { failed: caught < CAUGHT, ..detail.into() })
}

/// How much the module keeps because the core has not stopped.
fn kept_bytes(name: &DeviceName) -> Result<u64> {
    let opened = name.open()?;
    Ok(opened.dev_node().map(DevNode::info).transpose()?.map_or(0, |info| info.quarantined_bytes))
}

/// A killed program that left nothing: no other program gets its memory. Another one shuts the gate
/// afterwards, and that is no proof: only the administrator ends the quarantine.
fn kept(name: &DeviceName) -> Tried {
    let before = kept_bytes(name)?;
    let free = all(&name.open()?)?.len();
    if !kill_one(0, |pipe| Ok(works(name, Leaves::Nothing, pipe)?))? {
        return fail("the program was not seen at work");
    }
    let refused = all(&next(name)?)?.len() == free - 1;
    let kept = kept_bytes(name)? - before;
    quiet(name)?;
    let then = kept_bytes(name)? - before;
    let mut detail = format!(
        "{kept} bytes kept, and refused to the next owner: {refused}; {then} after another program \
         has stopped it"
    );
    let mut right = refused && kept == BYTES as u64 && then == kept;
    if nix::unistd::geteuid().is_root() {
        let ended =
            fs::write(format!("/sys/class/contigo/{}/quarantine", name.argument()), "0").is_ok();
        let left = kept_bytes(name)?;
        right &= ended && left == 0;
        detail = format!("{detail}, {left} after the administrator has ended it");
    }
    Ok(Seen { failed: !right, ..detail.into() })
}

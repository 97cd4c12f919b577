#![allow(
    unsafe_code,
    reason = "which core is behind the registers is a claim, and memory is read while a device writes it"
)]
//! Board tests of gemm8's Verilog behind virtio-iommu (`contigo-pci --model gemm8`): products, and
//! what must not be written.

use super::{
    Seen, Test, confined,
    killed::{CANARY, KILLED_BYTES, killed as kills},
    litepcie::interrupts,
};
use crate::gemm8::product::{
    A_WHILE, LIMIT, SLOTS, fill, lens, long_operands, operands, product, random, run, timeouts,
};
use contigo::{
    Align, DevAddr, Error, Queue, Region, Result,
    linux::vfio::{Interrupt, Vfio, VfioDevice},
};
use contigo_gemm8::{Gemm, Gemm8, Output};
use fastrand::Rng;
use std::{
    io::{PipeWriter, Write as _},
    thread::sleep,
    time::{Duration, Instant},
};

/// Each of them on the core at an address.
pub(crate) const TESTS: &[Test] = &[
    ("opened", confined::opened),
    ("products-by-interrupt", by_interrupt),
    ("products-polled", polled),
    ("timeout-stops", stopped),
    ("unmapped-is-not-written", not_written),
    ("unmapped-is-not-read", not_read),
    ("killed-while-it-writes", killed),
];

const ROUNDS: u64 = 100;
const KILLS: u64 = 25;
/// As long to write as fits a process that is killed: 100,000 cycles at the least.
const LONG: Gemm = Gemm { m: 896, n: 1024, k: 16, output: Output::Int32 { relu: false } };

fn open(vfio: &Vfio, interrupt: Interrupt) -> Result<Queue<Gemm8<VfioDevice>>> {
    // SAFETY: the lab's function is gemm8's Verilog.
    Ok(Queue::new(unsafe { Gemm8::open(VfioDevice::open(vfio, 0, interrupt)?)? }, 1)?)
}

/// The memory of one product.
fn memory(vfio: &Vfio) -> Result<Region> {
    Ok(Region::new(vfio.memory(SLOTS.iter().sum())?)?)
}

fn by_interrupt(address: &str) -> Result<Seen> {
    products(address, Interrupt::MsiX)
}

fn polled(address: &str) -> Result<Seen> {
    products(address, Interrupt::Polled)
}

fn products(address: &str, interrupt: Interrupt) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let region = memory(&vfio)?;
    let (mut operands, mut rng) = (operands(&region)?, Rng::with_seed(1));
    let mut core = open(&vfio, interrupt)?;
    let (mut seen, before, begun) = (Seen::default(), interrupts(address), Instant::now());
    for _ in 0..ROUNDS {
        operands = product(&mut seen, &mut core, operands, &mut rng)?;
    }
    let took = begun.elapsed();
    sleep(A_WHILE);
    let told = interrupts(address) - before;
    // A job has one, but a short one may be over at the first look, before it. A wait without its
    // interrupt would end with its limit.
    let by_interrupt = (ROUNDS / 5..=ROUNDS).contains(&told) && took < LIMIT;
    seen.failed = if interrupt == Interrupt::MsiX { !by_interrupt } else { told != 0 };
    seen.detail = format!("{ROUNDS} random products, {told} interrupts, {} ms", took.as_millis());
    Ok(seen)
}

fn stopped(address: &str) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let (long, small) = (Region::new(vfio.memory(KILLED_BYTES)?)?, memory(&vfio)?);
    let mut core = open(&vfio, Interrupt::MsiX)?;
    timeouts(&mut core, &LONG, long_operands(&long, &LONG)?, operands(&small)?)
}

/// Neither is written, after C's memory was taken away.
fn not_written(address: &str) -> Result<Seen> {
    taken_away(address, 3, "a bus error while writing C")
}

fn not_read(address: &str) -> Result<Seen> {
    taken_away(address, 1, "a bus error while reading A, B or bias")
}

/// One operand's memory is taken away: the core gets a bus error, and reports it.
fn taken_away(address: &str, operand: usize, says: &str) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let (kept, taken) = (memory(&vfio)?, Region::new(vfio.memory(SLOTS[operand])?)?);
    let mut operands = operands(&kept)?;
    operands[operand] = taken.alloc(SLOTS[operand], Align::PAGE)?;
    let (mut seen, mut rng) = (Seen::default(), Rng::with_seed(3));
    let mut core = open(&vfio, Interrupt::MsiX)?;
    // Mapped, it is right: so the addresses are the right ones.
    let mut operands = product(&mut seen, &mut core, operands, &mut rng)?;
    fill(&mut operands, &mut rng)?;
    vfio.revoke(taken.base())?;
    let Err(failed) = run(&mut core, operands, &random(&mut rng), LIMIT) else {
        return Ok(Seen::failed("the product was done all the same"));
    };
    let typed = matches!(failed.error, Error::Fault { device: "gemm8", what, .. } if what == says);
    let Some(operands) = failed.buffers else {
        return Ok(Seen::failed(format!("{}: and the buffers did not come back", failed.error)));
    };
    sleep(A_WHILE);
    if operand == 3 {
        seen.canary_hits +=
            operands[3].view::<u8>()?.iter().filter(|byte| **byte != CANARY).count() as u64;
    }
    drop(operands);
    let next = memory(&vfio)?;
    drop(product(&mut seen, &mut core, self::operands(&next)?, &mut rng)?);
    seen.failed = !typed;
    seen.detail = format!(
        "{} bytes taken away: {}; the next product was right",
        SLOTS[operand], failed.error
    );
    Ok(seen)
}

fn killed(address: &str) -> Result<Seen> {
    kills(address, KILLS, writes_on_and_on)
}

/// In the process that is killed: notifies the parent when the first word of C was written.
fn writes_on_and_on(address: &str, tell: &mut PipeWriter) -> Result<()> {
    let vfio = Vfio::open(address)?;
    let region = Region::new(vfio.memory(KILLED_BYTES)?)?;
    let first = region.host_ptr_of(&vfio.port(), DevAddr(region.base().raw()))?;
    let [a, b, bias, mut c] = long_operands(&region, &LONG)?;
    c.view_mut::<u8>()?.fill(CANARY);
    let [a_len, b_len, bias_len, c_len] = lens(&LONG);
    let mut core = open(&vfio, Interrupt::Polled)?;
    let operands = [
        a.to_device(..a_len),
        b.to_device(..b_len),
        bias.to_device(..bias_len),
        c.from_device(..c_len),
    ];
    core.submit(operands, &LONG.words())?;
    let begun = Instant::now();
    // SAFETY: the region is alive, and C, its beginning, is the core's: no view of it exists.
    while unsafe { first.read_volatile() } == CANARY && begun.elapsed() < LIMIT {
        sleep(Duration::from_millis(1));
    }
    if begun.elapsed() < LIMIT {
        let _ = tell.write_all(&[1]);
        sleep(Duration::from_secs(60));
    }
    Ok(())
}

#![allow(
    unsafe_code,
    clippy::indexing_slicing,
    reason = "which core is behind the registers is a claim; a test that panics has failed"
)]
//! gemm8 behind virtio-iommu: products, and what must not be written.

use super::{
    A_WHILE, CANARY, LIMIT, SLOTS, fill, long_operands, operands, product, random, run, timeouts,
    write_until_killed,
};
use crate::apart::kill_many;
use crate::verdict::{Seen, Tried, fail, others};
use crate::vfio::edu::opened;
use crate::vfio::litepcie::interrupts;
use crate::vfio::{KILLED_BYTES, Test, next_owner};
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};
use contigo::{Align, Error, Queue, Region, Result};
use contigo_gemm8::{Gemm, Gemm8, Output};
use fastrand::Rng;
use std::io::PipeWriter;
use std::thread::sleep;
use std::time::Instant;

pub(crate) const TESTS: &[Test] = &[
    ("opened", opened),
    ("products-by-interrupt", |address| products(address, Interrupt::MsiX)),
    ("products-polled", |address| products(address, Interrupt::Polled)),
    ("timeout-stops", stopped),
    ("unmapped-is-not-written", |address| taken_away(address, 3, "a bus error while writing C")),
    ("unmapped-is-not-read", |address| {
        taken_away(address, 1, "a bus error while reading A, B or bias")
    }),
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

fn memory(vfio: &Vfio) -> Result<Region> {
    Ok(Region::new(vfio.memory(SLOTS.iter().sum())?)?)
}

fn products(address: &str, interrupt: Interrupt) -> Tried {
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

fn stopped(address: &str) -> Tried {
    let vfio = Vfio::open(address)?;
    let (long, small) = (Region::new(vfio.memory(KILLED_BYTES)?)?, memory(&vfio)?);
    let mut core = open(&vfio, Interrupt::MsiX)?;
    timeouts(&mut core, &LONG, long_operands(&long, &LONG)?, operands(&small)?)
}

/// One operand's memory is taken away: the core gets a bus error, and reports it.
fn taken_away(address: &str, operand: usize, says: &str) -> Tried {
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
    let Err(stopped) = run(&mut core, operands, &random(&mut rng), LIMIT) else {
        return fail("the product was done all the same");
    };
    let typed = matches!(stopped.error, Error::Fault { device: "gemm8", what, .. } if what == says);
    let Some(operands) = stopped.buffers else {
        return fail(format!("{}: and the buffers did not come back", stopped.error));
    };
    sleep(A_WHILE);
    if operand == 3 {
        seen.canary_hits += others(operands[3].view()?, CANARY);
    }
    drop(operands);
    let next = memory(&vfio)?;
    drop(product(&mut seen, &mut core, self::operands(&next)?, &mut rng)?);
    seen.failed = !typed;
    let (bytes, error) = (SLOTS[operand], stopped.error);
    seen.detail = format!("{bytes} bytes taken away: {error}; the next product was right");
    Ok(seen)
}

fn killed(address: &str) -> Tried {
    let work = |pipe: &mut PipeWriter| Ok(writes_on_and_on(address, pipe)?);
    kill_many(KILLS, work, || Ok(next_owner(address)?))
}

fn writes_on_and_on(address: &str, pipe: &mut PipeWriter) -> Result<()> {
    let vfio = Vfio::open(address)?;
    let region = Region::new(vfio.memory(KILLED_BYTES)?)?;
    let mut core = open(&vfio, Interrupt::Polled)?;
    write_until_killed(&mut core, &region, &vfio.port(), &LONG, pipe)
}

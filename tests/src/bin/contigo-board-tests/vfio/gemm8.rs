#![allow(unsafe_code, reason = "which core is behind the registers is a claim, and memory is read while a device writes it")]
//! Board tests of gemm8's Verilog behind virtio-iommu (`contigo-pci --model gemm8`): products, and
//! what must not be written.

use super::{
    Seen, Test, confined,
    killed::{CANARY, KILLED_BYTES, killed as kills},
    litepcie::interrupts,
};
use contigo::{
    Align, CpuBuf, DevAddr, Engine, Error, Region, Result,
    linux::vfio::{Interrupt, Vfio, VfioDevice, VfioMemory},
};
use contigo_gemm8::{Gemm, Gemm8, Output, requantize};
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
const TIMEOUTS: u64 = 10;
const KILLS: u64 = 25;
/// A, B, bias and C of the largest random product, with room behind each.
const SLOTS: [usize; 4] = [16 << 10, 256 << 10, 4 << 10, 128 << 10];
/// A product takes a tenth of a second or so, for Verilator's clock is slow.
const LIMIT: Duration = Duration::from_secs(20);
/// In which a core that could write would have.
const A_WHILE: Duration = Duration::from_millis(50);
/// As long to write as fits a process that is killed: 100,000 cycles at the least.
const LONG: Gemm = Gemm { m: 896, n: 1024, k: 16, output: Output::Int32 { relu: false } };

type Core<'v> = Engine<Gemm8<VfioDevice<'v>>, 4>;
type Operands<'p> = [CpuBuf<'p>; 4];

fn open(vfio: &Vfio, interrupt: Interrupt) -> Result<Core<'_>> {
    // SAFETY: the lab's function is gemm8's Verilog.
    Ok(Engine::new(unsafe { Gemm8::open(VfioDevice::open(vfio, 0, interrupt)?)? })?)
}

fn carve<'p>(region: &'p Region<VfioMemory<'_>>, len: usize) -> Result<CpuBuf<'p>> {
    Ok(region.carve(len, Align::PAGE)?.into_buf())
}

/// The memory of one product.
fn memory(vfio: &Vfio) -> Result<Region<VfioMemory<'_>>> {
    Ok(Region::new(vfio.memory(SLOTS.iter().sum())?)?)
}

fn operands<'p>(region: &'p Region<VfioMemory<'_>>) -> Result<Operands<'p>> {
    let [a, b, bias, c] = SLOTS;
    Ok([carve(region, a)?, carve(region, b)?, carve(region, bias)?, carve(region, c)?])
}

/// The lengths of A, B, bias and C. None here is longer than a few MiB.
fn lens(gemm: &Gemm) -> [usize; 4] {
    gemm.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Mostly small ones. One in four has many columns, one in four long sums.
fn random(rng: &mut Rng) -> Gemm {
    let n = 16 * if rng.u8(..4) == 0 { rng.u32(17..=40) } else { rng.u32(1..=8) };
    let k = 16 * if rng.u8(..4) == 0 { rng.u32(7..=24) } else { rng.u32(1..=6) };
    let relu = rng.bool();
    let output = if rng.bool() { Output::Int32 { relu } } else { Output::Int8 { relu, shift: rng.u32(..32) } };
    Gemm { m: rng.u32(1..=40), n, k, output }
}

fn fill([a, b, bias, c]: &mut Operands<'_>, rng: &mut Rng) -> Result<()> {
    for bytes in [a.view_mut::<u8>()?, b.view_mut::<u8>()?] {
        rng.fill(bytes);
    }
    // Sums of all sizes, so that each shift has some that are neither 0 nor saturated.
    bias.view_mut::<i32>()?.fill_with(|| rng.i32(..) >> rng.u32(..32));
    c.view_mut::<u8>()?.fill(CANARY);
    Ok(())
}

/// Starts a product, and waits for it.
fn run<'p>(
    core: &mut Core<'_>,
    [a, b, bias, c]: Operands<'p>,
    gemm: &Gemm,
    limit: Duration,
) -> core::result::Result<Operands<'p>, Stopped<'p>> {
    let [a_len, b_len, bias_len, c_len] = lens(gemm);
    let operands = [a.to_device(..a_len), b.to_device(..b_len), bias.to_device(..bias_len), c.from_device(..c_len)];
    let job = core.start(operands, gemm).map_err(|refused| Stopped { error: refused.error, buffers: None })?;
    match job.wait(limit) {
        Ok(done) => Ok(done.buffers),
        Err(failed) => Err(Stopped {
            error: failed.error,
            buffers: failed
                .buffers
                .and_then(|[a, b, bias, c]| Some([a.into_cpu().ok()?, b.into_cpu().ok()?, bias.into_cpu().ok()?, c.into_cpu().ok()?])),
        }),
    }
}

/// A job that was not done, with its memory where the core has stopped.
struct Stopped<'p> {
    error: Error,
    buffers: Option<Operands<'p>>,
}

impl From<Stopped<'_>> for Error {
    fn from(stopped: Stopped<'_>) -> Self {
        stopped.error
    }
}

/// Compares C with the processor's arithmetic, and what is behind it with what was there.
fn compare(seen: &mut Seen, [a, b, bias, c]: &Operands<'_>, gemm: &Gemm) -> Result<()> {
    let (m, n, k) = (gemm.m as usize, gemm.n as usize, gemm.k as usize);
    let each = lens(gemm)[3] / (m * n);
    let (a, b, bias, c) = (a.view::<i8>()?, b.view::<i8>()?, bias.view::<i32>()?, c.view::<u8>()?);
    let mut wrong = 0;
    for (row, found) in a.chunks(k).zip(c.chunks(n * each)).take(m) {
        let mut sums = bias[..n].to_vec();
        for (a, columns) in row.iter().zip(b.chunks(n)) {
            for (sum, b) in sums.iter_mut().zip(columns) {
                *sum = sum.wrapping_add(i32::from(*a) * i32::from(*b));
            }
        }
        for (sum, found) in sums.into_iter().zip(found.chunks(each)) {
            let expected = requantize(sum, gemm.output).to_le_bytes();
            wrong += expected.iter().zip(found).filter(|(expected, found)| expected != found).count() as u64;
        }
    }
    let len = m * n * each;
    seen.mismatches += wrong;
    seen.canary_hits += c[len..].iter().filter(|byte| **byte != CANARY).count() as u64;
    (seen.jobs, seen.bytes) = (seen.jobs + 1, seen.bytes + len as u64);
    Ok(())
}

/// A random product with all that belongs to it.
fn product<'p>(seen: &mut Seen, core: &mut Core<'_>, mut operands: Operands<'p>, rng: &mut Rng) -> Result<Operands<'p>> {
    let gemm = random(rng);
    fill(&mut operands, rng)?;
    let operands = run(core, operands, &gemm, LIMIT)?;
    compare(seen, &operands, &gemm)?;
    Ok(operands)
}

fn by_interrupt(address: &str) -> Result<Seen> {
    products(address, Interrupt::Msi)
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
    seen.failed = if interrupt == Interrupt::Msi { !by_interrupt } else { told != 0 };
    seen.detail = format!("{ROUNDS} random products, {told} interrupts, {} ms", took.as_millis());
    Ok(seen)
}

/// A job that takes too long is stopped in its midst: nothing is written after that, and the next
/// product is right.
fn stopped(address: &str) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let long = Region::new(vfio.memory(KILLED_BYTES)?)?;
    let mut operands = long_operands(&long)?;
    let small = memory(&vfio)?;
    let (mut few, mut rng) = (self::operands(&small)?, Rng::with_seed(2));
    let mut core = open(&vfio, Interrupt::Msi)?;
    let (mut seen, mut at_work) = (Seen::default(), 0);
    for round in 0..TIMEOUTS {
        operands[3].view_mut::<u8>()?.fill(CANARY);
        let limit = Duration::from_millis(2 + 8 * round);
        let Err(late) = run(&mut core, operands, &LONG, limit) else { return Ok(Seen::failed("the long product was over at once")) };
        let (Error::Timeout { .. }, Some(buffers)) = (late.error, late.buffers) else { return Ok(Seen::failed(late.error.to_string())) };
        operands = buffers;
        let c = operands[3].view_mut::<u8>()?;
        at_work += u64::from(c.iter().any(|byte| *byte != CANARY));
        c.fill(CANARY);
        sleep(A_WHILE);
        seen.canary_hits += operands[3].view::<u8>()?.iter().filter(|byte| **byte != CANARY).count() as u64;
        few = product(&mut seen, &mut core, few, &mut rng)?;
    }
    seen.failed = at_work == 0;
    seen.detail = format!(
        "{TIMEOUTS} products stopped, {at_work} of them while C was written; {} bytes written afterwards; each next one was right",
        seen.canary_hits
    );
    Ok(seen)
}

/// C first, at the region's beginning. Every word of it becomes bias', for A is zero.
fn long_operands<'p>(region: &'p Region<VfioMemory<'_>>) -> Result<Operands<'p>> {
    let [a, b, bias, c] = lens(&LONG);
    let c = carve(region, c)?;
    let [mut a, mut b, mut bias] = [carve(region, a)?, carve(region, b)?, carve(region, bias)?];
    for (buffer, byte) in [(&mut a, 0), (&mut b, 1), (&mut bias, !CANARY)] {
        buffer.view_mut::<u8>()?.fill(byte);
    }
    Ok([a, b, bias, c])
}

/// Neither is written, after C's memory was taken away.
fn not_written(address: &str) -> Result<Seen> {
    taken_away(address, 3, "a bus error while writing C")
}

fn not_read(address: &str) -> Result<Seen> {
    taken_away(address, 1, "a bus error while reading A, B or bias")
}

/// One operand's memory is taken away: the core is answered with an error, and says so.
fn taken_away(address: &str, operand: usize, says: &str) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let (kept, taken) = (memory(&vfio)?, Region::new(vfio.memory(SLOTS[operand])?)?);
    let mut operands = operands(&kept)?;
    operands[operand] = carve(&taken, SLOTS[operand])?;
    let (mut seen, mut rng) = (Seen::default(), Rng::with_seed(3));
    let mut core = open(&vfio, Interrupt::Msi)?;
    // Mapped, it is right: so the addresses are the right ones.
    let mut operands = product(&mut seen, &mut core, operands, &mut rng)?;
    fill(&mut operands, &mut rng)?;
    vfio.revoke(taken.base())?;
    let Err(failed) = run(&mut core, operands, &random(&mut rng), LIMIT) else {
        return Ok(Seen::failed("the product was done all the same"));
    };
    let typed = matches!(failed.error, Error::Fault { device: "gemm8", what, .. } if what == says);
    let Some(operands) = failed.buffers else { return Ok(Seen::failed(format!("{}: and the buffers did not come back", failed.error))) };
    sleep(A_WHILE);
    if operand == 3 {
        seen.canary_hits += operands[3].view::<u8>()?.iter().filter(|byte| **byte != CANARY).count() as u64;
    }
    drop(operands);
    let next = memory(&vfio)?;
    drop(product(&mut seen, &mut core, self::operands(&next)?, &mut rng)?);
    seen.failed = !typed;
    seen.detail = format!("{} bytes taken away: {}; the next product was right", SLOTS[operand], failed.error);
    Ok(seen)
}

fn killed(address: &str) -> Result<Seen> {
    kills(address, KILLS, writes_on_and_on)
}

/// In the process that is killed: it says so when the first word of C was written.
fn writes_on_and_on(address: &str, tell: &mut PipeWriter) -> Result<()> {
    let vfio = Vfio::open(address)?;
    let region = Region::new(vfio.memory(KILLED_BYTES)?)?;
    let first = region.host_ptr_of(&vfio.port(), DevAddr(region.base().raw()))?;
    let [a, b, bias, mut c] = long_operands(&region)?;
    c.view_mut::<u8>()?.fill(CANARY);
    let [a_len, b_len, bias_len, c_len] = lens(&LONG);
    let mut core = open(&vfio, Interrupt::Polled)?;
    let operands = [a.to_device(..a_len), b.to_device(..b_len), bias.to_device(..bias_len), c.from_device(..c_len)];
    let job = core.start(operands, &LONG)?;
    let begun = Instant::now();
    // SAFETY: the region is alive, and C, its beginning, is the core's: no view of it exists.
    while unsafe { first.read_volatile() } == CANARY && begun.elapsed() < LIMIT {
        sleep(Duration::from_millis(1));
    }
    if begun.elapsed() < LIMIT {
        let _ = tell.write_all(&[1]);
        sleep(Duration::from_secs(60));
    }
    drop(job);
    Ok(())
}

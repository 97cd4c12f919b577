#![allow(clippy::indexing_slicing, reason = "a test that panics has failed, which is its purpose")]
//! gemm8's Verilog (`contigo-pci --model gemm8`, and `gemm8-gated` behind the gate): products in
//! whatever memory and behind whatever device, compared with the processor's arithmetic.

mod gated;
mod vfio;

pub(crate) use gated::{CONTIGO, UIO};
pub(crate) use vfio::TESTS as VFIO;

use crate::apart::AT_WORK;
use crate::setup::given_back;
use crate::verdict::{Seen, Tried, fail, others};
use contigo::{Align, CpuBuf, DevAddr, Driver, Error, Operand, Port, Queue, Region, Result};
use contigo_gemm8::{Gemm, Output, requantize};
use fastrand::Rng;
use std::io::{PipeWriter, Write as _};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The byte that no product is filled with, and that is behind each.
const CANARY: u8 = 0x5A;
/// A, B, bias and C of the largest random product, with room behind each.
const SLOTS: [usize; 4] = [16 << 10, 256 << 10, 4 << 10, 128 << 10];
/// A product takes a tenth of a second or so, for Verilator's clock is slow.
const LIMIT: Duration = Duration::from_secs(20);
/// In which a core that could write would have.
const A_WHILE: Duration = Duration::from_millis(50);

/// A, B, bias and C.
type Operands = [CpuBuf; 4];

fn operands(region: &Region) -> Result<Operands> {
    buffers(region, SLOTS)
}

/// Buffers of these lengths, in this order.
fn buffers(region: &Region, lens: [usize; 4]) -> Result<Operands> {
    let [a, b, bias, c] = lens.map(|len| region.alloc(len, Align::PAGE));
    Ok([a?, b?, bias?, c?])
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
    let output = if rng.bool() {
        Output::Int32 { relu }
    } else {
        Output::Int8 { relu, shift: rng.u32(..32) }
    };
    Gemm { m: rng.u32(1..=40), n, k, output }
}

/// Random operands, and a C that is nothing of theirs.
fn fill([a, b, bias, c]: &mut Operands, rng: &mut Rng) -> Result<()> {
    for bytes in [a.view_mut::<u8>()?, b.view_mut::<u8>()?] {
        rng.fill(bytes);
    }
    // Sums of all sizes, so that each shift has some that are neither 0 nor saturated.
    bias.view_mut::<i32>()?.fill_with(|| rng.i32(..) >> rng.u32(..32));
    c.view_mut::<u8>()?.fill(CANARY);
    Ok(())
}

fn handed_over([a, b, bias, c]: Operands, gemm: &Gemm) -> [Operand; 4] {
    let [a_len, b_len, bias_len, c_len] = lens(gemm);
    [a.to_device(..a_len), b.to_device(..b_len), bias.to_device(..bias_len), c.from_device(..c_len)]
}

fn run<D: Driver>(
    core: &mut Queue<D>,
    operands: Operands,
    gemm: &Gemm,
    limit: Duration,
) -> core::result::Result<Operands, Stopped> {
    let job = core.run(handed_over(operands, gemm), &gemm.words(), limit);
    job.map(|done| done.buffers)
        .map_err(|failed| Stopped { error: failed.error, buffers: given_back(failed.buffers) })
}

/// A job that was not done, with its memory where the core has stopped.
struct Stopped {
    error: Error,
    buffers: Option<Operands>,
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        stopped.error
    }
}

/// Compares C with the processor's arithmetic, and what is behind it with what was there.
fn compare(seen: &mut Seen, [a, b, bias, c]: &Operands, gemm: &Gemm) -> Result<()> {
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
            wrong += expected.iter().zip(found).filter(|(one, other)| one != other).count() as u64;
        }
    }
    let len = m * n * each;
    seen.mismatches += wrong;
    seen.canary_hits += others(&c[len..], CANARY);
    (seen.jobs, seen.bytes) = (seen.jobs + 1, seen.bytes + len as u64);
    Ok(())
}

fn product<D: Driver>(
    seen: &mut Seen,
    core: &mut Queue<D>,
    mut operands: Operands,
    rng: &mut Rng,
) -> Result<Operands> {
    let gemm = random(rng);
    fill(&mut operands, rng)?;
    let operands = run(core, operands, &gemm, LIMIT)?;
    compare(seen, &operands, &gemm)?;
    Ok(operands)
}

/// C first, at the region's beginning. Every word of it becomes bias', for A is zero.
fn long_operands(region: &Region, gemm: &Gemm) -> Result<Operands> {
    let [a, b, bias, c] = lens(gemm);
    let [c, mut a, mut b, mut bias] = buffers(region, [c, a, b, bias])?;
    for (buffer, byte) in [(&mut a, 0), (&mut b, 1), (&mut bias, !CANARY)] {
        buffer.view_mut::<u8>()?.fill(byte);
    }
    Ok([a, b, bias, c])
}

const TIMEOUTS: u64 = 10;

/// Jobs that take too long are stopped: nothing is written after that, and the next product is
/// right.
fn timeouts<D: Driver>(
    core: &mut Queue<D>,
    gemm: &Gemm,
    mut long: Operands,
    mut few: Operands,
) -> Tried {
    let (mut seen, mut at_work, mut rng) = (Seen::default(), 0, Rng::with_seed(2));
    for round in 0..TIMEOUTS {
        long[3].view_mut::<u8>()?.fill(CANARY);
        let limit = Duration::from_millis(2 + 8 * round);
        let Err(late) = run(core, long, gemm, limit) else {
            return fail("the long product was over at once");
        };
        let (Error::Timeout { .. }, Some(buffers)) = (late.error, late.buffers) else {
            return fail(late.error.to_string());
        };
        long = buffers;
        let c = long[3].view_mut::<u8>()?;
        at_work += u64::from(c.iter().any(|byte| *byte != CANARY));
        c.fill(CANARY);
        sleep(A_WHILE);
        seen.canary_hits += others(long[3].view()?, CANARY);
        few = product(&mut seen, core, few, &mut rng)?;
    }
    seen.failed = at_work == 0;
    seen.detail = format!(
        "{TIMEOUTS} products stopped, {at_work} of them while C was written; {} bytes written \
         afterwards; each next one was right",
        seen.canary_hits
    );
    Ok(seen)
}

/// Fills C, which is at the region's beginning, starts a long product, and writes [`AT_WORK`] when
/// the core has written the first byte. The caller is killed then.
fn write_until_killed<D: Driver>(
    core: &mut Queue<D>,
    region: &Region,
    port: &Port,
    gemm: &Gemm,
    pipe: &mut PipeWriter,
) -> Result<()> {
    let first = region.host_ptr_of(port, DevAddr(region.base().raw()))?;
    let mut operands = long_operands(region, gemm)?;
    operands[3].view_mut::<u8>()?.fill(CANARY);
    core.submit(handed_over(operands, gemm), &gemm.words())?;
    let begun = Instant::now();
    #[allow(unsafe_code, reason = "memory that a device writes meanwhile")]
    // SAFETY: the region is alive, and C, its beginning, is the core's: no view of it exists.
    while unsafe { first.read_volatile() } == CANARY && begun.elapsed() < LIMIT {
        sleep(Duration::from_millis(1));
    }
    if begun.elapsed() < LIMIT {
        let _ = pipe.write_all(&AT_WORK);
        sleep(Duration::from_secs(60));
    }
    Ok(())
}

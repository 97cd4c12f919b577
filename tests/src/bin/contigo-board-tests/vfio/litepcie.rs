#![allow(
    unsafe_code,
    clippy::cast_possible_truncation,
    reason = "a card is opened without a reset, and bytes that a device may write are looked at; \
              words of addresses"
)]
//! LitePCIe's card behind an IOMMU: its model in a program beside QEMU, and everything between of a
//! real kernel's.

use super::{CANARY, KILLED_BYTES, Test, edu, next_owner};
use crate::apart::{AT_WORK, kill_many};
use crate::pages::frames;
use crate::setup::given_back;
use crate::verdict::{Seen, Tried, fail, others};
use contigo::drivers::litepcie::{Litepcie, LitepcieConfig, LitepcieCore, Side};
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};
use contigo::types::BaseAddr;
use contigo::{Align, Backend as _, CpuBuf, DevAddr, Error, Mmio, Queue, Region, Result};
use contigo_testkit::litepcie as manual;
use std::fs;
use std::io::{PipeWriter, Write as _};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Each of them on the card at an address.
pub(crate) const TESTS: &[Test] = &[
    ("opened", edu::opened),
    ("loopback-by-interrupt", |address| loops(address, Interrupt::Msi)),
    ("loopback-polled", |address| loops(address, Interrupt::Polled)),
    ("sent-and-received", sent_and_received),
    ("unmapped-is-not-written", not_written),
    ("unmapped-is-not-read", not_read),
    ("killed-while-it-writes", killed),
];

const ROUNDS: u64 = 50;
/// The longest job: sixteen pages, wherever they are.
const LEN: usize = 64 << 10;
/// Room for one job, with a page on which nothing may be written.
const SLOT: usize = LEN + 4096;
/// A job takes a millisecond, and one that never ends no longer than this.
const LIMIT: Duration = Duration::from_secs(2);
/// In which a card that could write would have.
const A_WHILE: Duration = Duration::from_millis(50);

/// The design of the lab's card, as `boards/virt/lab/virt-pcie.toml` has it.
fn config() -> LitepcieConfig {
    LitepcieConfig { address_bits: 64, ordered: true, ..LitepcieConfig::default() }
}

fn open(vfio: &Vfio, interrupt: Interrupt) -> Result<Queue<Litepcie<VfioDevice>>> {
    let device = VfioDevice::open(vfio, 0, interrupt)?;
    // SAFETY: the lab's card is built so, and its requests are answered at once.
    Ok(Queue::new(unsafe { Litepcie::open(device, Side::Loopback, config())? }, 1)?)
}

/// The byte at `index` of round `round`: no page is like another, and no round.
const fn byte(round: u64, index: usize) -> u8 {
    (index as u64 * 7 + (index as u64 >> 12) * 13 + round * 31) as u8
}

/// A length and an offset of this round: a multiple of the card's words, from one to `LEN`.
const fn part(round: u64) -> usize {
    match round % 4 {
        0 => LEN,
        1 => 8,
        2 => 4096 + 8,
        _ => (round as usize * 1_240) / 8 * 8 % LEN + 8,
    }
}

fn fill(buffer: &mut CpuBuf, round: u64) -> Result<()> {
    for (index, to) in buffer.view_mut::<u8>()?.iter_mut().enumerate() {
        *to = byte(round, index);
    }
    Ok(())
}

fn compare(seen: &mut Seen, buffer: &CpuBuf, round: u64, len: usize) -> Result<()> {
    let (copied, behind) = buffer.view::<u8>()?.split_at(len);
    let is_wrong = |(index, is): &(usize, &u8)| **is != byte(round, *index);
    seen.mismatches += copied.iter().enumerate().filter(is_wrong).count() as u64;
    seen.canary_hits += others(behind, CANARY);
    (seen.jobs, seen.bytes) = (seen.jobs + 1, seen.bytes + len as u64);
    Ok(())
}

pub(crate) fn interrupts(address: &str) -> u64 {
    let all = fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let ours = all.lines().filter(|line| line.contains("vfio-msi") && line.contains(address));
    ours.flat_map(|line| line.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok()))
        .sum()
}

fn loops(address: &str, interrupt: Interrupt) -> Tried {
    let vfio = Vfio::open(address)?;
    let region = Region::new(vfio.memory(2 * SLOT)?)?;
    let (mut from, mut to) = (region.alloc(SLOT, Align::PAGE)?, region.alloc(SLOT, Align::PAGE)?);
    let mut queue = open(&vfio, interrupt)?;
    let (mut seen, before, begun) = (Seen::default(), interrupts(address), Instant::now());
    for round in 0..ROUNDS {
        let len = part(round);
        fill(&mut from, round)?;
        to.view_mut::<u8>()?.fill(CANARY);
        [from, to] = queue.run([from.to_device(..len), to.from_device(..len)], &[], LIMIT)?.buffers;
        compare(&mut seen, &to, round, len)?;
    }
    let took = begun.elapsed();
    // The last one may come after its job was seen to be over.
    sleep(A_WHILE);
    let told = interrupts(address) - before;
    // A job has two, its reader's and its writer's, and those that come close together are one. A
    // wait without its interrupt ends with its limit.
    let by_interrupt = (ROUNDS / 5..=2 * ROUNDS).contains(&told) && took < LIMIT;
    seen.failed = if interrupt == Interrupt::Msi { !by_interrupt } else { told != 0 };
    let took = took.as_millis();
    seen.detail = format!(
        "{ROUNDS} jobs of 8 to {LEN} bytes, {told} interrupts, {took} ms; {}",
        scattered(&vfio, &region)?
    );
    Ok(seen)
}

/// How many runs of memory the region is in, where this user may know.
fn scattered(vfio: &Vfio, region: &Region) -> Result<String> {
    let first = region.host_ptr_of(&vfio.port(), DevAddr(region.base().raw()))?;
    Ok(match frames(first.addr().get(), region.len_bytes()) {
        Some(pages) => {
            let runs = 1 + pages
                .windows(2)
                .filter(|pair| !matches!(pair, [one, next] if one + 1 == *next))
                .count();
            format!("{} pages of memory in {runs} runs", pages.len())
        }
        None => "an ordinary user does not see where the pages are".to_owned(),
    })
}

/// A reader and a writer, each with its own jobs, and the card's own stream between them.
fn sent_and_received(address: &str) -> Tried {
    let vfio = Vfio::open(address)?;
    let region = Region::new(vfio.memory(8 * SLOT)?)?;
    let pool = region.pool(8, SLOT)?;
    // SAFETY: as in `open`, and no other code drives it.
    let core = unsafe { LitepcieCore::open(VfioDevice::open(&vfio, 0, Interrupt::Msi)?)? };
    // SAFETY: as in `open`.
    let side = |side| unsafe { core.channel(side, config()) };
    let mut sender = Queue::new(side(Side::Reader)?, 4)?;
    let mut receiver = Queue::new(side(Side::Writer)?, 4)?;
    let mut seen = Seen::default();
    for round in 0..ROUNDS {
        let len = part(round);
        // Two at once, of either.
        for job in 0..2 {
            let (mut from, mut to) = (pool.take()?, pool.take()?);
            fill(&mut from, 2 * round + job)?;
            to.view_mut::<u8>()?.fill(CANARY);
            receiver.submit([to.from_device(..len)], &[])?;
            sender.submit([from.to_device(..len)], &[])?;
        }
        for job in 0..2 {
            let sent = sender.wait::<1>(LIMIT)?.is_some();
            let Some(received) = receiver.wait(LIMIT)? else {
                return fail(format!("round {round}: sent {sent}, none received"));
            };
            let [to] = received.buffers;
            seen.failed |= !sent;
            compare(&mut seen, &to, 2 * round + job, len)?;
        }
    }
    seen.detail = format!("{} jobs sent and as many received, two at once", seen.jobs);
    Ok(seen)
}

/// Memory that the card keeps, and memory that is taken away: two blocks, as the kernel maps them.
fn blocks(vfio: &Vfio) -> Result<[Region; 2]> {
    Ok([Region::new(vfio.memory(SLOT)?)?, Region::new(vfio.memory(SLOT)?)?])
}

/// After a refusal: the card is driven again, over memory that it has.
fn next_job(vfio: &Vfio, seen: &mut Seen) -> Result<()> {
    let region = Region::new(vfio.memory(2 * SLOT)?)?;
    let (mut from, mut to) = (region.alloc(SLOT, Align::PAGE)?, region.alloc(SLOT, Align::PAGE)?);
    fill(&mut from, 1)?;
    to.view_mut::<u8>()?.fill(CANARY);
    let mut queue = open(vfio, Interrupt::Msi)?;
    let [_, to] = queue.run([from.to_device(..LEN), to.from_device(..LEN)], &[], LIMIT)?.buffers;
    compare(seen, &to, 1, LEN)
}

/// The card's writes go where nothing is mapped, and vanish: it says nothing of them.
fn not_written(address: &str) -> Tried {
    let vfio = Vfio::open(address)?;
    let [kept, taken] = blocks(&vfio)?;
    let (mut from, mut to) = (kept.alloc(SLOT, Align::PAGE)?, taken.alloc(SLOT, Align::PAGE)?);
    fill(&mut from, 3)?;
    to.view_mut::<u8>()?.fill(CANARY);
    let mut queue = open(&vfio, Interrupt::Msi)?;
    let mut seen = Seen::default();
    // Mapped, it is written: so the address is the right one.
    let [from, mut to] =
        queue.run([from.to_device(..LEN), to.from_device(..LEN)], &[], LIMIT)?.buffers;
    compare(&mut seen, &to, 3, LEN)?;
    to.view_mut::<u8>()?.fill(CANARY);
    vfio.revoke(taken.base())?;
    let [_, to] = queue.run([from.to_device(..LEN), to.from_device(..LEN)], &[], LIMIT)?.buffers;
    sleep(A_WHILE);
    let written = others(to.view()?, CANARY);
    seen.canary_hits += written;
    drop((queue, to));
    next_job(&vfio, &mut seen)?;
    let at = taken.base().raw();
    seen.detail =
        format!("{LEN} bytes at {at:#x} taken away, {written} written; the next job was right");
    Ok(seen)
}

/// A read that is refused has no answer: the job ends by its time limit, and nothing is copied.
fn not_read(address: &str) -> Tried {
    const SHORT: Duration = Duration::from_millis(200);
    let vfio = Vfio::open(address)?;
    let [kept, taken] = blocks(&vfio)?;
    let (mut from, mut to) = (taken.alloc(SLOT, Align::PAGE)?, kept.alloc(SLOT, Align::PAGE)?);
    fill(&mut from, 5)?;
    to.view_mut::<u8>()?.fill(CANARY);
    vfio.revoke(taken.base())?;
    let mut queue = open(&vfio, Interrupt::Msi)?;
    let mut seen = Seen::default();
    let done = queue.run([from.to_device(..LEN), to.from_device(..LEN)], &[], SHORT);
    let Err(stopped) = done else {
        return fail("the job ended, though its source was taken away");
    };
    let typed = stopped.error == (Error::Timeout { timeout_us: 200_000 });
    let Some([_, to]) = given_back(stopped.buffers) else {
        return fail(format!("{}: and the buffers did not come back", stopped.error));
    };
    seen.canary_hits += others(to.view()?, CANARY);
    seen.failed = !typed;
    drop((queue, to));
    next_job(&vfio, &mut seen)?;
    let (at, error) = (taken.base().raw(), stopped.error);
    seen.detail = format!("{LEN} bytes at {at:#x} taken away: {error}; the next job was right");
    Ok(seen)
}

/// Descriptors over and over of that memory, each of which the card writes in 2 ms: far longer
/// together than the next owner takes to come.
const DESCRIPTORS: usize = 250;
const KILLS: u64 = 5;

fn killed(address: &str) -> Tried {
    let work = |pipe: &mut PipeWriter| Ok(writes_on_and_on(address, pipe)?);
    kill_many(KILLS, work, || Ok(next_owner(address)?))
}

/// In the process that is killed: more descriptors than a driver would give, all of the same
/// memory, by registers. Notifies the parent when the card is at work.
fn writes_on_and_on(address: &str, pipe: &mut PipeWriter) -> Result<()> {
    let vfio = Vfio::open(address)?;
    let memory = vfio.memory(KILLED_BYTES)?;
    let BaseAddr::Dev(DevAddr(base)) = memory.mapping().base else { return Err(Error::Busy) };
    let card = VfioDevice::open(&vfio, 0, Interrupt::Polled)?;
    let half = KILLED_BYTES / 2;
    // SAFETY: the card moves bytes within `memory`, which is alive as long as it is.
    let write = |at: usize, value: u64| unsafe { card.write32(manual::DMA0 + at, value as u32) };
    write(manual::LOOPBACK, 1);
    for (lane, from) in [(manual::WRITER, base), (manual::READER, base + half as u64)] {
        for _ in 0..DESCRIPTORS {
            write(lane + manual::VALUE, half as u64 | u64::from(manual::LAST_DISABLE));
            write(lane + manual::VALUE + 4, from);
            write(lane + manual::WE, from >> 32);
        }
        write(lane, 1);
    }
    while card.read32(manual::DMA0 + manual::WRITER + manual::LOOP_STATUS) == 0 {
        sleep(Duration::from_millis(1));
    }
    let _ = pipe.write_all(&AT_WORK);
    sleep(Duration::from_secs(60));
    Ok(())
}

#![allow(unsafe_code, reason = "a port is claimed that is not the device's, and memory is read through a raw pointer")]
//! The memory that the device must not reach, and does not.

use super::{
    LEN, LIMIT, Seen, VfioEdu, WIDE, fault_log, open_device, open_edu,
    raw_address::{self, RawAddress},
};
use contigo::{
    Align, Attempt, BaseAddr, Bus, CpuBuf, DevAddr, Engine, Error, HugeTlb, Pool, Port, Region, Result, Spin, Wired,
    linux::vfio::{Interrupt, Vfio},
};
use contigo_testkit::edu::{Edu, FaultLog, FaultWatch, IommuFault, Unwatched};
use std::{
    fs, thread,
    time::{Duration, Instant},
};

/// Well into a transfer of 100 ms, and well before its end.
const IN_THE_FIRST: Duration = Duration::from_millis(40);
const IN_THE_SECOND: Duration = Duration::from_millis(150);
/// No transfer ends sooner after the start of its job: 100 ms each, by a clock that is read in
/// whole milliseconds (hw/misc/edu.c).
const FIRST_ENDS: Duration = Duration::from_millis(99);
const SECOND_ENDS: Duration = Duration::from_millis(198);
/// On a busy host a guest may sleep through the end of a transfer, and what comes after it shows
/// nothing. It may so often.
const TRIES: usize = 5;
/// Neither what was there (0x11) nor what is sent (0x99).
const CANARY: u8 = 0x5A;

pub(super) fn opened(address: &str) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let port = vfio.port();
    let way = if vfio.by_iommufd() { "device file and iommufd" } else { "group and type1 container" };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap_or(name).replace('\t', " ");
    Ok(Seen::shown(format!(
        "{way}; {:?}, {:#x}..={:#x}, coherent {}, resets {}; {}; {}",
        port.bus,
        port.window.0,
        port.window.1,
        port.coherent,
        vfio.can_reset(),
        line("Uid:"),
        line("CapEff:")
    )))
}

/// Memory with a physical address, and memory of another address space, are refused before the
/// doorbell.
pub(super) fn another_bus(address: &str) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let own = Region::new(vfio.memory(raw_address::BYTES)?)?;
    let own = Pool::<2>::new(own.carve(raw_address::BYTES, Align::PAGE)?, raw_address::BYTES / 2)?;
    let mut engine = Engine::new(open_edu::<WIDE, _>(&vfio, Interrupt::Msi, Unwatched)?)?;
    let Bus::Iommu(number) = engine.port().bus else { return Ok(Seen::failed("the port is on no bus of an IOMMU")) };
    let mut refused = 0;
    for bus in [Bus::Soc, Bus::Iommu(number + 1)] {
        // SAFETY: the engine refuses it; were it not to, the address is not mapped in this address
        // space.
        let other = Region::new(unsafe { RawAddress::new(BaseAddr::Dev(DevAddr(0x4000_0000)), bus) })?;
        let other = other.carve(4096, Align::PAGE)?.into_buf();
        match engine.start([own.take()?.to_device(..64), other.from_device(..64)], &()) {
            Err(error) if error.error == (Error::WrongBus { port: "vfio", memory: bus }) && error.operand == Some(1) => refused += 1,
            other => return Ok(Seen::failed(format!("{bus:?}: {other:?}"))),
        }
    }
    let started = engine.jobs().started;
    Ok(Seen { failed: refused != 2 || started != 0, ..Seen::shown(format!("{refused} refused, {started} doorbells")) })
}

/// How long a transfer that is refused is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// One access, which the kernel reports: it prints ten reports in five seconds at most
    /// (`DEFAULT_RATELIMIT_BURST`), and QEMU makes one access, and one report, of every 4 bytes.
    One,
    /// As much as the device can: what becomes of the memory.
    Many,
}

impl Refused {
    const fn len(self) -> usize {
        match self {
            Self::One => 4,
            Self::Many => LEN,
        }
    }

    /// The kernel's log, where a report is expected there and this user may read it.
    fn log(self, address: &str) -> Option<FaultLog> {
        if self == Self::One { fault_log(address) } else { None }
    }
}

pub(super) fn raw_address(address: &str) -> Result<Seen> {
    // edu has no error bit, and behind a raw address are no bytes to look at.
    match fault_log(address) {
        Some(_) => raw(address),
        None => Ok(Seen::skipped("this user may not read /dev/kmsg, so nobody sees what the IOMMU refused")),
    }
}

pub(super) fn physical_address(address: &str) -> Result<Seen> {
    physical(address, Refused::One)
}

pub(super) fn physical_address_many(address: &str) -> Result<Seen> {
    physical(address, Refused::Many)
}

/// A raw address, forced into the device: nothing is mapped there, so both transfers fault.
fn raw(address: &str) -> Result<Seen> {
    // Memory of the board `virt`, above everything that is mapped for the device.
    const RAW: u64 = 0x5000_0000;
    // SAFETY: the port on which this is used is a claim as well. The device is behind the IOMMU,
    // and nothing is mapped at RAW in its address space, which is new and has one block below 16
    // MiB.
    let memory = || unsafe { RawAddress::new(BaseAddr::Dev(DevAddr(RAW)), Bus::Soc) };
    forced(address, Refused::One, &|| Region::new(memory()).map_err(Into::into), "raw")
}

/// The same with the physical address of a huge page, whose bytes are looked at.
fn physical(address: &str, refused: Refused) -> Result<Seen> {
    match HugeTlb::new(HugeTlb::PAGE_BYTES) {
        Ok(_) => forced(address, refused, &|| Region::new(HugeTlb::new(HugeTlb::PAGE_BYTES)?).map_err(Into::into), "hugetlb"),
        Err(error) => Ok(Seen::skipped(format!("no huge page with its address for this user: {error}"))),
    }
}

/// Jobs with memory that the device does not reach, first to read and then to write, through a port
/// that claims that it does; then a good job.
fn forced<B: contigo::Backend>(address: &str, refused: Refused, memory: &dyn Fn() -> Result<Region<B>>, what: &str) -> Result<Seen> {
    let vfio = Vfio::open(address)?;
    let own = Region::new(vfio.memory(raw_address::BYTES)?)?;
    // The own block under the claimed bus, so that one engine takes both: an address is an address.
    // SAFETY: this block is mapped for the device at exactly this address, has as many bytes, and
    // nothing else uses it by now.
    let alias = Region::new(unsafe { RawAddress::new(own.base(), Bus::Soc) })?;
    let raw = memory()?;
    // The bytes of the device land here.
    let brought = own.host_ptr_of(&vfio.port(), DevAddr(own.base().raw()))?;
    let mut good_buf = alias.carve(4096, Align::PAGE)?.into_buf();
    let mut raw_buf = raw.carve(4096, Align::PAGE)?.into_buf();
    let device = open_device(&vfio, Interrupt::Polled)?;
    // The claim of somebody who has forgotten the IOMMU: one port for both kinds of memory.
    let claimed = Port { name: "a claim", bus: Bus::Soc, offset: 0, addr_bits: 64, window: (0, u64::MAX), coherent: true };
    // SAFETY: it is not true, and the test is what the IOMMU makes of it: at most the block of this
    // `Vfio` is reached.
    let device = unsafe { Wired::new(device, Spin, claimed) };
    let mut engine = match refused.log(address) {
        // SAFETY: `vfio` is the lab's edu, whose mask is wider.
        None => Engines::Blind(Engine::new(unsafe { Edu::<_, WIDE>::open(device)? })?),
        // SAFETY: as above.
        Some(log) => Engines::Seeing(Engine::new(unsafe { Edu::<_, WIDE, _>::watched(device, log)? })?),
    };
    let (mut outcome, mut reports) = (Seen::default(), Vec::new());
    for writes in [false, true] {
        raw_buf.view_mut::<u8>()?.fill(CANARY);
        let operands = if writes {
            [good_buf.to_device(..refused.len()), raw_buf.from_device(..refused.len())]
        } else {
            [raw_buf.to_device(..refused.len()), good_buf.from_device(..refused.len())]
        };
        let (error, [first, second]) = match engine.run(operands) {
            Ok(buffers) => (None, buffers),
            Err((error, Some(buffers))) => (Some(error), buffers),
            Err((error, None)) => return Err(error),
        };
        (good_buf, raw_buf) = if writes { (first, second) } else { (second, first) };
        outcome.canary_hits += raw_buf.view::<u8>()?.iter().filter(|byte| **byte != CANARY).count() as u64;
        outcome.jobs += 1;
        if !writes {
            // A read that was refused gives edu zeros (QEMU), and those it wrote into the own
            // block. SAFETY: `own` is alive and nothing of it was carved yet; the device has
            // stopped.
            let stolen = |index: &usize| unsafe { brought.add(*index).read_volatile() } == CANARY;
            outcome.canary_hits += (0..refused.len()).filter(stolen).count() as u64;
        }
        let expected = if writes { "a write that the IOMMU refused" } else { "a read that the IOMMU refused" };
        match (engine.sees(), error) {
            (true, Some(Error::Fault { device: "edu", status: 0x10, what })) if what == expected => {
                reports.push(format!("Error::Fault {{ status: 0x10, {what} }}"));
            }
            (false, None) => reports.push("done, says edu, which has no error bit".to_owned()),
            (sees, error) => {
                outcome.failed = true;
                reports.push(format!("watched: {sees}, and {error:?}"));
            }
        }
    }
    drop(engine);
    // The next job works.
    let (mut from, mut to) = (own.carve(4096, Align::PAGE)?.into_buf(), own.carve(4096, Align::PAGE)?.into_buf());
    from.view_mut::<u8>()?.fill(0x99);
    to.view_mut::<u8>()?.fill(0x11);
    let mut engine = Engine::new(open_edu::<WIDE, _>(&vfio, Interrupt::Msi, Unwatched)?)?;
    let [_, to] = engine.start([from.to_device(..LEN), to.from_device(..LEN)], &())?.wait(LIMIT)?.buffers;
    outcome.mismatches += to.view_at::<u8>(..LEN)?.iter().filter(|byte| **byte != 0x99).count() as u64;
    outcome.jobs += 1;
    outcome.bytes += LEN as u64;
    outcome.detail =
        format!("{} bytes of {what} memory at {:#x}: {}; the next job was right", refused.len(), raw.base().raw(), reports.join("; "));
    Ok(outcome)
}

/// An engine that hears of refused accesses, or one that does not.
enum Engines<D: contigo::Device> {
    Blind(Engine<Edu<D, WIDE>, 2>),
    Seeing(Engine<Edu<D, WIDE, FaultLog>, 2>),
}

type Ended<'p> = Result<[CpuBuf<'p>; 2], (Error, Option<[CpuBuf<'p>; 2]>)>;

impl<D: contigo::Device> Engines<D> {
    const fn sees(&self) -> bool {
        matches!(self, Self::Seeing(_))
    }

    fn run<'p>(&mut self, operands: [contigo::Operand<'p>; 2]) -> Ended<'p> {
        match self {
            Self::Blind(engine) => run(engine, operands),
            Self::Seeing(engine) => run(engine, operands),
        }
    }
}

fn run<'p, D: contigo::TypedDriver<2, Args = ()>>(engine: &mut Engine<D, 2>, operands: [contigo::Operand<'p>; 2]) -> Ended<'p> {
    let job = engine.start(operands, &()).map_err(|refused| (refused.error, None))?;
    job.wait(LIMIT).map(|done| done.buffers).map_err(|failed| {
        let back = failed.buffers.map(|buffers| buffers.map(|buffer| buffer.into_cpu()));
        match back {
            Some([Ok(first), Ok(second)]) => (failed.error, Some([first, second])),
            _ => (failed.error, None),
        }
    })
}

pub(super) fn revoked_while_reading(address: &str) -> Result<Seen> {
    revoked(address, Refused::One, false)
}

pub(super) fn revoked_while_writing(address: &str) -> Result<Seen> {
    revoked(address, Refused::One, true)
}

pub(super) fn revoked_while_reading_many(address: &str) -> Result<Seen> {
    revoked(address, Refused::Many, false)
}

pub(super) fn revoked_while_writing_many(address: &str) -> Result<Seen> {
    revoked(address, Refused::Many, true)
}

/// The result of `test` the first time that it comes before the end of the transfer.
fn in_time<T>(mut test: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    for _ in 0..TRIES {
        if let Some(shown) = test()? {
            return Ok(Some(shown));
        }
    }
    Ok(None)
}

fn too_late() -> Seen {
    Seen::failed(format!("{TRIES} times the transfer was over before it could be stopped: this machine is too busy"))
}

fn revoked(address: &str, refused: Refused, writes: bool) -> Result<Seen> {
    Ok(in_time(|| revoked_once(address, refused, writes))?.unwrap_or_else(too_late))
}

/// Takes the block away that the device is about to write, or to read, while its transfer is under
/// way; `None` if that was over.
fn revoked_once(address: &str, refused: Refused, writes: bool) -> Result<Option<Seen>> {
    let vfio = Vfio::open(address)?;
    let (source, target) = (Region::new(vfio.memory(4096)?)?, Region::new(vfio.memory(4096)?)?);
    let (mut from, mut to) = (source.carve(4096, Align::PAGE)?.into_buf(), target.carve(4096, Align::PAGE)?.into_buf());
    from.view_mut::<u8>()?.fill(0x99);
    to.view_mut::<u8>()?.fill(CANARY);
    let taken = if writes { target.base() } else { source.base() };
    let mut log = refused.log(address);
    let len = refused.len();
    let mut engine = Engine::new(open_edu::<WIDE, _>(&vfio, Interrupt::Msi, Unwatched)?)?;
    let started = Instant::now();
    let mut job = engine.start([from.to_device(..len), to.from_device(..len)], &())?;
    if writes {
        let Some(running) = until_the_second(job)? else { return Ok(None) };
        job = running;
    } else {
        thread::sleep(IN_THE_FIRST);
    }
    vfio.revoke(taken)?;
    let late = started.elapsed() >= if writes { SECOND_ENDS } else { FIRST_ENDS };
    let again = vfio.revoke(taken);
    let [from, to] = job.wait(LIMIT)?.buffers;
    if late {
        return Ok(None);
    }
    let mut outcome = Seen { jobs: 1, ..Seen::default() };
    // A read that was refused gives edu zeros (QEMU), and those it may write: never what it was not
    // allowed to read.
    let allowed = if writes { CANARY } else { 0 };
    outcome.canary_hits += to.view_at::<u8>(..len)?.iter().filter(|byte| **byte != allowed).count() as u64;
    outcome.canary_hits += to.view_at::<u8>(len..)?.iter().filter(|byte| **byte != CANARY).count() as u64;
    outcome.canary_hits += from.view::<u8>()?.iter().filter(|byte| **byte != 0x99).count() as u64;
    let fault = match &mut log {
        None => "nobody watched".to_owned(),
        Some(log) => match log.seen(500_000)? {
            Some(fault @ IommuFault { event: 0x10, addr, write, .. }) if addr == taken.raw() && write == writes => format!("{fault:x?}"),
            other => {
                outcome.failed = true;
                format!("no fault at {taken:?}: {other:x?}")
            }
        },
    };
    outcome.failed |= !matches!(again, Err(Error::NotOurs { .. }));
    drop((from, to));
    drop((source, target));
    outcome.failed |= vfio.leaked_bytes()? != 0;
    let done = if writes { "written" } else { "read" };
    outcome.detail = format!("{len} bytes at {:#x} taken away, nothing {done}; {fault}; edu says done", taken.raw());
    Ok(Some(outcome))
}

/// A job is forgotten, its engine and its device are closed: the transfer under way touches
/// nothing.
pub(super) fn closed_while_running(address: &str) -> Result<Seen> {
    let Some(changed) = in_time(|| forgotten(address))? else { return Ok(too_late()) };
    // And it opens again, in the same process.
    let vfio = Vfio::open(address)?;
    let region = Region::new(vfio.memory(2 * 4096)?)?;
    let (mut from, to) = (region.carve(4096, Align::PAGE)?.into_buf(), region.carve(4096, Align::PAGE)?.into_buf());
    from.view_mut::<u8>()?.fill(0x42);
    let mut engine = Engine::new(open_edu::<WIDE, _>(&vfio, Interrupt::Msi, Unwatched)?)?;
    let [_, to] = engine.start([from.to_device(..LEN), to.from_device(..LEN)], &())?.wait(LIMIT)?.buffers;
    let mismatches = to.view_at::<u8>(..LEN)?.iter().filter(|byte| **byte != 0x42).count() as u64;
    let detail = "nothing was written after the device was closed; it opened again, and the next job was right";
    Ok(Seen { jobs: 2, bytes: LEN as u64, mismatches, canary_hits: changed, ..Seen::shown(detail) })
}

/// How many bytes of a forgotten job's destination changed; `None` if the transfer was over before
/// the device was closed.
fn forgotten(address: &str) -> Result<Option<u64>> {
    let vfio = Vfio::open(address)?;
    let port = vfio.port();
    let region = Region::new(vfio.memory(2 * 4096)?)?;
    let (mut from, mut to) = (region.carve(4096, Align::PAGE)?.into_buf(), region.carve(4096, Align::PAGE)?.into_buf());
    from.view_mut::<u8>()?.fill(0x99);
    to.view_mut::<u8>()?.fill(CANARY);
    let target = to.offset_bytes() as u64;
    let mut engine = Engine::new(open_edu::<WIDE, _>(&vfio, Interrupt::Polled, Unwatched)?)?;
    let started = Instant::now();
    let job = engine.start([from.to_device(..LEN), to.from_device(..LEN)], &())?;
    let Some(job) = until_the_second(job)? else { return Ok(None) };
    std::mem::forget(job);
    // Bus mastering ends here, in the middle of the second transfer.
    drop(engine);
    if started.elapsed() >= SECOND_ENDS {
        return Ok(None);
    }
    thread::sleep(Duration::from_millis(150));
    let bytes = region.host_ptr_of(&port, DevAddr(region.base().raw() + target))?;
    // SAFETY: 4096 bytes of the region, which is alive; the device may no longer write them, and
    // where it does all the same, a volatile read sees it.
    let changed = (0..4096).filter(|index| unsafe { bytes.add(*index).read_volatile() } != CANARY).count();
    Ok(Some(changed as u64))
}

type Job<'e, 'p, 'v> = contigo::Running<'e, 'p, VfioEdu<'v, WIDE, Unwatched>, 2>;

/// The job, 50 ms into its second transfer, whose doorbell is rung by looking; `None` if it is
/// over.
fn until_the_second<'e, 'p, 'v>(mut job: Job<'e, 'p, 'v>) -> Result<Option<Job<'e, 'p, 'v>>> {
    let limit = Instant::now() + IN_THE_SECOND;
    while Instant::now() < limit {
        job = match job.try_wait()? {
            Attempt::Pending(job) => job,
            Attempt::Done(_) => return Ok(None),
        };
        thread::sleep(Duration::from_millis(2));
    }
    Ok(Some(job))
}

#![allow(unsafe_code, reason = "fork, and raw pages that a device may still write")]
//! A process is killed while its engine writes, and its memory is another's at once: is a byte
//! changed?

use super::{Verdict, Wrong, copies::SLOT, ensure, ok};
use crate::{
    heap,
    machine::Memory,
    map::Map,
    setup::{Bench, Place},
};
use contigo::{
    Align, Backend as _, Driver, Error, Queue, Region, linux::memory::HugeTlb, names::MemoryName,
};
use contigo_exerciser::{Ground, Line};
use contigo_testkit::edu::regs::TRANSFER_BYTES;
use nix::{
    libc,
    sys::{
        signal::{Signal, kill},
        wait::{WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, fork},
};
use std::{
    fmt,
    io::{PipeWriter, Read, Write},
    os::fd::AsFd,
    thread::sleep,
    time::{Duration, Instant},
};

/// How often, where the memory is held until the device has stopped.
const HELD: usize = 200;
/// How often, where nothing holds it: enough to see that it is caught.
const LOOSE: usize = 20;
/// Of those, so many must be caught, or the check proves nothing.
const CAUGHT: usize = 5;
/// edu's second transfer, the one that writes, ends 100 ms after its doorbell (hw/misc/edu.c); the
/// kill comes so long after it.
const KILL_AFTER_MS: [u64; 5] = [0, 15, 30, 45, 60];
/// When the transfer is over for certain.
const OVER: Duration = Duration::from_millis(150);
/// A kill right after the second transfer began, with a program armed: closing the port takes as
/// long as the transfer, or a little less.
const CLOSING: Duration = Duration::from_millis(60);
/// The longest that a pinned page may take to be free after its process's end.
const FREED: Duration = Duration::from_secs(5);
/// The byte that the next owner writes.
const CANARY: u8 = 0xC7;
/// The byte that the killed process copies.
const MARK: u8 = 0x5E;

/// In the child: one job, which says by the pipe that its second transfer was begun, and waits to
/// be killed.
struct InFlight(PipeWriter);

impl Bench for InFlight {
    type Out = Verdict;

    fn on<D: Driver>(mut self, region: &Region, mut queue: Queue<D>, _line: Line<'_>) -> Verdict {
        let len = TRANSFER_BYTES as usize;
        let (mut from, to) =
            (ok(region.alloc(SLOT, Align::PAGE))?, ok(region.alloc(SLOT, Align::PAGE))?);
        ok(from.view_mut::<u8>())?.fill(MARK);
        ok(queue.submit([from.to_device(..len), to.from_device(..len)], &[]))?;
        // The first transfer takes 100 ms; the look after its end rings the doorbell of the second.
        let second = Instant::now() + Duration::from_millis(105);
        while Instant::now() < second {
            if ok(queue.try_next::<2>())?.is_some() {
                return Err(Wrong::Failed("it was over too soon".into()));
            }
            sleep(Duration::from_millis(1));
        }
        let _ = self.0.write_all(&[1]);
        sleep(Duration::from_secs(60));
        Err(Wrong::Failed("it was not killed".into()))
    }
}

/// Who has the memory next.
enum Next {
    /// All of the heap but one block of so many bytes, so that the killed process's block is the
    /// only one that is free.
    Heap { name: String, held: Vec<Map> },
    /// The huge pages that are left, but one.
    HugePages { held: Vec<HugeTlb> },
}

/// As much as a row's memory, in whole pages.
const BLOCK_BYTES: usize = Ground::REGION_BYTES.next_multiple_of(1 << 16);

pub(super) fn killed(place: &Place) -> Verdict {
    let armed = place.memory.is_imported();
    let mut next = Next::new(&place.memory)?;
    let (rounds, mut hurt, mut in_flight) = (if armed { HELD } else { LOOSE }, 0, 0);
    let (mut early, mut waited_for) = (0, 0);
    for round in 0..rounds {
        let after_ms = KILL_AFTER_MS.get(round % KILL_AFTER_MS.len()).copied().unwrap_or(0);
        let (told, closing) = killed_at_work(place, InFlight, Duration::from_millis(after_ms))?;
        in_flight += usize::from(told);
        early += usize::from(told && after_ms == 0);
        waited_for += usize::from(told && after_ms == 0 && closing >= CLOSING);
        let canary = next.take()?;
        sleep(OVER);
        hurt += usize::from(canary.is_hurt());
        drop(canary);
    }
    let seen = format!(
        "{rounds} processes killed in flight, {in_flight} of them seen so; the memory of {hurt} next owners was written; \
         {waited_for} of {early} closes took as long as the transfer"
    );
    ensure(in_flight * 10 >= rounds * 8, format!("too seldom in flight: {seen}"))?;
    if armed {
        ensure(hurt == 0, seen.clone())?;
        // This is what only the armed program does, or the reset line.
        ensure(waited_for * 10 >= early * 8, format!("the device was not waited for: {seen}"))?;
    } else {
        ensure(hurt >= CAUGHT, format!("the check catches too little: {seen}"))?;
    }
    Ok(seen)
}

/// Starts a process with `bench`, and kills it so long `after` it said that its engine is at work.
/// Did it say so, and how long did its end take?
pub(super) fn killed_at_work<H: Bench<Out = Verdict>>(
    place: &Place,
    bench: impl FnOnce(PipeWriter) -> H,
    after: Duration,
) -> Result<(bool, Duration), Wrong> {
    killed_while(|tell| place.run(false, bench(tell)), after)
}

/// Starts a process with `work`, which gets a pipe, and kills it so long `after` it wrote there
/// that its device is at work. Did it, and how long did its end take?
pub(crate) fn killed_while<R: fmt::Debug>(
    work: impl FnOnce(PipeWriter) -> R,
    after: Duration,
) -> Result<(bool, Duration), Wrong> {
    let (mut reader, writer) =
        std::io::pipe().map_err(|error| Wrong::Failed(format!("pipe: {error}")))?;
    // SAFETY: this process has one thread.
    match unsafe { fork() }.map_err(|errno| Wrong::Failed(format!("fork: {errno}")))? {
        ForkResult::Child => {
            drop(reader);
            let outcome = work(writer);
            eprintln!("killed at work: the process ended by itself: {outcome:?}");
            // SAFETY: `exit_group`, and nothing before it.
            unsafe { libc::_exit(1) }
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut begun = [0];
            // An empty pipe: it ended by itself, and said why.
            let told = reader.read_exact(&mut begun).is_ok();
            if told {
                sleep(after);
            }
            let killed = Instant::now();
            let _ = kill(child, Signal::SIGKILL);
            Ok((ended(child)? && told, killed.elapsed()))
        }
    }
}

/// Its files are closed when this returns.
fn ended(child: Pid) -> Result<bool, Wrong> {
    match waitpid(child, None) {
        Ok(WaitStatus::Signaled(_, Signal::SIGKILL, _)) => Ok(true),
        Ok(WaitStatus::Exited(..)) => {
            Err(Wrong::Failed("the process ended before it was killed".into()))
        }
        other => Err(Wrong::Failed(format!("lost: {other:?}"))),
    }
}

/// Memory of the next owner.
enum Canary {
    Heap(Map),
    HugePage(HugeTlb),
}

impl Next {
    /// Takes all blocks except for one, which is for the next process.
    fn new(memory: &Memory) -> Result<Self, Wrong> {
        const LIMIT: usize = 4096;
        match memory.name().filter(|_| memory.is_imported()).map(MemoryName::argument) {
            Some(heap) => {
                let mut held = Vec::with_capacity(LIMIT);
                while held.len() < LIMIT {
                    match heap_block(heap, BLOCK_BYTES) {
                        Ok(block) => held.push(block),
                        Err(Error::Os { errno: libc::ENOMEM, .. }) => break,
                        Err(error) => return Err(error.into()),
                    }
                }
                ensure(held.len() > 1, "the heap has not two blocks")?;
                held.pop();
                Ok(Self::Heap { name: heap.to_owned(), held })
            }
            None => {
                let mut held = Vec::with_capacity(LIMIT);
                while held.len() < LIMIT {
                    match HugeTlb::new(HugeTlb::PAGE_BYTES) {
                        Ok(page) => held.push(page),
                        Err(Error::Os { errno: libc::ENOMEM, .. }) => break,
                        Err(error) => return Err(error.into()),
                    }
                }
                ensure(held.len() > 1, "there are not two huge pages")?;
                held.pop();
                Ok(Self::HugePages { held })
            }
        }
    }

    /// The block that the killed process had, filled.
    fn take(&mut self) -> Result<Canary, Wrong> {
        let canary = match self {
            Self::Heap { name, held } => {
                debug_assert!(!held.is_empty());
                Canary::Heap(ok(heap_block(name, BLOCK_BYTES))?)
            }
            Self::HugePages { held } => {
                debug_assert!(!held.is_empty());
                Canary::HugePage(ok(freed_page())?)
            }
        };
        canary.each(|byte| {
            // SAFETY: a byte of the block.
            unsafe { byte.write_volatile(CANARY) };
            true
        });
        Ok(canary)
    }
}

impl Canary {
    /// All bytes that a killed job may have had, which are at the beginning of its memory; false
    /// where one was not.
    fn each(&self, mut look: impl FnMut(*mut u8) -> bool) -> bool {
        let start = match self {
            Self::Heap(map) => map.start(),
            Self::HugePage(page) => page.mapping().cpu.as_ptr(),
        };
        // SAFETY: a block has more bytes than both buffers of a job.
        (0..2 * SLOT).all(|at| look(unsafe { start.add(at) }))
    }

    fn is_hurt(&self) -> bool {
        // SAFETY: a byte of the block; volatile, because a device may write it.
        !self.each(|byte| unsafe { byte.read_volatile() } == CANARY)
    }
}

/// The page of a process that was killed. An io_uring pinned it, and the kernel lets go of that
/// after the process's end, in its own time.
fn freed_page() -> contigo::Result<HugeTlb> {
    let end = Instant::now() + FREED;
    loop {
        match HugeTlb::new(HugeTlb::PAGE_BYTES) {
            Err(Error::Os { errno: libc::ENOMEM, .. }) if Instant::now() < end => {
                sleep(Duration::from_millis(1))
            }
            page => return page,
        }
    }
}

/// A block of the heap, mapped.
fn heap_block(heap: &str, len_bytes: usize) -> contigo::Result<Map> {
    Map::shared(heap::block(heap, len_bytes)?.as_fd(), len_bytes)
}

const _: () = assert!(BLOCK_BYTES > 2 * SLOT && HugeTlb::PAGE_BYTES > 2 * SLOT);

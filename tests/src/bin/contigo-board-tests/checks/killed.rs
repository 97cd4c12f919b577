#![allow(
    unsafe_code,
    reason = "raw pages that a device may still write, and a program for a PL330 that touches no \
              memory"
)]
//! A process is killed while its engine is at work. Its memory is another's at once: is a byte of
//! it changed? And a PL330's program that never ends: does the kernel stop the channel? QEMU's
//! model moves data inside the doorbell's register access, so a channel that waits is the only one
//! that a kill can find at work.

use super::engine::{SLOT, WAIT_FOR_EVER};
use crate::apart::{AT_WORK, killed_while};
use crate::lab::Part;
use crate::machine::{Engine, Memory};
use crate::pages::{Map, block};
use crate::setup::{Bench, Place};
use crate::verdict::{Verdict, Wrong, ensure, fail, must};
use contigo::drivers::pl330::Pl330;
use contigo::linux::memory::HugeTlb;
use contigo::names::{Attach, MemoryName};
use contigo::{Align, Backend as _, Device, Driver, Error, Mmio as _, Queue, Region, Result};
use contigo_exerciser::{Ground, Line};
use contigo_testkit::edu::regs::TRANSFER_BYTES;
use std::io::{PipeWriter, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// PL330, CSR0: channel 0's status; which of its bits are the state; and its state when stopped
/// (Arm DDI 0424C, 3.3.11).
const CSR0: usize = 0x100;
const STATUS: u32 = 0xF;
const STOPPED: u64 = 0;
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
const CANARY: u8 = 0xC7;
const MARK: u8 = 0x5E;
/// What a process writes whose job was over before it could be killed.
const TOO_SOON: [u8; 1] = *b"?";

/// In the child: one job, which says by the pipe that its second transfer was begun, and waits to
/// be killed.
struct InFlight<'p>(&'p mut PipeWriter);

impl Bench for InFlight<'_> {
    type Out = Verdict;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, _line: Line<'_>) -> Verdict {
        let len = TRANSFER_BYTES as usize;
        let (mut from, to) = (region.alloc(SLOT, Align::PAGE)?, region.alloc(SLOT, Align::PAGE)?);
        from.view_mut::<u8>()?.fill(MARK);
        queue.submit([from.to_device(..len), to.from_device(..len)], &[])?;
        // The first transfer takes 100 ms; the look after its end rings the doorbell of the second.
        let second = Instant::now() + Duration::from_millis(105);
        while Instant::now() < second {
            if queue.try_next::<2>()?.is_some() {
                let _ = self.0.write_all(&TOO_SOON);
                return fail("it was over too soon");
            }
            sleep(Duration::from_millis(1));
        }
        let _ = self.0.write_all(&AT_WORK);
        sleep(Duration::from_secs(60));
        fail("it was not killed")
    }
}

/// As much as a row's memory, in whole pages.
const BLOCK_BYTES: usize = Ground::REGION_BYTES.next_multiple_of(1 << 16);

/// The memory of a process that is killed while its engine writes is another's at once.
pub(crate) fn killed(place: &Place) -> Verdict {
    let armed = place.memory.is_imported();
    let _held = all_but_one(&place.memory)?;
    let (rounds, mut hurt, mut in_flight) = (if armed { HELD } else { LOOSE }, 0, 0);
    let (mut early, mut waited_for) = (0, 0);
    for round in 0..rounds {
        let after_ms = KILL_AFTER_MS.get(round % KILL_AFTER_MS.len()).copied().unwrap_or(0);
        let work = |pipe: &mut PipeWriter| place.run(false, InFlight(pipe))?;
        if let Some(closing) = killed_while(work, Duration::from_millis(after_ms))? {
            in_flight += 1;
            early += usize::from(after_ms == 0);
            waited_for += usize::from(after_ms == 0 && closing >= CLOSING);
        }
        let canary = Canary::next(&place.memory)?;
        sleep(OVER);
        hurt += usize::from(canary.is_hurt());
    }
    let seen = format!(
        "{rounds} processes killed in flight, {in_flight} of them seen so; the memory of \
         {hurt} next owners was written; {waited_for} of {early} closes took as long as the transfer"
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

/// Memory of the next owner.
enum Canary {
    Heap(Map),
    HugePage(HugeTlb),
}

/// Takes all memory of this kind except for one block, which is for the next process: so the killed
/// process's block is the only one that is free.
fn all_but_one(memory: &Memory) -> Result<Vec<Canary>, Wrong> {
    const LIMIT: usize = 4096;
    let mut held = Vec::with_capacity(LIMIT);
    while held.len() < LIMIT {
        match Canary::take(memory) {
            Ok(block) => held.push(block),
            Err(Error::Os { errno: libc::ENOMEM, .. } | Error::NoMemory { .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    ensure(held.len() > 1, "there are not two blocks")?;
    held.pop();
    Ok(held)
}

impl Canary {
    /// A free block of this memory, which is filled.
    fn take(memory: &Memory) -> contigo::Result<Self> {
        let heap = memory.name().filter(|_| memory.is_imported()).map(MemoryName::argument);
        let canary = match heap {
            Some(heap) => {
                let map = Map::shared(block(heap, BLOCK_BYTES)?, BLOCK_BYTES);
                Self::Heap(map.map_err(|errno| Error::Os { call: "mmap", errno: errno as i32 })?)
            }
            None => Self::HugePage(HugeTlb::new(HugeTlb::PAGE_BYTES)?),
        };
        canary.each(|byte| {
            // SAFETY: a byte of the block.
            unsafe { byte.write_volatile(CANARY) };
            true
        });
        Ok(canary)
    }

    /// The block of a process that was killed. Where an io_uring pinned it, the kernel lets go of
    /// that after the process's end, in its own time.
    fn next(memory: &Memory) -> contigo::Result<Self> {
        let end = Instant::now() + FREED;
        loop {
            match Self::take(memory) {
                Err(Error::Os { errno: libc::ENOMEM, .. } | Error::NoMemory { .. })
                    if !memory.is_imported() && Instant::now() < end =>
                {
                    sleep(Duration::from_millis(1));
                }
                taken => return taken,
            }
        }
    }

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

const _: () = assert!(BLOCK_BYTES > 2 * SLOT && HugeTlb::PAGE_BYTES > 2 * SLOT);

/// In the child: begins the program, notifies the parent, and does not end the program.
struct Endless<'p>(&'p mut PipeWriter);

impl Bench for Endless<'_> {
    type Out = Verdict;

    fn on<D: Driver>(self, _: &Region, _: Queue<D>, _: Line<'_>) -> Verdict {
        fail("this engine is no PL330")
    }

    fn on_pl330<D: Device>(self, _: &Region, mut driver: Pl330<D>, _: Line<'_>) -> Result<Verdict> {
        driver.stop()?;
        // SAFETY: it waits, and touches nothing.
        unsafe { driver.run_program(&WAIT_FOR_EVER)? };
        if driver.poll(Duration::from_millis(20))?.is_some() {
            return Ok(fail("it was over too soon"));
        }
        let _ = self.0.write_all(&AT_WORK);
        sleep(Duration::from_secs(60));
        Ok(fail("it was not killed"))
    }
}

/// A PL330 whose user is killed. Without what was armed the channel runs on, and with it, it does
/// not. A reset line that the lab has for it does nothing meanwhile; then it does its work, and no
/// program does.
pub(crate) fn stopped(place: &Place) -> Verdict {
    let Engine::Soc { found, port, .. } = &place.engine else {
        return fail("this engine is no PL330");
    };
    let line = Part::reset_of(found.device.argument());
    let state_after = |armed: bool| {
        let place = Place { armed, ..*place };
        let work = |pipe: &mut PipeWriter| place.run(false, Endless(pipe))?;
        ensure(killed_while(work, Duration::ZERO)?.is_some(), "it never began")?;
        if let Some(line) = &line {
            // Opening would reset it.
            return must("running", line.number("running"));
        }
        let device = found.device.open()?;
        // SAFETY: it is only looked at.
        let device = unsafe {
            device.attach_wired(*port, Attach { interrupt: false, ..Attach::default() })
        }?;
        Ok::<_, Wrong>(u64::from(device.read32(CSR0) & STATUS))
    };
    let inert = must("inert", line.as_ref().map(|line| line.told("inert")).transpose())?;
    let loose = state_after(false)?;
    ensure(loose != STOPPED, "it is stopped without being armed: this check can catch nothing")?;
    let held = state_after(true)?;
    ensure(held == STOPPED, format!("its user was killed, and the channel is in state {held}"))?;
    drop(inert);
    let by_line = if line.is_some() {
        let reset = state_after(false)?;
        ensure(reset == STOPPED, "its reset line did not stop it")?;
        "; the reset line alone stops it, too"
    } else {
        ""
    };
    Ok(format!(
        "state {loose} after a kill of an unarmed user, {held} (stopped) after that of an armed \
         one{by_line}"
    ))
}

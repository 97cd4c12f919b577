#![allow(unsafe_code, reason = "memory is read through raw pointers that a device may still write, and programs that lie")]
//! A program is killed while the core writes, and its memory is another's at once.

use super::{
    gated::{Driver, LONG, attached, driver, engine},
    ground::{BYTES, Ground, block},
    product::{CANARY, LIMIT, lens, long_operands},
};
use crate::{
    checks::{self, Wrong},
    map::Map,
    setup::VIRT_PCIE,
    vfio::Seen,
};
use contigo::{
    DevAddr, Engine, Error, Region, Result, StopProgram, StopStep,
    drivers::axi_gate::regs,
    names::{AnyDevice, DeviceName, OpenDevice},
};
use std::{
    io::{PipeWriter, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    thread::sleep,
    time::{Duration, Instant},
};

/// As root, and as many as the ordinary user: 200 together.
const KILLS: u64 = 100;
/// Where the program lies: enough to see that the check catches it.
const LIES: u64 = 10;
/// Of those, so many must be caught, or the check proves nothing.
const CAUGHT: u64 = 5;
/// The kill comes up to so many milliseconds after the core was seen to write.
const AFTER_MS: u64 = 20;
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

/// All memory but one block, so that the next owner gets the one that the killed program had.
fn all_but_one() -> Result<Vec<OwnedFd>> {
    let mut held = Vec::with_capacity(MOST);
    while held.len() < MOST {
        match block() {
            Ok(block) => held.push(block),
            Err(Error::Os { errno: libc::ENOMEM | libc::ENOSPC, .. }) => break,
            Err(error) => return Err(error),
        }
    }
    held.pop();
    Ok(held)
}

/// The block that is free, soon.
fn freed() -> Result<OwnedFd> {
    let end = Instant::now() + FREED;
    loop {
        match block() {
            Err(Error::Os { errno: libc::ENOMEM | libc::ENOSPC, .. }) if Instant::now() < end => sleep(Duration::from_millis(1)),
            block => return block,
        }
    }
}

/// How many bytes of the next owner's are written by somebody else.
fn next_owner() -> Result<u64> {
    let block = freed()?;
    let map = Map::shared(block.as_fd(), BYTES)?;
    let words = map.start().cast::<u64>();
    let canary = u64::from_ne_bytes([CANARY; 8]);
    for index in 0..BYTES / 8 {
        // SAFETY: within the mapping, which begins at a page; no reference to it exists.
        unsafe { words.add(index).write_volatile(canary) };
    }
    sleep(A_WHILE);
    // SAFETY: as above.
    let found = (0..BYTES / 8).map(|index| unsafe { words.add(index).read_volatile() });
    Ok(found.map(|word| word.to_ne_bytes().iter().filter(|byte| **byte != CANARY).count() as u64).sum())
}

/// Kills a program at work, `round` milliseconds or so later. Was it seen at work?
fn kill_one(name: &DeviceName, leaves: Leaves, round: u64) -> Result<bool, String> {
    // 7 and 20 have no common divisor: each millisecond has its turn.
    let after = Duration::from_millis(round * 7 % AFTER_MS);
    match checks::killed_while(|mut tell| works(name, leaves, &mut tell), after) {
        Ok((told, _)) => Ok(told),
        Err(Wrong::Skipped(why) | Wrong::Failed(why)) => Err(why),
    }
}

/// In the process that is killed: it says so when the first word of C was written.
fn works(name: &DeviceName, leaves: Leaves, tell: &mut PipeWriter) -> Result<()> {
    let opened = name.open()?;
    let Ground::Imported(memory) = Ground::of(&opened)? else { return Err(Error::NotFound { what: "guard", among: 0.into() }) };
    let region = Region::new(memory)?;
    let first = region.host_ptr_of(&opened.seen_through(VIRT_PCIE), DevAddr(region.base().raw()))?;
    let [a, b, bias, mut c] = long_operands(&region, &LONG)?;
    c.view_mut::<u8>()?.fill(CANARY);
    let device = attached(&opened)?;
    let mut core = match leaves {
        Leaves::Gate => engine(&opened, &device)?,
        Leaves::Lie => lying(&opened, &device)?,
        Leaves::Nothing => Engine::new(driver(&device)?)?,
    };
    let [a_len, b_len, bias_len, c_len] = lens(&LONG);
    let job = core.start([a.to_device(..a_len), b.to_device(..b_len), bias.to_device(..bias_len), c.from_device(..c_len)], &LONG)?;
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

/// An engine that leaves a lie.
fn lying<'d, 'o>(opened: &OpenDevice, device: &'d AnyDevice<'o>) -> Result<Engine<Driver<'d, 'o>, 4>> {
    let holds = StopStep::poll_until(regs::WINDOW_BYTES + regs::ID.offset(), u32::MAX, regs::GATE, 1_000);
    let program = StopProgram::new(&[holds]).unwrap_or_default();
    if let Some(guard) = opened.guard() {
        // SAFETY: it is a lie, and the test sees what comes of it: the memory is the test's own.
        unsafe { guard.arm(&program, 0)? };
    }
    Ok(Engine::new(driver(device)?)?)
}

/// The core at rest, by its gate.
fn quiet(name: &DeviceName) -> Result<()> {
    let opened = name.open()?;
    let device = attached(&opened)?;
    drop(engine(&opened, &device)?);
    Ok(())
}

/// Killed programs that left the steps that shut the gate.
pub(super) fn stopped(name: &DeviceName) -> Result<Seen> {
    let (mut seen, mut at_work, held) = (Seen::default(), 0, all_but_one()?);
    for round in 0..KILLS {
        match kill_one(name, Leaves::Gate, round) {
            Ok(told) => at_work += u64::from(told),
            Err(why) => return Ok(Seen::failed(why)),
        }
        seen.canary_hits += next_owner()?;
    }
    drop(held);
    seen.failed = at_work != KILLS;
    seen.detail = format!("{at_work} of {KILLS} programs killed at work; {} bytes of the next owners were written", seen.canary_hits);
    Ok(seen)
}

/// The same with a lie: the check must see it.
pub(super) fn told_lies(name: &DeviceName) -> Result<Seen> {
    let (mut caught, mut bytes, held) = (0, 0, all_but_one()?);
    for round in 0..LIES {
        if let Err(why) = kill_one(name, Leaves::Lie, round) {
            return Ok(Seen::failed(why));
        }
        let written = next_owner()?;
        (caught, bytes) = (caught + u64::from(written > 0), bytes + written);
        quiet(name)?;
    }
    drop(held);
    let detail = format!("{LIES} programs killed that said stopped too early: {caught} next owners were written, {bytes} bytes");
    Ok(Seen { failed: caught < CAUGHT, ..Seen::shown(detail) })
}

/// A killed program that left nothing: nobody gets its memory, until the core has stopped.
pub(super) fn kept(name: &DeviceName) -> Result<Seen> {
    let held = all_but_one()?;
    match kill_one(name, Leaves::Nothing, 0) {
        Ok(true) => {}
        Ok(false) => return Ok(Seen::failed("the program was not seen at work")),
        Err(why) => return Ok(Seen::failed(why)),
    }
    let refused = matches!(freed(), Err(Error::Os { errno: libc::ENOMEM | libc::ENOSPC, .. }));
    let opened = name.open()?;
    let kept = opened.guard().map(contigo::Guard::info).transpose()?.map_or(0, |info| info.kept_bytes);
    drop(opened);
    quiet(name)?;
    let back = next_owner();
    drop(held);
    let detail = format!("{kept} bytes kept, and refused to the next owner: {refused}; after a stop they were given back: {back:?}");
    Ok(Seen { failed: !(refused && kept == BYTES as u64 && back == Ok(0)), ..Seen::shown(detail) })
}

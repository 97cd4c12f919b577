#![allow(
    unsafe_code,
    reason = "memory is read through raw pointers that a device may still write, and programs that lie"
)]
//! A program is killed while the core writes, and its memory is another's at once.

use super::{
    gated::{Driver, LONG, attached, driver, queue},
    ground::{BYTES, ground},
    product::{CANARY, LIMIT, lens, long_operands},
};
use crate::{
    checks::{self, Wrong},
    setup::virt_port,
    vfio::Seen,
};
use contigo::{
    Backend as _, DevAddr, Error, Queue, Result,
    drivers::axi_gate::regs,
    job::{StopProgram, StopStep},
    linux::guard::GuardMemory,
    names::{AnyDevice, DeviceName, OpenDevice},
};
use std::{
    fs,
    io::{PipeWriter, Write as _},
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
fn all(opened: &OpenDevice) -> Result<Vec<GuardMemory>> {
    let guard = opened.guard().ok_or(Error::NotFound { what: "guard", among: 0.into() })?;
    let mut blocks = Vec::with_capacity(MOST);
    while blocks.len() < MOST {
        match guard.allocate(BYTES) {
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
    let words = || {
        blocks.iter().flat_map(|block| {
            (0..BYTES / 8)
                .map(|index| block.mapping().cpu.as_ptr().cast::<u64>().wrapping_add(index))
        })
    };
    // SAFETY: within its mapping, which begins at a page; no reference to it exists.
    words().for_each(|word| unsafe { word.write_volatile(canary) });
    sleep(A_WHILE);
    // SAFETY: as above.
    let found = words().map(|word| unsafe { word.read_volatile() });
    Ok(found
        .map(|word| word.to_ne_bytes().iter().filter(|byte| **byte != CANARY).count() as u64)
        .sum())
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

/// In the process that is killed: notifies the parent when the first word of C was written.
fn works(name: &DeviceName, leaves: Leaves, tell: &mut PipeWriter) -> Result<()> {
    let opened = name.open()?;
    opened.guard().ok_or(Error::NotFound { what: "guard", among: 0.into() })?;
    let region = ground(&opened)?;
    let first = region
        .host_ptr_of(&opened.seen_through(virt_port(&opened)), DevAddr(region.base().raw()))?;
    let [a, b, bias, mut c] = long_operands(&region, &LONG)?;
    c.view_mut::<u8>()?.fill(CANARY);
    let device = attached(&opened)?;
    let mut core = match leaves {
        Leaves::Gate => queue(&opened, &device)?,
        Leaves::Lie => lying(&opened, &device)?,
        Leaves::Nothing => Queue::new(driver(&device)?, 1)?,
    };
    let [a_len, b_len, bias_len, c_len] = lens(&LONG);
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

/// A queue that leaves a lie.
fn lying<'d>(opened: &OpenDevice, device: &'d AnyDevice) -> Result<Queue<Driver<'d>>> {
    let holds =
        StopStep::poll_until(regs::WINDOW_BYTES + regs::ID.offset(), u32::MAX, regs::GATE, 1_000);
    let program = StopProgram::new(&[holds]).unwrap_or_default();
    if let Some(guard) = opened.guard() {
        // SAFETY: it is a lie, and the test sees what comes of it: the memory is the test's own.
        unsafe { guard.arm(&program, 0)? };
    }
    Ok(Queue::new(driver(device)?, 1)?)
}

/// The core at rest, by its gate.
fn quiet(name: &DeviceName) -> Result<()> {
    let opened = name.open()?;
    let device = attached(&opened)?;
    drop(queue(&opened, &device)?);
    Ok(())
}

/// Killed programs that left the steps that shut the gate.
pub(super) fn stopped(name: &DeviceName) -> Result<Seen> {
    let (mut seen, mut at_work) = (Seen::default(), 0);
    for round in 0..KILLS {
        match kill_one(name, Leaves::Gate, round) {
            Ok(told) => at_work += u64::from(told),
            Err(why) => return Ok(Seen::failed(why)),
        }
        seen.canary_hits += next_owner(name)?;
    }
    seen.failed = at_work != KILLS;
    seen.detail = format!(
        "{at_work} of {KILLS} programs killed at work; {} bytes of the next owners were written",
        seen.canary_hits
    );
    Ok(seen)
}

/// The same with a lie: the check must see it.
pub(super) fn told_lies(name: &DeviceName) -> Result<Seen> {
    let (mut caught, mut bytes) = (0, 0);
    for round in 0..LIES {
        if let Err(why) = kill_one(name, Leaves::Lie, round) {
            return Ok(Seen::failed(why));
        }
        let written = next_owner(name)?;
        (caught, bytes) = (caught + u64::from(written > 0), bytes + written);
        quiet(name)?;
    }
    let detail = format!(
        "{LIES} programs killed that said stopped too early: {caught} next owners were written, {bytes} bytes"
    );
    Ok(Seen { failed: caught < CAUGHT, ..Seen::shown(detail) })
}

/// How much the module keeps because the core has not stopped.
fn kept_bytes(name: &DeviceName) -> Result<u64> {
    let opened = name.open()?;
    Ok(opened
        .guard()
        .map(contigo::linux::guard::Guard::info)
        .transpose()?
        .map_or(0, |info| info.quarantined_bytes))
}

/// A killed program that left nothing: no other program gets its memory. Another one shuts the gate
/// afterwards, and that is no proof: only the administrator ends the quarantine.
pub(super) fn kept(name: &DeviceName) -> Result<Seen> {
    let before = kept_bytes(name)?;
    let free = all(&name.open()?)?.len();
    match kill_one(name, Leaves::Nothing, 0) {
        Ok(true) => {}
        Ok(false) => return Ok(Seen::failed("the program was not seen at work")),
        Err(why) => return Ok(Seen::failed(why)),
    }
    let refused = all(&next(name)?)?.len() == free - 1;
    let kept = kept_bytes(name)? - before;
    quiet(name)?;
    let then = kept_bytes(name)? - before;
    let mut detail = format!(
        "{kept} bytes kept, and refused to the next owner: {refused}; {then} after another program has stopped it"
    );
    let mut right = refused && kept == BYTES as u64 && then == kept;
    if nix::unistd::geteuid().is_root() {
        let ended =
            fs::write(format!("/sys/class/contigo/{}/quarantine", name.argument()), "0").is_ok();
        let left = kept_bytes(name)?;
        right &= ended && left == 0;
        detail = format!("{detail}, {left} after the administrator has ended it");
    }
    Ok(Seen { failed: !right, ..Seen::shown(detail) })
}

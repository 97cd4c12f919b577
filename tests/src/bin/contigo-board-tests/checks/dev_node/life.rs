//! What happens to a device: its clock and power, its reset line, system sleep, and the
//! loss of its driver.

use super::{
    left::{Gone, LEFT_BYTES, other_user},
    subject::{Subject, soon},
};
use crate::{
    apart::{USER, allow, opens},
    lab::{KernelLog, Part},
    pages::block,
    raw::{RawDevNode, RawRegisters, info},
    verdict::{Verdict, Wrong, ensure, must, refused, skip},
};
use nix::{errno::Errno, libc};
use std::{
    fs, io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{scope, sleep},
    time::Duration,
};

pub(crate) fn clocks(subject: &Subject) -> Verdict {
    let clock =
        subject.clock().ok_or_else(|| Wrong::Skipped("its clock is not the lab's".into()))?;
    let power = Part::power_of(&subject.dev_node);
    let on = |wanted: u64| {
        let has = |part: &Part, file| part.number(file).is_ok_and(|number| number == wanted);
        soon(|| has(&clock, "enabled") && power.as_ref().is_none_or(|power| has(power, "on")))
    };
    let enables = || must("enables", clock.number("enables"));
    ensure(on(0), "the clock or the power is on, and no process has opened it")?;
    let before = enables()?;
    let dev_node = subject.open()?;
    ensure(on(1), "opened, and the clock or the power is off")?;
    drop(dev_node);
    ensure(on(0), "closed, and the clock or the power is on")?;
    ensure(
        enables()? == before + 1,
        format!("turned on {} times by one opening", enables()? - before),
    )?;

    let names = must(
        "its node",
        fs::read_to_string(format!(
            "/sys/class/contigo/{}/device/of_node/clock-names",
            subject.dev_node
        )),
    )?;
    let name = names.split('\0').next().unwrap_or_default();
    let mut log = must("/dev/kmsg", KernelLog::from_here())?;
    let fails = must("fail", clock.told("fail"))?;
    refused("open without its clock", RawDevNode::open(&subject.dev_node), Errno::EIO)?;
    drop(fails);
    let lines = log.lines();
    // The clock framework's line has the clock, and the module's behind it the device.
    let said = lines.windows(2).find_map(|pair| match pair {
        [clock, device] if clock.contains(name) && device.contains(&subject.dev_node) => {
            Some(clock)
        }
        _ => None,
    });
    let said = said.ok_or_else(|| {
        Wrong::Failed(format!(
            "no lines of the kernel's log have {name} and then {}: {lines:?}",
            subject.dev_node
        ))
    })?;
    ensure(on(0), "an open that failed left the power on")?;
    drop(subject.open()?);
    Ok(format!(
        "on and off{}; EIO and \"{said}\"",
        if power.is_some() { ", with its power domain" } else { "" }
    ))
}

/// A byte of memory that a reset leaves alone.
const BYTE: u8 = 0x5A;

pub(crate) fn reset(subject: &Subject) -> Verdict {
    let line = subject.reset_line()?;
    let number = |what| must(what, line.number(what));
    let (is, before) = (number("asserted")?, number("asserts")?);
    let dev_node = subject.open()?;
    ensure(!Subject::has_no_reset(&dev_node)?, "its info says that it has no reset")?;
    let opened = number("asserts")? - before;
    ensure(
        opened == 1 && number("asserted")? == 0,
        format!("opened: asserted {opened} times, and now {}", number("asserted")?),
    )?;
    let memory = must("ALLOC", dev_node.alloc(4096, 0))?;
    let pages = must("mmap", dev_node.map_memory(memory.mmap_offset, 4096))?;
    pages.write(0, BYTE);
    must("RESET", dev_node.reset())?;
    ensure(pages.read(0) == BYTE, "CONTIGO_RESET changed the memory")?;
    ensure(
        number("asserts")? - before == 2 && number("asserted")? == 0,
        "CONTIGO_RESET did not reset it",
    )?;
    // No program: only the line stops it, and so nothing is kept.
    let buffer = block(&subject.heap, 1 << 16)?;
    must("IMPORT", dev_node.import(&buffer, 0))?;
    drop((dev_node, buffer, pages));
    ensure(
        number("asserts")? - before == 3 && number("asserted")? == 1,
        "closed, and its line is not asserted",
    )?;
    let kept = subject.info()?.quarantined;
    ensure(kept == 0, format!("{kept} buffers are kept, though it was reset"))?;

    let fails = must("fail", line.told("fail"))?;
    refused("open without its reset", RawDevNode::open(&subject.dev_node), Errno::EIO)?;
    drop(fails);
    drop(subject.open()?);
    Ok(format!(
        "asserted {is} before; once to open, once by CONTIGO_RESET, and at the end; EIO where it \
         fails"
    ))
}

/// As far as the devices, and a second there instead of five.
fn suspend() -> io::Result<()> {
    fs::write("/sys/module/suspend/parameters/pm_test_delay", "1")?;
    fs::write("/sys/power/pm_test", "devices")?;
    fs::write("/sys/power/state", "freeze")
}

const NEEDS_STOP: &str = "/sys/module/contigo/parameters/sleep_needs_stop";

fn ensure_can_sleep() -> Result<(), Wrong> {
    match fs::exists("/sys/power/pm_test") {
        Ok(true) => Ok(()),
        _ => skip("this kernel has no /sys/power/pm_test"),
    }
}

/// The system sleeps, and then the device is not this file's any more.
fn ended_by_sleep(
    subject: &Subject,
    dev_node: RawDevNode,
    registers: RawRegisters,
) -> Result<(), Wrong> {
    must("system sleep", suspend())?;
    refused("GET_INFO after it", dev_node.info(), Errno::ENODEV)?;
    let after = registers.read(subject.steady());
    ensure(after == u32::MAX, format!("its registers are still mapped: {after:#x}"))
}

pub(crate) fn suspended(subject: &Subject) -> Verdict {
    ensure_can_sleep()?;
    let mut seen = "";
    let dev_node = subject.open()?;
    let registers = must("mmap", dev_node.map())?;
    if Subject::has_no_reset(&dev_node)? {
        let buffer = block(&subject.heap, 1 << 16)?;
        must("IMPORT", dev_node.import(&buffer, 0))?;
        must(NEEDS_STOP, fs::write(NEEDS_STOP, "Y"))?;
        let refused = suspend();
        must(NEEDS_STOP, fs::write(NEEDS_STOP, "N"))?;
        let busy = refused.as_ref().err().and_then(io::Error::raw_os_error) == Some(libc::EBUSY);
        ensure(
            busy,
            format!(
                "nothing stops the device, sleep_needs_stop is set, and system sleep: {refused:?}"
            ),
        )?;
        ensure(
            registers.read(subject.steady()) != u32::MAX && dev_node.info().is_ok(),
            "system sleep was refused, and the device is gone",
        )?;
        seen = "EBUSY with sleep_needs_stop, and sleep without, while nothing could stop it; ";
        ended_by_sleep(subject, dev_node, registers)?;
        subject.end_quarantine()?;
    } else {
        drop((dev_node, registers));
    }
    let dev_node = subject.open()?;
    let registers = must("mmap", dev_node.map())?;
    must("ARM", dev_node.arm(&subject.always(&registers)))?;
    ended_by_sleep(subject, dev_node, registers)?;
    let dev_node = subject.open()?;
    let registers = must("mmap", dev_node.map())?;
    ensure(registers.read(subject.steady()) != u32::MAX, "opened again, its registers are ones")?;
    Ok(format!("{seen}stopped and taken away, then opened again"))
}

pub(crate) fn sleep_held(subject: &Subject) -> Verdict {
    ensure_can_sleep()?;
    allow(&subject.dev_node)?;
    let user = other_user(subject)?;

    // Given nothing, it has nothing to stop, armed or not.
    Gone { user, is_armed: true, has_memory: false }.from(subject)?;
    ensure(
        subject.quarantined_bytes()? == 0,
        "nothing was allocated, and something is in quarantine",
    )?;
    must("system sleep after a user who had nothing", suspend())?;
    drop(subject.open()?);

    // A device that does not stop; a reset line that it has fails, too.
    let flags = subject.info()?.flags;
    Gone { user, is_armed: true, has_memory: true }.from(subject)?;
    let bytes = subject.quarantined_bytes()?;
    ensure(
        bytes == LEFT_BYTES as u64,
        format!("its poll was not met, and {bytes} bytes are in quarantine"),
    )?;
    must("system sleep over a device that has not stopped", suspend())?;
    let bytes = subject.quarantined_bytes()?;
    ensure(
        bytes == LEFT_BYTES as u64,
        format!("the system has slept, and {bytes} bytes are in quarantine"),
    )?;
    if flags & (info::IOMMU | info::RESET) == info::IOMMU {
        refused("open", RawDevNode::open(&subject.dev_node), Errno::EBUSY)?;
    }

    subject.end_quarantine()?;
    ensure(subject.quarantined_bytes()? == 0, "the administrator ended it, and something is left")?;
    ensure(
        opens(&subject.dev_node)?.is_ok() || user.is_none(),
        format!("it was ended, and user {USER} cannot open the device"),
    )?;
    let info = subject.info()?;
    ensure(
        info.quarantined == 0,
        format!("it was ended, and {} buffers are in quarantine", info.quarantined),
    )?;
    let who = user.map_or_else(|| "root".to_owned(), |user| format!("user {user}"));
    Ok(format!(
        "{who} left a device that does not stop: the system slept, and root ended the quarantine; \
         nothing was left by one who had nothing"
    ))
}

/// A number that no register has by itself.
const MARK: u32 = 0x5A5A_1234;

pub(crate) fn taken(subject: &Subject) -> Verdict {
    let dev_node = subject.open()?;
    let registers = must("mmap", dev_node.map())?;
    let real = registers.read(subject.steady());
    must("ARM", dev_node.arm(&subject.always(&registers)))?;
    let buffer = block(&subject.heap, 1 << 16)?;
    must("IMPORT", dev_node.import(&buffer, 0))?;
    let (done, reads, wrong) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let bound = scope(|scope| {
        // Reads on, whatever happens: a safe read must not end the process.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let now = registers.read(subject.steady());
                reads.fetch_add(1, Ordering::Relaxed);
                wrong.fetch_add(u64::from(now != real && now != u32::MAX), Ordering::Relaxed);
            }
        });
        sleep(Duration::from_millis(20));
        let unbound = subject.unbind();
        let gone = reads.load(Ordering::Relaxed);
        let goes_on = soon(|| reads.load(Ordering::Relaxed) > gone + 1000);
        done.store(true, Ordering::Relaxed);
        ensure(goes_on, "the reader stood still")?;
        unbound
    });
    let unbound = bound?;
    ensure(wrong.load(Ordering::Relaxed) == 0, "a read was neither the register's value nor ones")?;
    ensure(registers.read(subject.steady()) == u32::MAX, "its registers do not read as ones")?;
    ensure(dev_node.poll(0) & libc::POLLHUP != 0, "poll does not say POLLHUP")?;
    refused("GET_INFO", dev_node.info(), Errno::ENODEV)?;
    refused("IMPORT", dev_node.import(&buffer, 0), Errno::ENODEV)?;
    refused("RESET", dev_node.reset(), Errno::ENODEV)?;
    refused("UNMASK", dev_node.unmask(1), Errno::ENODEV)?;
    refused("read", dev_node.read(4), Errno::ENODEV)?;
    refused("mmap", dev_node.map(), Errno::ENODEV)?;
    unbound.bind()?;

    // The next owner has the device, and what the one before writes does not reach it.
    let next = subject.open()?;
    let own = must("mmap", next.map())?;
    subject.set_flag(&own, true);
    let flag = own.read(subject.flag());
    registers.write(subject.flag(), MARK);
    ensure(registers.read(subject.flag()) == MARK, "a write to the page of ones is not read back")?;
    ensure(own.read(subject.flag()) == flag, "a write of the owner before reached the device")?;
    ensure(own.read(subject.steady()) == real, "the next owner's registers are not the device's")?;
    drop((dev_node, registers));
    ensure(
        must("GET_INFO", next.info()).is_ok(),
        "the end of the owner before took it from the next",
    )?;
    Ok(format!(
        "ENODEV and POLLHUP; {} reads without a crash; the next owner saw nothing",
        reads.load(Ordering::Relaxed)
    ))
}

//! What happens to a device: its clock and power, its reset line, system sleep, and the
//! loss of its driver.

use super::left::{Gone, LEFT_BYTES, other_user};
use super::subject::{Subject, soon};
use crate::apart::{USER, allow, opens};
use crate::lab::{KernelLog, Part};
use crate::pages::block;
use crate::raw::{RawDevNode, RawRegisters, info};
use crate::verdict::{Verdict, Wrong, ensure, must, refused, same, skip};
use nix::errno::Errno;
use nix::libc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;
use std::{fs, io};

pub(crate) fn clocks(subject: &Subject) -> Verdict {
    let Some(clock) = subject.clock() else { return skip("its clock is not the lab's") };
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
    same("times that one opening turned it on", enables()? - before, 1)?;

    let names = subject.in_class("device/of_node/clock-names");
    let names = must("its node", fs::read_to_string(names))?;
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
    let Some(said) = said else {
        return Err(Wrong::Failed(format!("the kernel's log has no line of {name}: {lines:?}")));
    };
    ensure(on(0), "an open that failed left the power on")?;
    drop(subject.open()?);
    let with = if power.is_some() { ", with its power domain" } else { "" };
    Ok(format!("on and off{with}; EIO and \"{said}\""))
}

const BYTE: u8 = 0x5A;

pub(crate) fn reset(subject: &Subject) -> Verdict {
    let line = subject.reset_line()?;
    let number = |what| must(what, line.number(what));
    let (is, before) = (number("asserted")?, number("asserts")?);
    // How often it was asserted so far, and whether it is now.
    let counted = || Ok::<_, Wrong>((number("asserts")? - before, number("asserted")?));
    let dev_node = subject.open()?;
    ensure(!Subject::has_no_reset(&dev_node)?, "its info says that it has no reset")?;
    same("opened: asserts, and asserted", counted()?, (1, 0))?;
    let memory = must("ALLOC", dev_node.alloc(4096, 0))?;
    let pages = must("mmap", dev_node.map_memory(memory.mmap_offset, 4096))?;
    pages.write(0, BYTE);
    must("RESET", dev_node.reset())?;
    ensure(pages.read(0) == BYTE, "CONTIGO_RESET changed the memory")?;
    same("CONTIGO_RESET: asserts, and asserted", counted()?, (2, 0))?;
    // No program: only the line stops it, and so nothing is kept.
    let buffer = block(&subject.heap, 1 << 16)?;
    must("IMPORT", dev_node.import(&buffer, 0))?;
    drop((dev_node, buffer, pages));
    same("closed: asserts, and asserted", counted()?, (3, 1))?;
    same("buffers kept, though it was reset", subject.info()?.quarantined, 0)?;

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
    (dev_node, registers): (RawDevNode, RawRegisters),
) -> Result<(), Wrong> {
    must("system sleep", suspend())?;
    refused("GET_INFO after it", dev_node.info(), Errno::ENODEV)?;
    same("its registers after it", registers.read(subject.steady()), u32::MAX)
}

pub(crate) fn suspended(subject: &Subject) -> Verdict {
    ensure_can_sleep()?;
    let mut seen = "";
    let opened = subject.open_mapped()?;
    if Subject::has_no_reset(&opened.0)? {
        let (dev_node, registers) = &opened;
        let buffer = block(&subject.heap, 1 << 16)?;
        must("IMPORT", dev_node.import(&buffer, 0))?;
        must(NEEDS_STOP, fs::write(NEEDS_STOP, "Y"))?;
        let refused = suspend();
        must(NEEDS_STOP, fs::write(NEEDS_STOP, "N"))?;
        let errno = refused.as_ref().err().and_then(io::Error::raw_os_error);
        same("sleep of what nothing stops, with sleep_needs_stop", errno, Some(libc::EBUSY))?;
        let is_there = registers.read(subject.steady()) != u32::MAX && dev_node.info().is_ok();
        ensure(is_there, "system sleep was refused, and the device is gone")?;
        seen = "EBUSY with sleep_needs_stop, and sleep without, while nothing could stop it; ";
        ended_by_sleep(subject, opened)?;
        subject.end_quarantine()?;
    } else {
        drop(opened);
    }
    let (dev_node, registers) = subject.open_mapped()?;
    must("ARM", dev_node.arm(&subject.always(&registers)))?;
    ended_by_sleep(subject, (dev_node, registers))?;
    let (_dev_node, registers) = subject.open_mapped()?;
    ensure(registers.read(subject.steady()) != u32::MAX, "opened again, its registers are ones")?;
    Ok(format!("{seen}stopped and taken away, then opened again"))
}

pub(crate) fn sleep_held(subject: &Subject) -> Verdict {
    ensure_can_sleep()?;
    allow(&subject.dev_node)?;
    let user = other_user(subject)?;
    let held = |when: &str, expected: u64| {
        same(&format!("bytes in quarantine {when}"), subject.quarantined_bytes()?, expected)
    };

    // Given nothing, it has nothing to stop, armed or not.
    Gone { user, is_armed: true, has_memory: false }.from(subject)?;
    held("after a user who had nothing", 0)?;
    must("system sleep after a user who had nothing", suspend())?;
    drop(subject.open()?);

    // A device that does not stop; a reset line that it has fails, too.
    let flags = subject.info()?.flags;
    Gone { user, is_armed: true, has_memory: true }.from(subject)?;
    held("after a poll that was not met", LEFT_BYTES as u64)?;
    must("system sleep over a device that has not stopped", suspend())?;
    held("after the system has slept", LEFT_BYTES as u64)?;
    if flags & (info::IOMMU | info::RESET) == info::IOMMU {
        refused("open", RawDevNode::open(&subject.dev_node), Errno::EBUSY)?;
    }

    subject.end_quarantine()?;
    held("after the administrator ended it", 0)?;
    let may = opens(&subject.dev_node)?.is_ok() || user.is_none();
    ensure(may, format!("it was ended, and user {USER} cannot open the device"))?;
    same("buffers in quarantine", subject.info()?.quarantined, 0)?;
    let who = user.map_or_else(|| "root".to_owned(), |user| format!("user {user}"));
    Ok(format!(
        "{who} left a device that does not stop: the system slept, and root ended the quarantine; \
         nothing was left by one who had nothing"
    ))
}

const MARK: u32 = 0x5A5A_1234;

pub(crate) fn taken(subject: &Subject) -> Verdict {
    let (dev_node, registers) = subject.open_mapped()?;
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
    same("reads of neither its value nor ones", wrong.load(Ordering::Relaxed), 0)?;
    same("its registers", registers.read(subject.steady()), u32::MAX)?;
    ensure(dev_node.poll(0) & libc::POLLHUP != 0, "poll does not say POLLHUP")?;
    refused("GET_INFO", dev_node.info(), Errno::ENODEV)?;
    refused("IMPORT", dev_node.import(&buffer, 0), Errno::ENODEV)?;
    refused("RESET", dev_node.reset(), Errno::ENODEV)?;
    refused("UNMASK", dev_node.unmask(1), Errno::ENODEV)?;
    refused("WAIT", dev_node.wait(1, 1_000_000), Errno::ENODEV)?;
    refused("read", dev_node.read(4), Errno::ENODEV)?;
    refused("mmap", dev_node.map(), Errno::ENODEV)?;
    unbound.bind()?;

    // The next owner has the device, and what the one before writes does not reach it.
    let (next, own) = subject.open_mapped()?;
    subject.set_flag(&own, true);
    let flag = own.read(subject.flag());
    registers.write(subject.flag(), MARK);
    same("what was written to the page of ones", registers.read(subject.flag()), MARK)?;
    same("the next owner's register", own.read(subject.flag()), flag)?;
    same("the next owner's steady register", own.read(subject.steady()), real)?;
    drop((dev_node, registers));
    must("GET_INFO of the next, after the end of the owner before", next.info())?;
    let reads = reads.load(Ordering::Relaxed);
    Ok(format!("ENODEV and POLLHUP; {reads} reads without a crash; the next owner saw nothing"))
}

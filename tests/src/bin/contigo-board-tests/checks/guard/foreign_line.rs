//! Another device's interrupt line: what the user of a guard does must not take it away. The lab
//! has a second edu with a driver of its own, on the line of the first.

use super::{
    super::{Verdict, Wrong, ensure},
    subject::{Subject, file, sys},
};
use crate::{
    lab::{KernelLog, Part},
    raw::Step,
};
use std::{fs, thread::sleep, time::Duration};

/// edu's registers (`docs/specs/edu.rst`).
const STATUS: u32 = 0x24;
const RAISE: u32 = 0x60;
const ACKNOWLEDGE: u32 = 0x64;
/// Interrupts of the other device, each of which must be answered.
const ROUNDS: u64 = 20;
/// A line that is not acknowledged brings a hundred times as many in a moment.
const FEW: u64 = 1_000;
/// The other device's folder.
const OTHER: &str = "edu";

pub(super) fn is_there() -> bool {
    Part::named(OTHER).is_some()
}

pub(super) fn foreign_line(subject: &Subject) -> Verdict {
    let other = Part::named(OTHER).ok_or_else(|| Wrong::Skipped("there is no other edu".into()))?;
    let mut log = file("/dev/kmsg", KernelLog::from_here())?;
    ensure(share_a_line(&subject.guard)?, "the two do not share a line: this check can catch nothing")?;
    let alone = rounds(&other)?;
    let before = line_count()?;

    // It raises its interrupt and does not answer it: by a program that runs when it goes, and then
    // by its registers, unmasked again and again.
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    let mut program = vec![Step::write(RAISE, 1)];
    program.extend(subject.always(&registers));
    sys("ARM", guard.arm(&program))?;
    drop((guard, registers));
    let closed = rounds(&other)?;
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    registers.write(RAISE, 1);
    for _ in 0..ROUNDS {
        sys("UNMASK", guard.unmask(1))?;
        sleep(Duration::from_millis(5));
    }
    let opened = rounds(&other)?;
    registers.write(ACKNOWLEDGE, registers.read(STATUS));
    drop((guard, registers));

    let came = line_count()?.saturating_sub(before);
    let lines = log.lines();
    let cut = lines.iter().find(|line| line.contains("nobody cared") || line.contains("Disabling IRQ"));
    ensure(cut.is_none(), format!("the kernel has cut the line: {cut:?}"))?;
    ensure(came < FEW, format!("{came} interrupts on the line, of which {} were the other device's", 2 * ROUNDS))?;
    Ok(format!("the other device's longest round: {alone} us alone, {closed} and {opened} us beside it; {came} interrupts"))
}

/// The longest of a few rounds of the other device, in microseconds.
fn rounds(other: &Part) -> Result<u64, Wrong> {
    let mut longest = 0;
    for _ in 0..ROUNDS {
        longest = longest.max(file("an interrupt of the other device", other.number("round"))?);
    }
    Ok(longest)
}

/// How many interrupts the other device's line has had.
fn line_count() -> Result<u64, Wrong> {
    let all = file("/proc/interrupts", fs::read_to_string("/proc/interrupts"))?;
    let line = all.lines().find(|line| line.contains("contigo-lab-edu"));
    let line = line.ok_or_else(|| Wrong::Failed("the other device has no line in /proc/interrupts".into()))?;
    Ok(line.split_ascii_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok()).sum())
}

/// A PCI function's line is its slot's and its pin's sum, modulo four (the swizzle of PCI).
fn share_a_line(guard: &str) -> Result<bool, Wrong> {
    let driver = file("the other device's driver", fs::read_dir("/sys/bus/pci/drivers/contigo-lab-edu"))?;
    let names = driver.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let other = names.into_iter().find(|name| name.contains(':')).unwrap_or_default();
    let line = |address: &str| -> Option<u32> {
        let slot = u32::from_str_radix(address.split([':', '.']).nth(2)?, 16).ok()?;
        let pin = *fs::read(format!("/sys/bus/pci/devices/{address}/config")).ok()?.get(0x3d)?;
        Some((slot + u32::from(pin)) % 4)
    };
    Ok(line(guard).is_some() && line(guard) == line(&other))
}

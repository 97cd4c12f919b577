//! A stop sequence that does not look after it wrote proves nothing, and is refused: on each way to
//! its end. The one that was armed before stays.

use super::{
    super::{Verdict, ensure},
    subject::{Subject, refused, sys},
};
use crate::raw::{Step, info};
use nix::errno::Errno;

pub(super) fn stop_without_poll(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    subject.set_flag(&registers, true);
    let [poll] = subject.by_flag();
    sys("ARM", guard.arm(&[poll]))?;
    let write = Step::write(subject.flag(), 0);
    let unproven: [(&str, &[Step]); 7] = [
        ("a write alone", &[write]),
        ("a write at the end", &[poll, write]),
        ("two writes at the end", &[poll, write, write]),
        ("a write before an ELSE", &[poll, write, Step::ELSE, poll]),
        ("a write alone before an ELSE", &[write, Step::ELSE, poll]),
        ("a write behind an ELSE", &[poll, Step::ELSE, write]),
        ("a write behind the last ELSE", &[poll, Step::ELSE, poll, Step::ELSE, poll, write]),
    ];
    for (what, steps) in unproven {
        refused(what, guard.arm(steps), Errno::EINVAL)?;
        ensure(
            sys("GET_INFO", guard.info())?.flags & info::ARMED != 0,
            format!("{what} was refused, and nothing is armed any more"),
        )?;
    }
    sys(
        "a write that is polled for, on each way",
        guard.arm(&[write, poll, Step::ELSE, write, poll]),
    )?;
    sys("ARM", guard.arm(&[poll]))?;
    refused("a write at the end", guard.arm(&[poll, write]), Errno::EINVAL)?;
    // A register was touched: without a stop sequence this would be in quarantine.
    sys("ALLOC", guard.alloc(4096, 0))?;
    drop((guard, registers));
    let left = sys("GET_INFO", subject.open()?.info())?.quarantined;
    ensure(
        left == 0,
        format!("the sequence before was to find it stopped, and {left} buffers are in quarantine"),
    )?;
    Ok(format!("EINVAL for {} sequences; the one before stays armed, and is run", unproven.len()))
}

//! A user who is killed, and whose device does not stop: not by its stop sequence, and not by a
//! reset, which fails meanwhile.

use super::{
    super::{
        Wrong,
        apart::{AT_WORK, Apart},
        as_user::{USER, opens},
    },
    edu,
    subject::{Subject, file, sys},
};
use std::{io::Write, thread::sleep, time::Duration};

/// The bytes that it leaves, where it has memory.
pub(super) const LEFT_BYTES: usize = 4096;
/// Longer than anything here takes.
const HANGS: Duration = Duration::from_secs(60);

/// What it did before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    pub(super) user: Option<u32>,
    /// It armed a stop sequence whose poll is not met.
    pub(super) is_armed: bool,
    /// It allocated memory, into which edu writes.
    pub(super) has_memory: bool,
}

/// A user of the lab, or root where no other may open it.
pub(super) fn other_user(subject: &Subject) -> Result<Option<u32>, Wrong> {
    Ok(opens(&subject.guard)?.is_ok().then_some(USER))
}

impl Gone {
    /// It begins, and is killed.
    pub(super) fn from(self, subject: &Subject) -> Result<(), Wrong> {
        let line = subject.reset();
        let user = Apart::begin(self.user, |pipe| {
            let guard = subject.open()?;
            let registers = sys("mmap", guard.map())?;
            subject.set_flag(&registers, false);
            if self.is_armed {
                sys("ARM", guard.arm(&subject.by_flag()))?;
            }
            if self.has_memory {
                let memory = sys("ALLOC", guard.alloc(LEFT_BYTES as u64, 0))?;
                if subject.is_edu() {
                    edu::begin(&registers, memory.addr);
                }
            }
            file("pipe", pipe.write_all(&AT_WORK))?;
            sleep(HANGS);
            drop((guard, registers));
            Err(Wrong::Failed("it was not killed".into()))
        })?
        .at_work()?;
        // Not before: it could not have opened the device.
        let _fails = file("fail", line.as_ref().map(|line| line.told("fail")).transpose())?;
        user.killed().map(drop)
    }
}

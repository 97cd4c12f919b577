//! What a killed user leaves, and what the next owner of its device finds: a transfer of edu by its
//! registers, a user whose device does not stop, and memory that nothing may write.

use super::subject::Subject;
use crate::apart::{AT_WORK, Apart, USER, opens};
use crate::pages::Map;
use crate::raw::{RawDevNode, SYNC_FOR_CPU, SYNC_FOR_DEVICE};
use crate::verdict::{Wrong, ensure, fail, must};
use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

/// A transfer of edu by its registers (`docs/specs/edu.rst`), from its own memory to the machine's.
pub(crate) mod edu {
    use crate::raw::{RawRegisters, Step};
    use std::time::Duration;

    const SOURCE: u32 = 0x80;
    const DESTINATION: u32 = 0x88;
    const COUNT: u32 = 0x90;
    const COMMAND: u32 = 0x98;
    const OWN_MEMORY: u32 = 0x4_0000;
    /// Start, from its own memory to the machine's.
    const WRITE: u32 = 3;
    const RUNNING: u32 = 1;
    /// Longer than a transfer, which takes 100 ms.
    pub(crate) const OVER: Duration = Duration::from_millis(300);
    const OVER_US: u32 = 400_000;
    /// All that it moves at once: QEMU counts one byte too many.
    pub(crate) const LEN: u32 = 4095;

    /// The program that finds it stopped.
    pub(crate) const STOP: [Step; 1] = [Step::poll(COMMAND, RUNNING, 0, OVER_US)];

    /// What begins a transfer.
    const fn writes(to: u32) -> [(u32, u32); 4] {
        [(SOURCE, OWN_MEMORY), (DESTINATION, to), (COUNT, LEN), (COMMAND, WRITE)]
    }

    /// The same as steps, as a program of a hostile user has them.
    pub(crate) fn start(to: u32) -> [Step; 4] {
        writes(to).map(|(register, value)| Step::write(register, value))
    }

    pub(crate) fn begin(registers: &RawRegisters, to: u64) {
        for (register, value) in writes(u32::try_from(to).unwrap_or(0)) {
            registers.write(register, value);
        }
    }

    pub(crate) fn is_running(registers: &RawRegisters) -> bool {
        registers.read(COMMAND) & RUNNING != 0
    }
}

/// The bytes that it leaves, where it has memory.
pub(crate) const LEFT_BYTES: usize = 4096;
const HANGS: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone {
    pub(crate) user: Option<u32>,
    /// It armed a stop sequence whose poll is not met.
    pub(crate) is_armed: bool,
    /// It allocated memory, into which edu writes.
    pub(crate) has_memory: bool,
}

/// A user of the lab, or root where no other may open it.
pub(crate) fn other_user(subject: &Subject) -> Result<Option<u32>, Wrong> {
    Ok(opens(&subject.dev_node)?.is_ok().then_some(USER))
}

impl Gone {
    pub(crate) fn from(self, subject: &Subject) -> Result<(), Wrong> {
        let user = Apart::begin(self.user, |pipe| {
            let (dev_node, registers) = subject.open_mapped()?;
            subject.set_flag(&registers, false);
            if self.is_armed {
                must("ARM", dev_node.arm(&subject.by_flag()))?;
            }
            if self.has_memory {
                let memory = must("ALLOC", dev_node.alloc(LEFT_BYTES as u64, 0))?;
                if subject.is_edu() {
                    edu::begin(&registers, memory.addr);
                }
            }
            must("pipe", pipe.write_all(&AT_WORK))?;
            sleep(HANGS);
            fail("it was not killed")
        })?
        .at_work()?;
        // Not before: it could not have opened the device.
        let _fails = subject.reset_fails()?;
        user.killed().map(drop)
    }
}

/// As long as what the owner before had, and so many that one is likely to be where that was.
const COUNT: usize = 32;
const MARK: u8 = 0x11;

/// All of it is the same byte.
#[derive(Debug)]
pub(crate) struct Fresh {
    dev_node: RawDevNode,
    memory: Vec<(u32, u64, Map)>,
}

impl Fresh {
    pub(crate) fn of(dev_node: RawDevNode) -> Result<Self, Wrong> {
        let mut memory = Vec::with_capacity(COUNT);
        for _ in 0..COUNT {
            let block = must("ALLOC", dev_node.alloc(LEFT_BYTES as u64, 0))?;
            let pages = must("mmap", dev_node.map_memory(block.mmap_offset, LEFT_BYTES as u64))?;
            pages.fill(LEFT_BYTES, MARK);
            must("SYNC", dev_node.sync(block.handle, SYNC_FOR_DEVICE, 0, LEFT_BYTES as u64))?;
            memory.push((block.handle, block.addr, pages));
        }
        Ok(Self { dev_node, memory })
    }

    /// The bus address of the first one that has another byte after a transfer's time.
    pub(crate) fn written_meanwhile(&self) -> Result<Option<u64>, Wrong> {
        sleep(edu::OVER);
        for (handle, addr, pages) in &self.memory {
            must("SYNC", self.dev_node.sync(*handle, SYNC_FOR_CPU, 0, LEFT_BYTES as u64))?;
            if !pages.is_filled(LEFT_BYTES, MARK) {
                return Ok(Some(*addr));
            }
        }
        Ok(None)
    }
}

/// This owner's memory stays as it is, for longer than a transfer takes.
pub(crate) fn never_written(dev_node: RawDevNode) -> Result<(), Wrong> {
    let written = Fresh::of(dev_node)?.written_meanwhile()?;
    ensure(written.is_none(), format!("the memory of the next owner was written, at {written:#x?}"))
}

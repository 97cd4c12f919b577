//! The contigo device that is tried, with the facts about its device that these checks need:
//! registers that do no harm.

use crate::lab::{Part, Told};
use crate::raw::{Info, RawDevNode, RawRegisters, Step, info};
use crate::verdict::{Wrong, ensure, must};
use contigo_boards::DmaKind;
use nix::errno::Errno;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) dev_node: String,
    /// A heap whose blocks are contiguous.
    pub(crate) heap: String,
    /// The engine behind it; `None`: edu.
    pub(crate) kind: Option<DmaKind>,
}

/// How long the kernel may take for what it does by and by.
const SOON: Duration = Duration::from_secs(3);

impl Subject {
    pub(crate) const fn is_edu(&self) -> bool {
        self.kind.is_none()
    }

    pub(crate) fn clock(&self) -> Option<Part> {
        Part::clock_of(&self.dev_node)
    }

    pub(crate) fn reset(&self) -> Option<Part> {
        Part::reset_of(&self.dev_node)
    }

    pub(crate) fn open(&self) -> Result<RawDevNode, Wrong> {
        RawDevNode::open(&self.dev_node).map_err(|errno| match errno {
            Errno::EACCES | Errno::EPERM if !nix::unistd::geteuid().is_root() => {
                Wrong::Skipped("this user may not open it".into())
            }
            _ => Wrong::Failed(format!("open {}: {errno}", self.dev_node)),
        })
    }

    pub(crate) fn open_mapped(&self) -> Result<(RawDevNode, RawRegisters), Wrong> {
        let dev_node = self.open()?;
        let registers = must("mmap", dev_node.map())?;
        Ok((dev_node, registers))
    }

    /// Its reset line, where the lab has one for it, fails until the result is dropped.
    pub(crate) fn reset_fails(&self) -> Result<Option<Told>, Wrong> {
        must("fail", self.reset().map(|line| line.told("fail")).transpose())
    }

    /// Its reset line, where the lab has one for it.
    pub(crate) fn reset_line(&self) -> Result<Part, Wrong> {
        self.reset().ok_or_else(|| Wrong::Skipped("its reset line is not the lab's".into()))
    }

    pub(crate) fn lab(&self) -> Result<Part, Wrong> {
        let part = Part::named(&self.dev_node);
        part.ok_or_else(|| Wrong::Skipped("its device is not the lab's".into()))
    }

    pub(crate) fn info(&self) -> Result<Info, Wrong> {
        must("GET_INFO", self.open()?.info())
    }

    /// A register that stays as it is.
    pub(crate) const fn steady(&self) -> u32 {
        match self.kind {
            // ID; ERR_CTRL; PeriphID0.
            None | Some(DmaKind::Zdma) => 0,
            Some(DmaKind::Pl330) => 0xFE0,
        }
    }

    /// Sets bit 0 of a register that keeps what is written, and moves nothing.
    pub(crate) fn set_flag(&self, registers: &RawRegisters, on: bool) {
        // edu answers the inverse.
        registers.write(self.flag(), u32::from(on != self.is_edu()));
    }

    /// edu: the liveness check; ZDMA: the source's descriptor word 0; PL330: INTEN.
    pub(crate) const fn flag(&self) -> u32 {
        match self.kind {
            None => 4,
            Some(DmaKind::Zdma) => 0x128,
            Some(DmaKind::Pl330) => 0x20,
        }
    }

    /// The program that finds the device stopped when its flag is on.
    pub(crate) const fn by_flag(&self) -> [Step; 1] {
        [Step::poll(self.flag(), 1, 1, 1_000)]
    }

    /// A program that always finds it stopped, the second part because the first is not met.
    pub(crate) fn always(&self, registers: &RawRegisters) -> [Step; 3] {
        let now = registers.read(self.steady()) & 1;
        [
            Step::poll(self.steady(), 1, 1 - now, 100),
            Step::ELSE,
            Step::poll(self.steady(), 1, now, 100),
        ]
    }

    /// Has the kernel no other way than the program to stop it?
    pub(crate) fn has_no_reset(dev_node: &RawDevNode) -> Result<bool, Wrong> {
        Ok(must("GET_INFO", dev_node.info())?.flags & info::RESET == 0)
    }

    /// Bytes in its quarantine, as sysfs says.
    pub(crate) fn quarantined_bytes(&self) -> Result<u64, Wrong> {
        let text = must("quarantine", fs::read_to_string(self.in_class("quarantine")))?;
        must("quarantine", text.trim().parse())
    }

    pub(crate) fn end_quarantine(&self) -> Result<(), Wrong> {
        must("quarantine", fs::write(self.in_class("quarantine"), "0"))
    }

    /// The administrator takes it from its user, and resets it.
    pub(crate) fn reset_by_root(&self) -> io::Result<()> {
        fs::write(self.in_class("reset"), "1")
    }

    pub(crate) fn in_class(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/sys/class/contigo/{}/{file}", self.dev_node))
    }

    /// Does `work` with the same device as if it had no reset line, where the lab can have it so.
    /// Its file is root's alone afterwards.
    pub(crate) fn without_reset<T>(
        &self,
        work: impl FnOnce() -> Result<T, Wrong>,
    ) -> Result<Option<T>, Wrong> {
        let Some(switch) = Part::named(&self.dev_node).filter(|part| part.has("no_reset")) else {
            return Ok(None);
        };
        let unbound = self.unbind()?;
        let without = must("no_reset", switch.told("no_reset"))?;
        unbound.bind()?;
        let done = work();
        let unbound = self.unbind()?;
        drop(without);
        unbound.bind()?;
        done.map(Some)
    }

    /// Takes the device from the module, until it is bound again.
    pub(crate) fn unbind(&self) -> Result<Unbound, Wrong> {
        let device = must("the device", fs::canonicalize(self.in_class("device")))?;
        let unbound = Unbound {
            driver: must("its driver", fs::canonicalize(device.join("driver")))?,
            node: PathBuf::from("/dev/contigo").join(&self.dev_node),
            name: device.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        };
        must("unbind", fs::write(unbound.driver.join("unbind"), &unbound.name))?;
        Ok(unbound)
    }
}

#[derive(Debug)]
pub(crate) struct Unbound {
    driver: PathBuf,
    node: PathBuf,
    name: String,
}

impl Unbound {
    /// Gives it back, and waits until it can be opened.
    pub(crate) fn bind(self) -> Result<(), Wrong> {
        must("bind", fs::write(self.driver.join("bind"), &self.name))?;
        ensure(soon(|| self.node.exists()), "it did not come back")
    }
}

/// Waits until the kernel has done what it does by and by.
pub(crate) fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let pause = Duration::from_millis(20);
    (0..SOON.as_millis() / pause.as_millis()).any(|_| {
        let held = holds();
        if !held {
            sleep(pause);
        }
        held
    })
}

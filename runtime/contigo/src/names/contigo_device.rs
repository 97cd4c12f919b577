#![allow(unsafe_code, reason = "registers are given to one driver at a time")]
//! A device that the kernel module has: by its names, with all that one opening serves.

use super::attachment::{AnyIrq, Attach, Attachment};
use super::called::{Called, first_register};
use super::files::Files;
use contigo_core::linux::dev_node::DevNode;
use contigo_core::linux::device::Registers;
use contigo_core::types::{Error, PhysAddr, lock};
use spin::{Mutex, Once};

/// How many windows a contigo device has at most (`CONTIGO_MAX_WINDOWS`).
const WINDOWS: usize = 6;

/// An open contigo device, and those of its windows that were opened.
pub(super) struct ContigoDevice {
    pub(super) dev_node: DevNode,
    called: Called,
    windows: [Once<Registers>; WINDOWS],
    /// Held while one of the windows is stored.
    mapping: Mutex<()>,
}

impl ContigoDevice {
    /// Opens the contigo device called `name`.
    pub(super) fn open(
        name: &str,
        files: Files<'_>,
        open: impl FnOnce(&str) -> Result<DevNode, Error>,
    ) -> Result<Self, Error> {
        let called = Called::find(name, files)?;
        let dev_node = open(&called.device)?;
        Ok(Self {
            dev_node,
            called,
            windows: [const { Once::new() }; WINDOWS],
            mapping: Mutex::new(()),
        })
    }

    /// Returns whether `name` names it.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.called.device == name || self.called.is(name)
    }

    /// The address of its first register, if its name has it.
    pub(super) fn addr(&self) -> Option<PhysAddr> {
        first_register(&self.called.device).map(PhysAddr)
    }

    /// Its registers and its interrupt, for its only driver.
    #[cfg_attr(feature = "audit", track_caller)]
    pub(super) fn attachment(&self, how: Attach) -> Result<Attachment, Error> {
        let (value, max) = (how.window.into(), WINDOWS as u64 - 1);
        let no_such = Error::Argument { name: "window", value, min: 0, max, multiple_of: 1 };
        let window = self.windows.get(usize::from(how.window)).ok_or(no_such)?;
        let registers = match window.get() {
            Some(registers) => registers,
            // No closure, so that the trace names the program's line. The lock, because `Once`
            // alone would spin without a bound, and a window is handed out once.
            None => {
                let _alone = lock::acquire(&self.mapping)?;
                match window.get() {
                    Some(registers) => registers,
                    None => {
                        let mapped = self.dev_node.registers(how.window.into())?;
                        window.call_once(|| mapped)
                    }
                }
            }
        };
        let irq = how.interrupt.then(|| self.dev_node.irq(0)).transpose()?;
        // SAFETY: `OpenDevice` gives them to one driver at a time, or to a gate beside it.
        let registers = unsafe { registers.second() };
        Ok(Attachment::Plain { registers, irq: irq.map(AnyIrq::DevNode) })
    }
}

//! The reset manager: from ENABLE to the first transfer, and from a cleared ENABLE to the reset.

use super::mover::Active;
use super::queue::Queue;
use super::{AxiDmacModel, Manager, manual as m};
use crate::SimBus;

/// From ENABLE to the first transfer.
const STARTUP_NS: u64 = 60;
/// From a cleared ENABLE to the reset, after the end of the accesses under way.
const SHUTDOWN_NS: u64 = 350;

impl AxiDmacModel {
    pub(super) const fn state(&self) -> u32 {
        if !self.build.debug {
            return 0;
        }
        let (released, reader) =
            if self.build.lists { (m::SG_RESET_RELEASED, m::SG_ENABLED) } else { (0, 0) };
        let state = match self.manager {
            Manager::Reset => m::STATE_RESET,
            Manager::Startup(_) => m::STATE_STARTUP,
            Manager::Enabled => m::STATE_ENABLED | m::SIDES_ENABLED | reader,
            Manager::Shutdown(_) => m::STATE_SHUTDOWN | m::SIDES_ENABLED | reader,
        };
        m::RESETS_RELEASED | released | state
    }

    pub(super) fn write_control(&mut self, value: u32, now_ns: u64) {
        let lists = if self.build.lists { m::HWDESC } else { 0 };
        let was = self.control & m::ENABLE != 0;
        self.control = value & (m::ENABLE | m::PAUSE | lists);
        match (was, value & m::ENABLE != 0) {
            (false, true) if self.manager == Manager::Reset => {
                self.manager = Manager::Startup(now_ns + STARTUP_NS)
            }
            (true, false) => {
                // IDs, DONE and reports are cleared at once; accesses under way go on.
                self.queue = Queue::default();
                let stuck = self.active.as_ref().is_some_and(Active::never_stops);
                self.manager =
                    Manager::Shutdown(if stuck { u64::MAX } else { now_ns + SHUTDOWN_NS });
            }
            _ => {}
        }
    }

    /// When the manager's next step is due without an access. `disabled_all`: the read of a
    /// descriptor delays it only if HWDESC is set.
    pub(super) fn manager_ns(&self) -> Option<u64> {
        match self.manager {
            Manager::Startup(at_ns) if at_ns != u64::MAX => Some(at_ns),
            Manager::Shutdown(at_ns) if at_ns != u64::MAX => {
                let fetched_ns = self
                    .active
                    .as_ref()
                    .and_then(Active::fetched_at_ns)
                    .filter(|_| self.control & m::HWDESC != 0);
                Some(fetched_ns.map_or(at_ns, |fetched_ns| fetched_ns.max(at_ns)))
            }
            _ => None,
        }
    }

    pub(super) fn step_manager(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        if self.manager_ns().is_none_or(|due| due > at_ns) {
            return;
        }
        match self.manager {
            Manager::Startup(_) => self.manager = Manager::Enabled,
            Manager::Shutdown(_) => {
                let forgotten = self
                    .active
                    .as_ref()
                    .filter(|active| active.fetched_at_ns().is_some_and(|due| due > at_ns));
                if let Some(descriptor) = forgotten.and_then(|active| active.descriptor(bus)) {
                    self.owed = Some(descriptor);
                }
                self.active = None;
                self.rewound = false;
                self.stream.cut(true);
                // ENABLE was set again meanwhile: the manager starts up after the reset.
                let enabled = self.control & m::ENABLE != 0;
                self.manager =
                    if enabled { Manager::Startup(at_ns + STARTUP_NS) } else { Manager::Reset };
            }
            _ => {}
        }
    }
}

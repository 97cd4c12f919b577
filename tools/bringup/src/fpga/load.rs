//! The load itself, step by step, and its counterpart.

use super::{
    Bridge, Fpga, FpgaError, State, Way, daemon, firmware::Firmware, overlay, sysfs, users,
};
use crate::bitstream::{Bitstream, Family, Image};
use std::{
    thread,
    time::{Duration, Instant},
};

/// The kernel comes back from a load when the fabric runs; a daemon may come back before. The
/// slowest manager waits 5 s for its DMA and 2.5 s for each of four polls (`zynq-fpga.c`).
const OPERATING_MAX: Duration = Duration::from_secs(15);
/// How often the state is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// How a bitstream is loaded.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// It is for a part of the fabric, and the rest goes on.
    pub partial: bool,
    /// Nodes in `/dev` that are cores outside that part, and may be open: only the caller knows.
    pub outside: Vec<String>,
    /// Everything is checked, and nothing is written.
    pub dry_run: bool,
}

/// A load that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The manager's state before.
    pub before: State,
    /// The manager's state after.
    pub after: State,
    /// The bridges before.
    pub bridges_before: Vec<Bridge>,
    /// The bridges after.
    pub bridges_after: Vec<Bridge>,
}

impl Fpga<'_> {
    /// Loads a bitstream. Until it returns, no program may open a node of the fabric: nothing in
    /// the kernel prevents it.
    ///
    /// # Errors
    /// [`FpgaError`]. Before [`FpgaError::Failed`] the fabric is untouched; after it a manager
    /// that had begun has emptied the fabric, and takes the next bitstream as before.
    pub fn load(&self, image: &Image, options: &Options) -> Result<Loaded, FpgaError> {
        let (machine, way) = (self.machine, self.way.as_ref().ok_or(FpgaError::NoWay)?);
        if !self.chosen {
            return Err(FpgaError::SeveralRegions(self.regions.clone()));
        }
        self.check(&image.bitstream, options.partial)?;
        self.room(image)?;
        let (before, bridges_before) = (self.state(), self.bridges());
        if before.busy() {
            return Err(FpgaError::Busy(before));
        }
        self.quiet(options)?;
        if options.dry_run {
            return Ok(Loaded {
                before,
                after: before,
                bridges_after: bridges_before.clone(),
                bridges_before,
            });
        }
        let firmware = Firmware::place(machine, image, self.manager.order())?;
        match way {
            Way::Sysfs => sysfs::load(machine, &self.manager, firmware.name, options.partial)?,
            Way::Overlay { region } => {
                overlay::load(machine, &self.manager, region, firmware.name, options.partial)?
            }
            Way::Fpgad { client } => {
                daemon::load(machine, client, &self.manager, &machine.name(firmware.path()))?
            }
            Way::DfxMgr => daemon::dfx_load(
                machine,
                &self.manager,
                &machine.name(firmware.path()),
                options.partial,
            )?,
        }
        let after = self.operating()?;
        Ok(Loaded { before, after, bridges_before, bridges_after: self.bridges() })
    }

    /// Takes away what Contigo applied, or what the daemon loaded.
    ///
    /// # Errors
    /// [`FpgaError::NothingToUnload`]: an FPGA manager has no command that empties a fabric.
    /// [`FpgaError::InUse`]; the kernel's own.
    pub fn unload(&self) -> Result<(), FpgaError> {
        let way = self.way.as_ref().ok_or(FpgaError::NoWay)?;
        let state = self.state();
        if state.busy() {
            return Err(FpgaError::Busy(state));
        }
        match way {
            Way::DfxMgr => {
                self.quiet(&Options::default())?;
                daemon::dfx_unload(self.machine, &self.manager)
            }
            Way::Overlay { .. } if overlay::applied(self.machine) => {
                self.quiet(&Options::default())?;
                overlay::unload(self.machine)
            }
            Way::Fpgad { client } => {
                self.quiet(&Options::default())?;
                daemon::unload(self.machine, client, &self.manager)
            }
            Way::Sysfs | Way::Overlay { .. } => Err(FpgaError::NothingToUnload(way.clone())),
        }
    }

    /// The file against the device and the manager.
    fn check(&self, bitstream: &Bitstream, partial: bool) -> Result<(), FpgaError> {
        self.target.check(bitstream)?;
        match (bitstream.partial, self.target.family) {
            (_, Some(family @ Family::CycloneV)) if partial => {
                return Err(FpgaError::NoPartial(family));
            }
            (Some(file_is_partial), _) if file_is_partial != partial => {
                return Err(FpgaError::Partial { file_is_partial });
            }
            _ => {}
        }
        if partial && matches!(self.way, Some(Way::Fpgad { .. })) {
            // Its client has no option for it, and would empty the fabric.
            return Err(FpgaError::Partial { file_is_partial: false });
        }
        if bitstream.encrypted {
            return Err(FpgaError::Encrypted);
        }
        match self.manager.header_bytes() {
            Some(header) if !partial && bitstream.sync_bytes + 4 > header => {
                Err(FpgaError::LateSync { offset: bitstream.sync_bytes, header })
            }
            _ => Ok(()),
        }
    }

    /// The kernel has the file in memory, and a copy of it for the DMA.
    fn room(&self, image: &Image) -> Result<(), FpgaError> {
        let needs = image.bitstream.payload.len() as u64 * 2;
        match self.machine.available() {
            Some(available) if available < needs => Err(FpgaError::NoMemory { needs, available }),
            _ => Ok(()),
        }
    }

    /// Fails where the fabric is in use, except for what the caller says is outside the part.
    fn quiet(&self, options: &Options) -> Result<(), FpgaError> {
        let mut users = self.users()?;
        if options.partial {
            users.retain(|user| match user {
                users::User::Program { node, .. } => {
                    !options.outside.iter().any(|outside| outside == node)
                }
                // Cores outside the part keep their drivers, and a driver's node cannot be told.
                users::User::Driver { .. } => false,
            });
        }
        if users.is_empty() { Ok(()) } else { Err(FpgaError::InUse(users)) }
    }

    /// Waits until the manager says that the fabric runs.
    fn operating(&self) -> Result<State, FpgaError> {
        let began = Instant::now();
        loop {
            let state = self.state();
            if state == State::Operating {
                return Ok(state);
            }
            if !state.busy() || began.elapsed() > OPERATING_MAX {
                return Err(FpgaError::NotOperating { state, waited_s: began.elapsed().as_secs() });
            }
            thread::sleep(LOOK);
        }
    }
}

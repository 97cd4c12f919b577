//! The steps of a load, the unload, and what must happen around a load.

use super::daemon::{self, NAME};
use super::{Bridge, Fpga, FpgaError, State, User, Way, manager, overlay};
use crate::bitstream::{Bitstream, ByteOrder, Family, Image};
use crate::machine::{self, Machine};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The kernel returns from a load when the fabric runs; a daemon may return before. The slowest
/// manager waits 5 s for its DMA and 2.5 s for each of four polls (`zynq-fpga.c`).
const OPERATING_MAX: Duration = Duration::from_secs(15);
/// The time between two polls of the state.
const LOOK: Duration = Duration::from_millis(10);

/// The options of a load.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The bitstream is for a part of the fabric, and the rest keeps running.
    pub partial: bool,
    /// Nodes in `/dev` of cores outside that part. They may be open: only the caller knows them.
    pub outside: Vec<String>,
    /// Everything is checked, and nothing is written.
    pub dry_run: bool,
}

/// A finished load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The manager's state before the load.
    pub before: State,
    /// The manager's state after the load.
    pub after: State,
    /// The bridges before the load.
    pub bridges_before: Vec<Bridge>,
    /// The bridges after the load.
    pub bridges_after: Vec<Bridge>,
}

impl Fpga<'_> {
    /// Loads a bitstream. Until this returns, no program may open a node of the fabric: the kernel
    /// does not prevent it.
    ///
    /// # Errors
    /// [`FpgaError`]. Before [`FpgaError::Failed`] the fabric is untouched. After it, a manager
    /// that had begun has emptied the fabric, and takes the next bitstream as usual.
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
            Way::Sysfs => manager::load(machine, &self.manager, firmware.name, options.partial)?,
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

    /// Removes the overlay that Contigo applied, or the design that the daemon loaded.
    ///
    /// # Errors
    /// [`FpgaError::NothingToUnload`]: an FPGA manager has no command that empties a fabric.
    /// [`FpgaError::InUse`]; the kernel's own error.
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
            // fpgad's client has no option for it, and would empty the fabric.
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

    /// Checks the memory: the kernel needs room for the file, and for a copy for the DMA.
    fn room(&self, image: &Image) -> Result<(), FpgaError> {
        let needs = image.bitstream.payload.len() as u64 * 2;
        match self.machine.available() {
            Some(available) if available < needs => Err(FpgaError::NoMemory { needs, available }),
            _ => Ok(()),
        }
    }

    /// Fails if the fabric is in use, except for nodes that the caller names as outside the part.
    fn quiet(&self, options: &Options) -> Result<(), FpgaError> {
        let mut users = self.users()?;
        if options.partial {
            users.retain(|user| match user {
                User::Program { node, .. } => {
                    !options.outside.iter().any(|outside| outside == node)
                }
                // Cores outside the part keep their drivers; which ones these are is not known.
                User::Driver { .. } => false,
            });
        }
        if users.is_empty() { Ok(()) } else { Err(FpgaError::InUse(users)) }
    }

    /// Waits until the manager reports that the fabric runs.
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

/// The kernel's parameter for the folder that it searches first; empty if none is set.
const NAMED: &str = "sys/module/firmware_class/parameters/path";
/// The folder that it always searches.
const USUAL: &str = "lib/firmware";

/// A configuration in the kernel's folder. Dropping this removes it.
struct Firmware {
    path: PathBuf,
    /// Its folder, locked for the whole load, because AMD's manager takes no lock of its own.
    folder: Flock<File>,
    /// Its name below the folder, for the kernel.
    name: &'static str,
}

impl Firmware {
    /// Writes the configuration under a temporary name, and renames it when it is whole and on the
    /// disk.
    fn place(machine: &Machine, image: &Image, order: ByteOrder) -> Result<Self, FpgaError> {
        let named = machine.text(NAMED).filter(|named| !named.is_empty());
        let folder = machine.path(named.as_deref().unwrap_or(USUAL));
        let wrong = |error| FpgaError::Place { path: machine.name(&folder), error };
        let one =
            machine.files().folder_to_write(named.as_deref().unwrap_or(USUAL)).map_err(wrong)?;
        let one =
            Flock::lock(one, FlockArg::LockExclusiveNonblock).map_err(
                |(_, errno)| match errno {
                    Errno::EWOULDBLOCK => FpgaError::Loading,
                    errno => wrong(errno.into()),
                },
            )?;
        let making = format!(".{NAME}.part");
        // It takes away what is there of either name, also when the next line fails.
        let firmware = Self { path: folder.join(NAME), folder: one, name: NAME };
        match write_image(&firmware.folder, &making, image, order)
            .and_then(|()| machine::rename(&*firmware.folder, &making, NAME))
        {
            Ok(()) => Ok(firmware),
            Err(error) => {
                let _ = machine::remove(&*firmware.folder, &making);
                Err(wrong(error))
            }
        }
    }

    /// Its path on the machine that this program runs on.
    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Firmware {
    fn drop(&mut self) {
        // It does not matter if it is gone already.
        let _ = machine::remove(&*self.folder, NAME);
    }
}

fn write_image(folder: &File, name: &str, image: &Image, order: ByteOrder) -> io::Result<()> {
    let mut file = BufWriter::new(machine::create(folder, name)?);
    image.bitstream.write(image.bytes(), order, &mut file)?;
    file.flush()?;
    file.get_ref().sync_all()
}

/// A step that must happen before or after a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// The step.
    pub what: &'static str,
    /// The program or person that does it.
    pub who: &'static str,
}

const PORTS: Around = Around {
    what: "no core moves data",
    who: "Contigo refuses while a program or a driver has a node of the fabric",
};

/// Every step around a load of `family` by `way`.
///
/// # References
/// Linux, `zynq-fpga.c` (`FPGA_RST_CTRL`, `LVL_SHFTR_EN`, for whole bitstreams only),
/// `fpga-region.c` (bridges), `socfpga.c`; AMD's xilfpga, `XFpga_PsPlGpioResetsLow` and
/// `XFpga_IsolationRestore`.
#[must_use]
pub fn around(family: Option<Family>, way: Option<&Way>, partial: bool) -> Vec<Around> {
    let region = matches!(way, Some(Way::Overlay { .. }));
    let bridges = if region {
        "the kernel closes the region's, and opens them again"
    } else {
        "no step: this way leaves them as they are, and no access goes through while no program or \
         driver has a node"
    };
    let mut all = vec![PORTS, Around { what: "bridges", who: bridges }];
    match (family, partial) {
        (Some(Family::Zynq7000), false) => all.extend([
            Around { what: "level shifters", who: "the kernel's zynq-fpga: off before, on after" },
            Around {
                what: "resets of the fabric",
                who: "the kernel's zynq-fpga: FPGA0 to FPGA3, held meanwhile",
            },
        ]),
        (Some(Family::ZynqMp), false) => all.extend([
            Around { what: "isolation of the fabric", who: "the PMU's firmware" },
            Around {
                what: "resets of the fabric",
                who: "the PMU's firmware: pl_resetn0 to 3, pulsed after",
            },
        ]),
        (Some(Family::Zynq7000 | Family::ZynqMp), true) => {
            all.push(Around {
                what: "decoupling of the region",
                who: "the design: its decoupler, which its program sets",
            });
        }
        (Some(Family::CycloneV), _) => {
            all.push(Around {
                what: "port to the SDRAM",
                who: "the boot code; it opens only while no transfer runs",
            });
        }
        (None, _) => {}
    }
    all.extend([
        Around {
            what: "clocks",
            who: "the boot code, the device tree, PYNQ, or contigo clocks --set",
        },
        Around {
            what: "widths of ports",
            who: "the boot code, PYNQ, or contigo board prepare --design",
        },
    ]);
    all
}

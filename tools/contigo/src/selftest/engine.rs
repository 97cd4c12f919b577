//! The engine that `--driver` and `--device` name, or that a self-test finds itself.

use crate::failure::Failure;
use contigo::names::{DeviceName, DriverRow, MemoryName, each_row, row};
use contigo::{Bus, Error, Port};
use contigo_boards::{DmaEngine, SOCS, ports};
use contigo_exerciser::uio::{FoundEngine, soc};
use std::fmt;

/// The value of `--driver`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriverName(pub(crate) &'static DriverRow);

/// The tested engine, with everything that is needed to open it.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) driver: &'static DriverRow,
    pub(crate) registers: Registers,
    /// The address of its registers by the board's facts, if these identified the engine.
    pub(crate) addr: Option<u64>,
    /// The port of a real engine.
    pub(crate) port: Option<Port>,
    /// The port counts as coherent because of `--lab-port`.
    pub(crate) lab_port: bool,
    /// The reason for a simulated engine; empty if it was asked for.
    pub(crate) why: String,
}

/// The place of an engine's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registers {
    /// A device with a name.
    Device(DeviceName),
    /// Physical address, through `/dev/mem`: no interrupt.
    DevMem(u64),
}

/// The engine's options on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked<'o> {
    pub(crate) driver: Option<&'static DriverRow>,
    pub(crate) device: Option<DeviceName>,
    pub(crate) port: Option<&'o str>,
    pub(crate) lab_port: bool,
    pub(crate) dev_mem: Option<u64>,
}

impl Chosen {
    /// A simulated ZDMA, with the reason.
    fn simulated(why: String) -> Result<Self, Failure> {
        let device = "sim:zdma".parse().map_err(|error| Failure::Runtime(Error::from(error)))?;
        Ok(Self { why, ..Self::of(copier("zdma")?, Registers::Device(device)) })
    }

    /// An engine whose device knows its port.
    pub(super) const fn of(driver: &'static DriverRow, registers: Registers) -> Self {
        Self { driver, registers, addr: None, port: None, lab_port: false, why: String::new() }
    }

    /// The simulated engine, because a real engine can use no memory of this machine.
    pub(crate) fn without_memory(self) -> Result<Self, Failure> {
        Self::simulated(format!(
            "there is {self}, but no memory whose address a device could use (contigo info)"
        ))
    }

    /// The device, if it has a name.
    pub(crate) const fn device(&self) -> Option<&DeviceName> {
        match &self.registers {
            Registers::Device(device) => Some(device),
            Registers::DevMem(_) => None,
        }
    }

    /// Whether it is a model.
    pub(crate) fn is_simulated(&self) -> bool {
        self.device().is_some_and(|device| device.kind() == "sim")
    }

    /// Its name for messages.
    pub(crate) fn label(&self) -> String {
        let kind = self.driver.name;
        match self.registers {
            Registers::Device(device) => format!("{kind}@{}", device.argument()),
            Registers::DevMem(addr) => format!("{kind} at {addr:#x}"),
        }
    }
}

impl Asked<'_> {
    /// Chooses the engine: the given one, or the first real one, or the simulated one.
    pub(crate) fn choose(&self, memory: Option<&MemoryName>) -> Result<Chosen, Failure> {
        if let Some(addr) = self.dev_mem {
            let (Some(driver), None) = (self.driver, self.device) else {
                let needs = "--dev-mem ADDR needs --driver NAME, and no device";
                return Err(Failure::Usage(needs.into()));
            };
            return self.real(
                driver,
                Registers::DevMem(addr),
                boards_engine(addr).filter(|engine| engine.kind.name() == driver.name),
            );
        }
        // A device's memory is for that device only.
        let device = self
            .device
            .or_else(|| memory.and_then(MemoryName::device).filter(|owner| owner.kind() != "sim"));
        match (device, self.driver) {
            (Some(device), driver) => self.named(device, driver),
            (None, None) if memory.is_some_and(|memory| memory.kind() == "sim") => {
                Chosen::simulated("a real engine does not see the simulated memory".into())
            }
            (None, driver) => {
                let suits = |found: &FoundEngine| {
                    driver.is_none_or(|driver| driver.name == found.engine.kind.name())
                };
                match (FoundEngine::all("").into_iter().find(suits), driver) {
                    (Some(found), _) => self.real(
                        copier(found.engine.kind.name())?,
                        Registers::Device(found.device),
                        Some(&found.engine),
                    ),
                    (None, Some(driver)) => {
                        Err(Failure::NoSuchEngine { engine: driver.name.into() })
                    }
                    (None, None) => Chosen::simulated(none_here()),
                }
            }
        }
    }

    /// The engine that is `device`: for the given driver, or as its model or the board says.
    fn named(
        &self,
        device: DeviceName,
        driver: Option<&'static DriverRow>,
    ) -> Result<Chosen, Failure> {
        let registers = Registers::Device(device);
        let unknown = || {
            Failure::Usage(format!(
                "--device {device}: say with --driver what it is: {}",
                copiers()
            ))
        };
        if device.kind() == "sim" {
            let driver = copier(device.argument()).map_err(|_| unknown())?;
            return Ok(Chosen::of(driver, registers));
        }
        // The device is closed again: the test opens it once its memory is known.
        let opened = device.open().map_err(|error| Failure::Device { name: device, error })?;
        let known = opened.addr().and_then(|addr| boards_engine(addr.0));
        let known_driver = known.and_then(|engine| copier(engine.kind.name()).ok());
        let driver = driver.or(known_driver).ok_or_else(unknown)?;
        match opened.port() {
            Some(_) => Ok(Chosen::of(driver, registers)),
            None => self.real(
                driver,
                registers,
                known.filter(|engine| engine.kind.name() == driver.name),
            ),
        }
    }

    /// A real engine with the given port, or else the board's.
    fn real(
        &self,
        driver: &'static DriverRow,
        registers: Registers,
        known: Option<&DmaEngine>,
    ) -> Result<Chosen, Failure> {
        let addr = known.map(|engine| engine.registers);
        let chosen = Chosen { addr, lab_port: self.lab_port, ..Chosen::of(driver, registers) };
        let port = match self.port {
            Some(name) => Some(port_called(name)?),
            None => known.map(|engine| engine.port),
        };
        let port = port.ok_or_else(|| {
            let label = chosen.label();
            Failure::Usage(format!(
                "how {label} reaches memory is not known here: name its port \
                with --port (contigo boards lists them)"
            ))
        })?;
        Ok(Chosen {
            port: Some(if self.lab_port { Port { coherent: true, ..port } } else { port }),
            ..chosen
        })
    }
}

/// Finds the driver of that name, whose jobs must be copies.
pub(super) fn copier(name: &str) -> Result<&'static DriverRow, Failure> {
    match row(name) {
        Ok(row) if row.copies => Ok(row),
        _ => Err(Failure::Usage(format!(
            "no driver is called {name} and copies memory; there are {}",
            copiers()
        ))),
    }
}

/// The names of the drivers whose jobs are copies.
fn copiers() -> String {
    let mut names = Vec::new();
    each_row(|row| names.extend(row.copies.then_some(row.name)));
    names.join(", ")
}

/// The board's facts about the engine whose registers are at `addr`.
fn boards_engine(addr: u64) -> Option<&'static DmaEngine> {
    SOCS.iter().flat_map(|soc| soc.engines).find(|engine| engine.registers == addr)
}

pub(crate) fn port_called(name: &str) -> Result<Port, Failure> {
    let mut ports: Vec<&Port> = ports().filter(|port| !matches!(port.bus, Bus::Sim(_))).collect();
    ports.sort_by_key(|port| port.name);
    ports.dedup_by_key(|port| port.name);
    let names = || ports.iter().map(|port| port.name).collect::<Vec<_>>().join(", ");
    match ports.iter().find(|port| port.name == name) {
        Some(port) => Ok(**port),
        None => Err(Failure::Usage(format!(
            "--port {name}: there is none of that name; there are {}",
            names()
        ))),
    }
}

/// The reason why there is no real engine, in words.
fn none_here() -> String {
    match soc("") {
        None => "this machine has no DMA engine that Contigo knows".into(),
        Some(soc) => {
            let nodes: Vec<_> =
                soc.engines.iter().map(|engine| format!("{:#x}", engine.registers)).collect();
            format!(
                "no device of user space has the registers of a DMA engine of {}: let one of the \
                 nodes at {} say contigo,engine",
                soc.name,
                nodes.join(", ")
            )
        }
    }
}

/// Parses the value of `--driver`.
pub(crate) fn driver_name(text: &str) -> Result<DriverName, String> {
    copier(text).map(DriverName).map_err(|error| error.to_string())
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.driver.name;
        match self.registers {
            Registers::Device(_) if self.is_simulated() && self.why.is_empty() => {
                write!(f, "simulated {kind}")
            }
            Registers::Device(_) if self.is_simulated() => {
                write!(f, "simulated {kind}: {}", self.why)
            }
            Registers::Device(device) => write!(f, "{kind}, {device}"),
            Registers::DevMem(_) => write!(f, "{}, by /dev/mem", self.label()),
        }
    }
}

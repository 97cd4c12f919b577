//! The engine that `--engine` names, or that a self-test finds by itself.

use crate::{failure::Failure, heap::Heap, machine::Machine};
use contigo::Port;
use contigo_boards::{ALL, DmaKind, SOCS};
use contigo_testkit::uio::FoundEngine;
use std::{fmt, str::FromStr};

/// What to write after `--engine`.
const SYNTAX: &str = "sim, sim-pl330, pl330 or zdma, or one of several as pl330@NODE";

/// What `--engine` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EngineName {
    /// A simulated one.
    Sim(DmaKind),
    /// A real one, and its node's name where that was said.
    Real(DmaKind, Option<String>),
}

/// The engine that is tested, with all that is needed to open it.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    /// A simulated one, and why.
    Sim {
        kind: DmaKind,
        /// Why not a real one; empty where it was asked for.
        why: String,
    },
    /// A real one.
    Real {
        kind: DmaKind,
        registers: Registers,
        port: Port,
        /// The port is called coherent because `--lab-port` says so.
        lab_port: bool,
    },
}

/// Where a real engine's registers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Registers {
    /// `/dev/uio<index>`, with its interrupt.
    Uio { index: u32, label: String },
    /// Physical address, through `/dev/mem`: no interrupt.
    DevMem(u64),
}

impl Registers {
    /// What the engine there is called in messages.
    pub(crate) fn label(&self, kind: DmaKind) -> String {
        match self {
            Self::Uio { label, .. } => format!("{}@{label}", kind.name()),
            Self::DevMem(addr) => format!("{} at {addr:#x}", kind.name()),
        }
    }
}

/// What the command line says about the engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked<'o> {
    pub(crate) engine: Option<&'o EngineName>,
    pub(crate) port: Option<&'o str>,
    pub(crate) lab_port: bool,
    pub(crate) dev_mem: Option<u64>,
}

impl Asked<'_> {
    /// The engine on `machine`: what was asked for, or the first real one, or the simulated one.
    pub(crate) fn choose(&self, machine: &Machine, heap: Option<&Heap>) -> Result<Chosen, Failure> {
        match (self.engine, self.dev_mem) {
            (Some(EngineName::Sim(kind)), None) => Ok(Chosen::Sim { kind: *kind, why: String::new() }),
            (Some(EngineName::Real(kind, None)), Some(addr)) => {
                let known = SOCS.iter().flat_map(|soc| soc.engines).find(|engine| engine.registers == addr && engine.kind == *kind);
                let port = self.port_or(known.map(|engine| engine.port), &format!("{} at {addr:#x}", kind.name()))?;
                Ok(Chosen::Real { kind: *kind, registers: Registers::DevMem(addr), port, lab_port: self.lab_port })
            }
            (_, Some(_)) => Err(Failure::Usage("--dev-mem ADDR needs --engine pl330 or --engine zdma, with no node's name".into())),
            (Some(EngineName::Real(kind, node)), None) => self.real(*kind, node.as_deref(), machine),
            (None, None) if heap == Some(&Heap::Sim) => {
                Ok(Chosen::Sim { kind: DmaKind::Zdma, why: "a real engine does not see the simulated memory".into() })
            }
            (None, None) => match machine.dma_engines().first() {
                Some(found) => self.found(found),
                None => Ok(Chosen::Sim { kind: DmaKind::Zdma, why: none_here(machine) }),
            },
        }
    }

    fn real(&self, kind: DmaKind, node: Option<&str>, machine: &Machine) -> Result<Chosen, Failure> {
        let found = machine.dma_engines();
        let by_board = found.iter().find(|one| one.kind == kind && node.is_none_or(|node| one.device.is_called(node)));
        if let Some(found) = by_board {
            return self.found(found);
        }
        // A node that is named need not be one that a board's list has.
        let named = node.and_then(|node| machine.uio_devices().into_iter().find(|device| device.is_called(node)));
        match named {
            Some(device) => self.found(&FoundEngine { kind, device, engine: None }),
            None => {
                let asked = EngineName::Real(kind, node.map(str::to_owned)).to_string();
                Err(Failure::NoSuchEngine { engine: asked, exists: what_exists(machine) })
            }
        }
    }

    fn found(&self, found: &FoundEngine) -> Result<Chosen, Failure> {
        let port = self.port_or(found.engine.map(|engine| engine.port), &found.label())?;
        let registers = Registers::Uio { index: found.device.index, label: found.device.label().to_owned() };
        Ok(Chosen::Real { kind: found.kind, registers, port, lab_port: self.lab_port })
    }

    /// The port that was named, or else the board's.
    fn port_or(&self, boards: Option<Port>, engine: &str) -> Result<Port, Failure> {
        let port = match self.port {
            Some(name) => Some(port_called(name)?),
            None => boards,
        };
        let port = port.ok_or_else(|| {
            Failure::Usage(format!("how {engine} reaches memory is not known here: name its port with --port (contigo boards lists them)"))
        })?;
        Ok(if self.lab_port { Port { coherent: true, ..port } } else { port })
    }
}

fn port_called(name: &str) -> Result<Port, Failure> {
    let of_boards = ALL.iter().filter(|board| board.name != "sim").flat_map(|board| board.ports);
    let of_engines = SOCS.iter().flat_map(|soc| soc.engines).map(|engine| &engine.port);
    let mut ports: Vec<&Port> = of_boards.chain(of_engines).collect();
    ports.sort_by_key(|port| port.name);
    ports.dedup_by_key(|port| port.name);
    let names = || ports.iter().map(|port| port.name).collect::<Vec<_>>().join(", ");
    match ports.iter().find(|port| port.name == name) {
        Some(port) => Ok(**port),
        None => Err(Failure::Usage(format!("--port {name}: there is none of that name; there are {}", names()))),
    }
}

/// Why there is no real engine, in words.
fn none_here(machine: &Machine) -> String {
    match machine.soc() {
        None => "this machine has no DMA engine that Contigo knows".into(),
        Some(soc) => {
            let nodes: Vec<_> = soc.engines.iter().map(|engine| format!("{:#x}", engine.registers)).collect();
            format!(
                "no UIO device has the registers of a DMA engine of {}: give one of the nodes at {} to generic-uio",
                soc.name,
                nodes.join(", ")
            )
        }
    }
}

/// What `--engine` could name here, in words.
fn what_exists(machine: &Machine) -> String {
    let engines: Vec<_> = machine.dma_engines().iter().map(FoundEngine::label).collect();
    let devices: Vec<_> = machine.uio_devices().iter().map(|device| format!("uio{} ({})", device.index, device.label())).collect();
    let engines = if engines.is_empty() { String::new() } else { format!(", {}", engines.join(", ")) };
    let devices = if devices.is_empty() { "no UIO device".into() } else { format!("the UIO devices {}", devices.join(", ")) };
    format!("this machine has sim, sim-pl330{engines}; {devices}")
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, node) = match text.split_once('@') {
            Some((kind, node)) => (kind, Some(node.to_owned())),
            None => (text, None),
        };
        let known = [DmaKind::Pl330, DmaKind::Zdma].into_iter().find(|known| known.name() == kind);
        match (kind, known, node) {
            ("sim" | "sim-zdma", _, None) => Ok(Self::Sim(DmaKind::Zdma)),
            ("sim-pl330", _, None) => Ok(Self::Sim(DmaKind::Pl330)),
            (_, Some(kind), node) if node.as_deref() != Some("") => Ok(Self::Real(kind, node)),
            _ => Err(format!("write {SYNTAX}; {}", what_exists(&Machine::this()))),
        }
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim(kind) => write!(f, "sim-{}", kind.name()),
            Self::Real(kind, None) => f.write_str(kind.name()),
            Self::Real(kind, Some(node)) => write!(f, "{}@{node}", kind.name()),
        }
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim { kind, why } if why.is_empty() => write!(f, "simulated {}", kind.name()),
            Self::Sim { kind, why } => write!(f, "simulated {}: {why}", kind.name()),
            Self::Real { kind, registers, .. } => match registers {
                Registers::Uio { index, .. } => write!(f, "{}, /dev/uio{index}", registers.label(*kind)),
                Registers::DevMem(_) => write!(f, "{}, by /dev/mem", registers.label(*kind)),
            },
        }
    }
}

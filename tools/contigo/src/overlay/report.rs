//! A design, in the tool's output.

use contigo::design::{Clock, Core, Design, DesignError, Reaches, Snoops, Trigger, Wired};
use contigo::names::Fabric;
use serde::{Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;

#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) name: &'a str,
    pub(super) device: &'a str,
    pub(super) soc: &'static str,
    pub(super) tool: &'a str,
    pub(super) fabric: String,
    pub(super) cores: Vec<CoreEntry<'a>>,
}

#[derive(Serialize)]
pub(super) struct CoreEntry<'a> {
    pub(super) name: &'a str,
    path: &'a str,
    vlnv: &'a str,
    pub(super) hls: bool,
    /// Its registers are outside of the block design, behind this interface.
    pub(super) outside: bool,
    pub(super) driver: Option<&'static str>,
    settings: String,
    /// The name by which programs open it through the overlay's node; `None` without registers.
    pub(super) node: Option<String>,
    pub(super) windows: Vec<WindowEntry<'a>>,
    pub(super) interrupts: Vec<InterruptEntry<'a>>,
    pub(super) masters: Vec<MasterEntry<'a>>,
    pub(super) clocks: Vec<ClockEntry<'a>>,
}

#[derive(Serialize)]
pub(super) struct WindowEntry<'a> {
    interface: &'a str,
    pub(super) address: String,
    pub(super) bytes: u64,
}

#[derive(Serialize)]
pub(super) struct InterruptEntry<'a> {
    pub(super) pin: &'a str,
    edge: bool,
    /// The shared interrupt's number in a device tree.
    spi: Option<u16>,
    controller: Option<&'a str>,
    input: Option<u8>,
    #[serde(skip)]
    pub(super) wired: Way<'a>,
}

/// The destination of an interrupt, in words.
pub(super) struct Way<'a>(Wired<'a>, Option<u16>);

#[derive(Serialize)]
pub(super) struct MasterEntry<'a> {
    pub(super) interface: &'a str,
    data_bits: u32,
    addr_bits: u32,
    pub(super) port: Option<PortEntry<'a>>,
    pub(super) elsewhere: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct PortEntry<'a> {
    pub(super) name: &'static str,
    interface: &'a str,
    pub(super) data_bits: u32,
    /// `null`: the file does not tell.
    pub(super) snoops: SnoopsEntry,
    window_first: String,
    window_last: String,
}

pub(super) struct SnoopsEntry(Snoops);

#[derive(Serialize)]
pub(super) struct ClockEntry<'a> {
    pins: Vec<&'a str>,
    hz: u64,
    /// The file's text for a rate that is no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_rate: Option<&'a str>,
    fabric: Option<u8>,
    from: &'a str,
}

impl<'a> Report<'a> {
    /// Reports all cores, or only the named ones.
    pub(super) fn of(
        design: &Design<'a>,
        named: &[String],
        fabric: &Fabric,
    ) -> Result<Self, DesignError> {
        for name in named {
            design.core(name)?;
        }
        let chosen = |core: &Core<'_, 'a>| {
            named.is_empty() || named.iter().any(|name| name == core.name() || name == core.path())
        };
        let cores = design
            .cores()
            .filter(chosen)
            .map(|core| CoreEntry::of(&core, design))
            .collect::<Result<_, _>>()?;
        let fabric = fabric.to_string();
        Ok(Self {
            name: design.name,
            device: design.device,
            soc: design.soc.name(),
            tool: design.tool,
            fabric,
            cores,
        })
    }
}

impl<'a> CoreEntry<'a> {
    fn of(core: &Core<'_, 'a>, design: &Design<'a>) -> Result<Self, DesignError> {
        let windows = core.windows()?;
        let window = |window: &contigo::design::Window<'a>| WindowEntry {
            interface: window.interface,
            address: format!("{:#x}", window.address),
            bytes: window.len_bytes,
        };
        let (mut clocks, mut places) = (Vec::<ClockEntry<'a>>::new(), HashMap::new());
        for Clock { pin, hz, said, fabric, from } in core.clocks() {
            let no_rate = (hz == 0 && !said.is_empty()).then_some(said);
            let place = *places.entry((hz, no_rate, fabric, from)).or_insert(clocks.len());
            match clocks.get_mut(place) {
                Some(clock) => clock.pins.push(pin),
                None => clocks.push(ClockEntry { pins: vec![pin], hz, no_rate, fabric, from }),
            }
        }
        let interrupt = |interrupt: &contigo::design::Interrupt<'a>| {
            let (controller, input) = match interrupt.wired {
                Wired::Controller { instance, input } => (Some(instance), Some(input)),
                _ => (None, None),
            };
            let spi = match interrupt.wired {
                Wired::Processor { line } => design.soc.shared_interrupt(line),
                _ => None,
            };
            let (edge, wired) =
                (interrupt.trigger == Trigger::EdgeRising, Way(interrupt.wired, spi));
            InterruptEntry { pin: interrupt.pin, edge, spi, controller, input, wired }
        };
        let master = |master: &contigo::design::Master<'a>| {
            let (port, elsewhere) = match master.reaches {
                Reaches::Memory { interface, data_bits, snoops, port } => {
                    let (first, last) = port.window;
                    let (window_first, window_last) = (format!("{first:#x}"), format!("{last:#x}"));
                    let snoops = SnoopsEntry(snoops);
                    (
                        Some(PortEntry {
                            name: port.name,
                            interface,
                            data_bits,
                            snoops,
                            window_first,
                            window_last,
                        }),
                        None,
                    )
                }
                Reaches::Elsewhere { instance } => (None, Some(instance)),
                _ => (None, None),
            };
            MasterEntry {
                interface: master.interface,
                data_bits: master.data_bits,
                addr_bits: master.addr_bits,
                port,
                elsewhere,
            }
        };
        Ok(Self {
            name: core.name(),
            path: core.path(),
            vlnv: core.vlnv(),
            hls: core.is_hls(),
            outside: core.is_outside(),
            driver: contigo::names::driver_of(core).map(|row| row.name),
            settings: contigo::names::settings_of(core)?.to_string(),
            node: windows
                .first()
                .map(|first| format!("{}@{:x}", contigo::names::node_of(core), first.address)),
            windows: windows.iter().map(window).collect(),
            interrupts: core.interrupts()?.iter().map(interrupt).collect(),
            masters: core.masters()?.iter().map(master).collect(),
            clocks,
        })
    }
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (_, Some(spi)) => write!(f, "SPI {spi}"),
            (Wired::Controller { instance, input }, _) => write!(f, "{instance} {input}"),
            (Wired::Elsewhere { instance }, _) => write!(f, "into {instance}"),
            _ => f.write_str("not connected"),
        }
    }
}

impl fmt::Display for ClockEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fabric {
            Some(clock) => write!(f, "FCLK{clock}")?,
            None => f.write_str(if self.from.is_empty() { "not connected" } else { self.from })?,
        }
        if self.hz > 0 {
            write!(f, " {} MHz", self.hz.div_ceil(100_000) as f64 / 10.0)?;
        }
        match self.no_rate {
            Some(words) => write!(f, " (`{words}` is no rate)"),
            None => Ok(()),
        }
    }
}

impl SnoopsEntry {
    pub(super) const fn words(&self) -> &'static str {
        match self.0 {
            Snoops::Yes => "snoops",
            Snoops::No => "does not snoop",
            _ => "snoops or not",
        }
    }
}

impl Serialize for SnoopsEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Snoops::Yes => serializer.serialize_bool(true),
            Snoops::No => serializer.serialize_bool(false),
            _ => serializer.serialize_none(),
        }
    }
}

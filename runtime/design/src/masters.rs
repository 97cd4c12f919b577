//! A core's masters, and the port by which each reaches memory.

use super::budget::Budget;
use super::module::{Interface, Module};
use super::nets::Nets;
use super::soc::{Caches, PsPort};
use super::text::{Text, number};
use super::{Core, DesignError, DesignRule, Soc};
use contigo_core::mem::Port;
use contigo_core::types::Bus;
use heapless::Vec;

/// The most masters of a core. One that reaches memory by several ports, or in several pieces,
/// counts for each.
pub(crate) const MAX_MASTERS: usize = 32;

/// The most fabric ports of a processor.
const MAX_PORTS: usize = 16;

/// A master of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Master<'a> {
    /// The core's interface: `M_AXI_S2MM`.
    pub interface: &'a str,
    /// Its data width in bits; 0 if the file does not say.
    pub data_bits: u32,
    /// The address lines that it drives; 0 if the file does not say.
    pub addr_bits: u32,
    /// The place that it reaches.
    pub reaches: Reaches<'a>,
}

/// The place that a master reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reaches<'a> {
    /// The processor's memory.
    Memory {
        /// The processor's interface: `S_AXI_HP0`.
        interface: &'a str,
        /// The port's data width in this design. On Zynq UltraScale+ the boot loader sets the same
        /// width in a register (`AFIFM`); if it differs, data is lost.
        data_bits: u32,
        /// Whether it snoops the processor's caches for this master.
        snoops: Snoops,
        /// The port to open the core with; its `coherent` is false unless it certainly snoops.
        port: Port,
    },
    /// Something in the fabric, such as a memory there.
    Elsewhere {
        /// That instance.
        instance: &'a str,
    },
    /// Nothing.
    Nothing,
}

/// Whether a port snoops the processor's caches for a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Snoops {
    /// It never does, or this master does not ask for it.
    No,
    /// It does. Some ports need the firmware's consent too
    /// ([UG1085](https://docs.amd.com/r/en-US/ug1085-zynq-ultrascale-trm), `Enable_snoops`).
    Yes,
    /// It does if the master asks for it, and the file does not show whether this one does.
    Unsure,
}

impl<'a> Core<'_, 'a> {
    /// Its memory-mapped masters, in the file's order. One that reaches memory by several ports is
    /// listed once for each, and so is one that reaches several pieces with unreachable memory
    /// between them.
    ///
    /// # Errors
    /// [`DesignError`]: an impossible width, or two different ones; an invalid number; more than
    /// 32; buses that lead too far; with the line.
    pub fn masters(&self) -> Result<Vec<Master<'a>, MAX_MASTERS>, DesignError> {
        let budget = Budget::of(&self.design.text);
        let masters = self.masters_within(&budget);
        budget.check(&self.module.text, self.name())?;
        masters
    }

    fn masters_within(&self, budget: &Budget) -> Result<Vec<Master<'a>, MAX_MASTERS>, DesignError> {
        let mut buses = Vec::<Bound<'a>, MAX_MASTERS>::new();
        for bus in self.module.interfaces(Some(budget)).filter(Interface::is_master) {
            let place = bus.place;
            buses.push(Bound::new(bus)).map_err(|_| self.too_many(&place))?;
        }
        let mut masters = Vec::new();
        if buses.is_empty() {
            return Ok(masters);
        }
        for (name, value) in self.module.parameters(Some(budget)) {
            buses.iter_mut().for_each(|bus| bus.parameter(name, value));
        }
        let pieces = self.pieces(&mut buses, budget)?;
        let mut processor = self.design.processor().map(|module| Processor {
            module,
            soc: self.soc(),
            acp_user: None,
            widths: Vec::new(),
        });
        let mut nets = None;
        for (at, bus) in buses.iter().enumerate() {
            let data_bits = width(&bus.bus, budget)?.unwrap_or(0);
            let addr_bits = self.addr_bits(bus, budget)?;
            let mut answer = |reaches| {
                let master = Master { interface: bus.bus.name(), data_bits, addr_bits, reaches };
                masters.push(master).map_err(|_| self.too_many(&bus.bus.place))
            };
            let Some(processor) = &mut processor else {
                answer(Reaches::Nothing)?;
                continue;
            };
            let mut ways = Vec::<(&'a str, Option<(u64, u64)>), MAX_MASTERS>::new();
            for piece in pieces.iter().filter(|piece| piece.bus == at) {
                // There is room: all pieces have as much.
                let _ = ways.push((piece.interface, Some(piece.window)));
            }
            if let Some(interface) = bus.seen.filter(|_| ways.is_empty()) {
                let _ = ways.push((interface, None));
            }
            if ways.is_empty() {
                if nets.is_none() {
                    nets = Some(Nets::of(self.design, budget)?);
                }
                let ports = nets
                    .as_ref()
                    .map(|nets| nets.ports_behind(bus.bus.net(), budget))
                    .unwrap_or_default();
                for interface in ports {
                    let _ = ways.push((interface, None));
                }
            }
            match (ways.is_empty(), bus.elsewhere) {
                (true, Some(instance)) => answer(Reaches::Elsewhere { instance })?,
                (true, None) => answer(Reaches::Nothing)?,
                (false, _) => {}
            }
            for (interface, window) in ways {
                answer(processor.memory(self.ip(), interface, bus, window, addr_bits, budget)?)?;
            }
        }
        Ok(masters)
    }

    fn too_many(&self, place: &Text<'_>) -> DesignError {
        DesignError::at(
            place,
            DesignRule::TooMany { what: "masters", most: MAX_MASTERS as u64 },
            self.name(),
            0,
        )
    }

    /// The pieces of the processor's memory that the core's own map has, by master and port.
    fn pieces(
        &self,
        buses: &mut [Bound<'a>],
        budget: &Budget,
    ) -> Result<Vec<Piece<'a>, MAX_MASTERS>, DesignError> {
        let mut pieces = Vec::<Piece<'a>, MAX_MASTERS>::new();
        let processor = self.design.processor().map(|processor| processor.name());
        for (tag, place) in self.module.each("MEMRANGE", Some(budget)) {
            let name = tag.get("MASTERBUSINTERFACE");
            let Some((at, bus)) =
                buses.iter_mut().enumerate().find(|(_, bus)| name == Some(bus.bus.name()))
            else {
                continue;
            };
            if processor.is_none() || tag.get("INSTANCE") != processor {
                bus.elsewhere = tag.get("INSTANCE").or(bus.elsewhere);
                continue;
            }
            let interface = tag.get("SLAVEBUSINTERFACE");
            let Some(interface) = interface.filter(|_| tag.text("ADDRESSBLOCK").contains("DDR"))
            else {
                bus.seen = bus.seen.or(interface);
                continue;
            };
            let piece = Piece { bus: at, interface, window: range(self.name(), &tag, &place)? };
            if !pieces.iter_mut().any(|other| other.takes(&piece, self.soc())) {
                pieces.push(piece).map_err(|_| self.too_many(&place))?;
            }
        }
        // A piece may have filled the gap between two others.
        let mut at = 0;
        while let Some(piece) = pieces.get(at).copied() {
            let joined =
                pieces.iter_mut().skip(at + 1).any(|other| other.takes(&piece, self.soc()));
            if joined {
                // One fewer, and the larger one may touch earlier ones.
                pieces.remove(at);
                at = 0;
            } else {
                at += 1;
            }
        }
        Ok(pieces)
    }

    /// The port of all its masters, to open the core with: its reach is what they have in common.
    /// For a master that reaches memory in pieces, the largest one counts.
    ///
    /// # Errors
    /// [`DesignRule::NoPort`], [`DesignRule::MixedPorts`], [`DesignRule::Unsure`]; as
    /// [`masters`](Self::masters).
    pub fn port(&self) -> Result<Port, DesignError> {
        let fail = |rule| self.broken(rule);
        let masters = self.masters()?;
        let (mut common, mut doubt) = (None::<Port>, false);
        for (at, master) in masters.iter().enumerate() {
            let Reaches::Memory { port, snoops, .. } = master.reaches else { continue };
            doubt |= snoops == Snoops::Unsure;
            if masters.iter().take(at).any(|other| {
                other.interface == master.interface
                    && matches!(other.reaches, Reaches::Memory { .. })
            }) {
                // Counted with its first entry.
                match common {
                    Some(first) if first.coherent != port.coherent => {
                        return Err(fail(DesignRule::MixedPorts));
                    }
                    _ => continue,
                }
            }
            let window = self.soc().widest(
                masters
                    .iter()
                    .filter(|other| other.interface == master.interface)
                    .filter_map(Master::window),
            );
            common = Some(match common {
                None => Port { window, ..port },
                Some(other) if other.coherent != port.coherent => {
                    return Err(fail(DesignRule::MixedPorts));
                }
                Some(other) => Port {
                    addr_bits: other.addr_bits.min(port.addr_bits),
                    window: (other.window.0.max(window.0), other.window.1.min(window.1)),
                    ..other
                },
            });
        }
        if doubt {
            return Err(fail(DesignRule::Unsure));
        }
        common.ok_or_else(|| fail(DesignRule::NoPort))
    }

    /// How many address lines a master drives, by its interface or the core's parameters; 0 if
    /// neither says.
    fn addr_bits(&self, bus: &Bound<'a>, budget: &Budget) -> Result<u32, DesignError> {
        let interface = self
            .said(bus, "ADDR_WIDTH", bus.bus.parameter("ADDR_WIDTH", Some(budget)))?
            .unwrap_or(0);
        Ok(match self.said(bus, "ADDR_WIDTH", bus.addr_width)? {
            Some(own) if own > 0 && interface > 0 => interface.min(own),
            Some(own) if interface == 0 => own,
            _ => interface,
        }
        .min(64))
    }

    /// A number of bits; `None` if the file has none.
    fn said(
        &self,
        bus: &Bound<'a>,
        what: &'static str,
        text: Option<&str>,
    ) -> Result<Option<u32>, DesignError> {
        said(text).map_err(|()| {
            DesignError::at(&bus.bus.place, DesignRule::NotANumber(what), self.name(), 0)
        })
    }
}

impl Master<'_> {
    /// The part of the processor's memory that it reaches.
    const fn window(&self) -> Option<(u64, u64)> {
        match &self.reaches {
            Reaches::Memory { port, .. } => Some(port.window),
            _ => None,
        }
    }
}

/// A master of the core, and its data in other places of the file.
struct Bound<'a> {
    bus: Interface<'a>,
    addr_width: Option<&'a str>,
    cache: Option<&'a str>,
    user: Option<&'a str>,
    /// A processor's port by which it reaches something other than memory.
    seen: Option<&'a str>,
    elsewhere: Option<&'a str>,
}

impl<'a> Bound<'a> {
    const fn new(bus: Interface<'a>) -> Self {
        Self { bus, addr_width: None, cache: None, user: None, seen: None, elsewhere: None }
    }

    /// Keeps a parameter `C_<interface><end>` of the core, which HLS writes in capitals.
    fn parameter(&mut self, name: &str, value: &'a str) {
        let Some(name) = name.strip_prefix("C_").or_else(|| name.strip_prefix("c_")) else {
            return;
        };
        let Some((first, end)) = name.split_at_checked(self.bus.name().len()) else { return };
        if !first.eq_ignore_ascii_case(self.bus.name()) {
            return;
        }
        let ends = [
            ("_ADDR_WIDTH", &mut self.addr_width),
            ("_CACHE_VALUE", &mut self.cache),
            ("_USER_VALUE", &mut self.user),
        ];
        for (known, place) in ends {
            if end.eq_ignore_ascii_case(known) {
                *place = place.or(Some(value));
            }
        }
    }
}

/// A piece of the processor's memory, by the number of a master.
#[derive(Clone, Copy)]
struct Piece<'a> {
    bus: usize,
    interface: &'a str,
    window: (u64, u64),
}

impl Piece<'_> {
    /// Absorbs `other` if both are one master's at one port with no memory between them; returns
    /// whether it did.
    fn takes(&mut self, other: &Self, soc: Soc) -> bool {
        let alike = (self.bus, self.interface) == (other.bus, other.interface);
        let joined = soc.joined(self.window, other.window).filter(|_| alike);
        self.window = joined.unwrap_or(self.window);
        joined.is_some()
    }
}

/// The processor, and its data that is read once for all masters.
struct Processor<'a> {
    module: Module<'a>,
    soc: Soc,
    /// The value that its ACP has instead of the masters'.
    acp_user: Option<Option<u64>>,
    /// The bits of data of ports.
    widths: Vec<(&'static str, u32), MAX_PORTS>,
}

impl<'a> Processor<'a> {
    fn memory(
        &mut self,
        ip: &str,
        interface: &'a str,
        bus: &Bound<'a>,
        window: Option<(u64, u64)>,
        addr_bits: u32,
        budget: &Budget,
    ) -> Result<Reaches<'a>, DesignError> {
        let Some(port) = self.soc.port(interface) else {
            return Ok(Reaches::Elsewhere { instance: self.module.name() });
        };
        let data_bits = self.width(port, budget)?;
        let snoops = self.snoops(port, ip, bus, budget);
        let (bits, (lowest, highest)) = self.soc.memory();
        let bits = if addr_bits > 0 { bits.min(addr_bits) } else { bits };
        let window = window
            .map_or((lowest, highest), |(first, last)| (first.max(lowest), last.min(highest)));
        let coherent = snoops == Snoops::Yes;
        let port =
            Port { name: port.name, bus: Bus::Soc, offset: 0, addr_bits: bits, window, coherent };
        Ok(Reaches::Memory { interface, data_bits, snoops, port })
    }

    /// The bits of data of a port.
    fn width(&mut self, port: &PsPort, budget: &Budget) -> Result<u32, DesignError> {
        if let Some((_, known)) = self.widths.iter().find(|(name, _)| *name == port.name) {
            return Ok(*known);
        }
        let width = port_width(&self.module, port, budget)?;
        // If there is no room, it is read again.
        let _ = self.widths.push((port.name, width));
        Ok(width)
    }

    /// Whether `port` snoops for this master of this core. HLS writes what its masters drive into
    /// the design (UG1399, `m_axi` interfaces); the DMA cores of Xilinx drive `AxCACHE` = 0011
    /// (PG021, PG020, PG034, PG288) and no `AxUSER`.
    fn snoops(&mut self, port: &PsPort, ip: &str, bus: &Bound<'a>, budget: &Budget) -> Snoops {
        let dma = matches!(ip, "axi_dma" | "axi_vdma" | "axi_cdma" | "axi_mcdma" | "axi_dmac");
        let cache = bus.cache.and_then(binary).or(if dma { Some(0b0011) } else { None });
        let asks = match port.snoops {
            Caches::Past => Some(false),
            Caches::Always => Some(true),
            Caches::Allocate => cache.map(|cache| cache & 0b1100 != 0),
            Caches::User => {
                let own = || bus.user.and_then(number).or(if dma { Some(0) } else { None });
                match (cache, self.acp_user(budget).or_else(own)) {
                    (Some(cache), Some(user)) => Some(cache & 0b0010 != 0 && user & 1 != 0),
                    _ => None,
                }
            }
        };
        asks.map_or(Snoops::Unsure, |asks| if asks { Snoops::Yes } else { Snoops::No })
    }

    fn acp_user(&mut self, budget: &Budget) -> Option<u64> {
        if let Some(known) = self.acp_user {
            return known;
        }
        let names = ["C_USE_DEFAULT_ACP_USER_VAL", "PCW_S_AXI_ACP_ARUSER_VAL"];
        let [uses, value] = self.module.values(names, Some(budget));
        let own = uses
            .and_then(number)
            .filter(|uses| *uses == 1)
            .map(|_| value.and_then(number).unwrap_or(1));
        self.acp_user = Some(own);
        own
    }
}

/// The first and the last address of a range.
fn range(core: &str, tag: &super::Tag<'_>, place: &Text<'_>) -> Result<(u64, u64), DesignError> {
    let side = |key: &'static str| {
        tag.get(key)
            .and_then(number)
            .ok_or_else(|| DesignError::at(place, DesignRule::NotANumber(key), core, 0))
    };
    let (first, last) = (side("BASEVALUE")?, side("HIGHVALUE")?);
    if last < first {
        return Err(DesignError::at(place, DesignRule::Window { last }, core, first));
    }
    Ok((first, last))
}

/// The data width of a processor's port, by its bus and a parameter.
fn port_width(processor: &Module<'_>, port: &PsPort, budget: &Budget) -> Result<u32, DesignError> {
    let no_number = |()| {
        DesignError::at(&processor.text, DesignRule::NotANumber(port.width), port.interface, 0)
    };
    let said = said(processor.parameter(port.width, Some(budget))).map_err(no_number)?;
    let Some(bus) = processor.interfaces(Some(budget)).find(|bus| bus.name() == port.interface)
    else {
        return match said {
            Some(bits) if !port.widths.contains(&bits) => Err(DesignError::at(
                &processor.text,
                DesignRule::Width,
                port.interface,
                bits.into(),
            )),
            said => Ok(said.unwrap_or(0)),
        };
    };
    let bits = width(&bus, budget)?.or(said).unwrap_or(0);
    let fail = |rule| Err(DesignError::at(&bus.place, rule, port.interface, bits.into()));
    match said {
        Some(elsewhere) if elsewhere != bits => {
            fail(DesignRule::Disagrees { elsewhere: elsewhere.into() })
        }
        _ if bits > 0 && !port.widths.contains(&bits) => fail(DesignRule::Width),
        _ => Ok(bits),
    }
}

/// The data width of a bus, which the file has twice: as an attribute and as a parameter.
fn width(bus: &Interface<'_>, budget: &Budget) -> Result<Option<u32>, DesignError> {
    let fail = |rule, bits: u32| Err(DesignError::at(&bus.place, rule, bus.name(), bits.into()));
    let (attribute, parameter) =
        (said(bus.tag.get("DATAWIDTH")), said(bus.parameter("DATA_WIDTH", Some(budget))));
    let (Ok(attribute), Ok(parameter)) = (attribute, parameter) else {
        return fail(DesignRule::NotANumber("DATA_WIDTH"), 0);
    };
    match (attribute, parameter) {
        (Some(bits), Some(elsewhere)) if bits != elsewhere => {
            fail(DesignRule::Disagrees { elsewhere: elsewhere.into() }, bits)
        }
        (None, None) => Ok(None),
        (bits, elsewhere) => match bits.or(elsewhere).unwrap_or(0) {
            bits if bits.is_power_of_two() && (32..=1024).contains(&bits) => Ok(Some(bits)),
            bits => fail(DesignRule::Width, bits),
        },
    }
}

/// A number of bits that the file may have. `Err` if it has something else.
fn said(text: Option<&str>) -> Result<Option<u32>, ()> {
    let text = text.map(str::trim_ascii).filter(|text| !text.is_empty());
    text.map(|text| number(text).and_then(|bits| u32::try_from(bits).ok()).ok_or(())).transpose()
}

/// HLS' `AxCACHE`: `"0011"` in quotes, which are `&quot;` in the file.
fn binary(text: &str) -> Option<u64> {
    let digits = text
        .trim_ascii()
        .trim_start_matches("&quot;")
        .trim_end_matches("&quot;")
        .trim_matches(['"', '\'']);
    u64::from_str_radix(digits, 2).ok().or_else(|| number(digits))
}

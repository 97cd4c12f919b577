//! A core's masters: which port each reaches memory by.

use super::{
    Core, Design, DesignError, DesignRule,
    cores::passes_on,
    module::{Interface, Module},
    soc::{Caches, PsPort},
    text::{Text, number},
};
use crate::{mem::Port, types::Bus};
use heapless::Vec;

/// How many masters a core has at most.
pub const MAX_MASTERS: usize = 16;

/// How many interconnects an access goes through at most.
const MAX_STEPS: usize = 8;
/// How many buses a search looks at.
const MAX_LOOKS: usize = 64;

/// A master of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Master<'a> {
    /// The core's interface: `M_AXI_S2MM`.
    pub interface: &'a str,
    /// How many bits of data it has; 0: the file does not say it.
    pub data_bits: u32,
    /// How many address lines it drives; 0: the file does not say it.
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
        /// How many bits of data that port has in this design. On Zynq UltraScale+ the boot loader
        /// sets the same number in a register (`AFIFM`); where it is another one, data is lost.
        data_bits: u32,
        /// Does it snoop the processor's caches for this master?
        snoops: Snoops,
        /// The port, for who opens the core; its `coherent` is false unless it surely snoops.
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

/// Does a port snoop the processor's caches for a master?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Snoops {
    /// It never does, or this master does not ask for it.
    No,
    /// It does. Some ports want the firmware's consent too
    /// ([UG1085](https://docs.amd.com/r/en-US/ug1085-zynq-ultrascale-trm), `Enable_snoops`).
    Yes,
    /// It does where the master asks for it, and the file does not tell whether this one asks.
    Unsure,
}

impl<'a> Core<'_, 'a> {
    /// Its memory-mapped masters, in the file's order.
    ///
    /// # Errors
    /// [`DesignError`]: a width that cannot be, or that the file says twice and not the same; more
    /// than 16 masters; and the line.
    pub fn masters(&self) -> Result<Vec<Master<'a>, MAX_MASTERS>, DesignError> {
        let mut masters = Vec::new();
        for bus in self.module.interfaces().filter(|bus| bus.is_master()) {
            let addr_bits = number_of(&bus, "ADDR_WIDTH").unwrap_or(0);
            let master = Master {
                interface: bus.name(),
                data_bits: width(&bus)?.unwrap_or(0),
                addr_bits: self.addr_bits(bus.name(), addr_bits),
                reaches: self.reaches(&bus, self.addr_bits(bus.name(), addr_bits))?,
            };
            let rule = DesignRule::TooMany { what: "masters", most: MAX_MASTERS as u64 };
            masters.push(master).map_err(|_| DesignError::at(&bus.place, rule, self.name(), 0))?;
        }
        Ok(masters)
    }

    /// The port of all of its masters, for who opens the core: the reach that they have in common.
    ///
    /// # Errors
    /// [`DesignRule::NoPort`], [`DesignRule::MixedPorts`], [`DesignRule::Unsure`]; as
    /// [`masters`](Self::masters).
    pub fn port(&self) -> Result<Port, DesignError> {
        let fail = |rule| self.broken(rule);
        let (mut common, mut doubt) = (None::<Port>, false);
        for master in &self.masters()? {
            let Reaches::Memory { port, snoops, .. } = master.reaches else { continue };
            doubt |= snoops == Snoops::Unsure;
            common = Some(match common {
                None => port,
                Some(other) if other.coherent != port.coherent => return Err(fail(DesignRule::MixedPorts)),
                Some(other) => Port {
                    addr_bits: other.addr_bits.min(port.addr_bits),
                    window: (other.window.0.max(port.window.0), other.window.1.min(port.window.1)),
                    ..other
                },
            });
        }
        if doubt {
            return Err(fail(DesignRule::Unsure));
        }
        common.ok_or_else(|| fail(DesignRule::NoPort))
    }

    /// How many address lines a master drives: the interface says it, or the core's parameters.
    fn addr_bits(&self, interface: &str, said: u32) -> u32 {
        let own = self.of_master(interface, "_ADDR_WIDTH").and_then(number).and_then(|bits| u32::try_from(bits).ok());
        match (said, own) {
            (0, own) => own.unwrap_or(0),
            (said, Some(own)) if own > 0 => said.min(own),
            (said, _) => said,
        }
        .min(64)
    }

    /// The parameter `C_<interface><end>` of a core.
    fn of_master(&self, interface: &str, end: &str) -> Option<&'a str> {
        let mut parameters = self.module.each("PARAMETER");
        let called = |name: &str| {
            let name = name.strip_prefix("C_").or_else(|| name.strip_prefix("c_"))?;
            let start = name.len().checked_sub(end.len())?;
            let (first, last) = (name.get(..start)?, name.get(start..)?);
            (first.eq_ignore_ascii_case(interface) && last.eq_ignore_ascii_case(end)).then_some(())
        };
        parameters.find(|(tag, _)| called(tag.text("NAME")).is_some()).and_then(|(tag, _)| tag.get("VALUE"))
    }

    fn reaches(&self, bus: &Interface<'a>, addr_bits: u32) -> Result<Reaches<'a>, DesignError> {
        let Some(processor) = self.design.processor() else { return Ok(Reaches::Nothing) };
        // The core's own map of memory; of several ranges the one of DDR.
        let mine = |tag: &super::Tag<'_>| tag.get("MASTERBUSINTERFACE") == Some(bus.name());
        let (mut interface, mut elsewhere, mut window) = (None, None, None::<(u64, u64)>);
        for (tag, place) in self.module.each("MEMRANGE").filter(|(tag, _)| mine(tag)) {
            if tag.get("INSTANCE") != Some(processor.name()) {
                elsewhere = tag.get("INSTANCE").or(elsewhere);
                continue;
            }
            let (ddr, there) = (tag.text("ADDRESSBLOCK").contains("DDR"), tag.get("SLAVEBUSINTERFACE"));
            if ddr && (window.is_none() || interface == there) {
                let (first, last) = range(self.name(), &tag, &place)?;
                window = Some(window.map_or((first, last), |known| (known.0.min(first), known.1.max(last))));
                interface = there;
            } else if window.is_none() {
                interface = interface.or(there);
            }
        }
        let mut looks = MAX_LOOKS;
        let interface = interface.or_else(|| self.design.port_behind(bus.tag.text("BUSNAME"), &processor, MAX_STEPS, &mut looks));
        match (interface, elsewhere) {
            (Some(interface), _) => self.memory(&processor, interface, bus.name(), window, addr_bits),
            (None, Some(instance)) => Ok(Reaches::Elsewhere { instance }),
            (None, None) => Ok(Reaches::Nothing),
        }
    }

    fn memory(
        &self,
        processor: &Module<'a>,
        interface: &'a str,
        master: &str,
        window: Option<(u64, u64)>,
        addr_bits: u32,
    ) -> Result<Reaches<'a>, DesignError> {
        let soc = self.design.soc();
        let Some(port) = soc.port(interface) else { return Ok(Reaches::Elsewhere { instance: processor.name() }) };
        let data_bits = port_width(processor, port)?;
        let snoops = self.snoops(processor, port, master);
        let (bits, (lowest, highest)) = soc.memory();
        let bits = if addr_bits > 0 { bits.min(addr_bits) } else { bits };
        let window = window.map_or((lowest, highest), |(first, last)| (first.max(lowest), last.min(highest)));
        let coherent = snoops == Snoops::Yes;
        let port = Port { name: port.name, bus: Bus::Soc, offset: 0, addr_bits: bits, window, coherent };
        Ok(Reaches::Memory { interface, data_bits, snoops, port })
    }

    /// Does `port` snoop for this master of this core? HLS writes what its masters drive into the
    /// design (UG1399, `m_axi` interfaces); the DMA cores of Xilinx drive `AxCACHE` = 0011 (PG021,
    /// PG020, PG034, PG288) and no `AxUSER`.
    fn snoops(&self, processor: &Module<'a>, port: &PsPort, master: &str) -> Snoops {
        let dma = matches!(self.ip(), "axi_dma" | "axi_vdma" | "axi_cdma" | "axi_mcdma" | "axi_dmac");
        let cache = self.of_master(master, "_CACHE_VALUE").and_then(binary).or(if dma { Some(0b0011) } else { None });
        let user = match processor.number("C_USE_DEFAULT_ACP_USER_VAL") {
            Some(1) => Some(processor.number("PCW_S_AXI_ACP_ARUSER_VAL").unwrap_or(1)),
            _ => self.of_master(master, "_USER_VALUE").and_then(number).or(if dma { Some(0) } else { None }),
        };
        let asks = match port.snoops {
            Caches::Past => Some(false),
            Caches::Always => Some(true),
            Caches::Allocate => cache.map(|cache| cache & 0b1100 != 0),
            Caches::User => match (cache, user) {
                (Some(cache), Some(user)) => Some(cache & 0b0010 != 0 && user & 1 != 0),
                _ => None,
            },
        };
        asks.map_or(Snoops::Unsure, |asks| if asks { Snoops::Yes } else { Snoops::No })
    }
}

impl<'a> Design<'a> {
    /// The processor's port that bus `net` leads to, through what passes accesses on.
    fn port_behind(&self, net: &str, processor: &Module<'a>, steps: usize, looks: &mut usize) -> Option<&'a str> {
        if net.is_empty() || net == "__NOC__" {
            return None;
        }
        let steps = steps.checked_sub(1)?;
        for module in self.modules() {
            let Some(entry) = module.interfaces().find(|bus| !bus.is_master() && bus.tag.text("BUSNAME") == net) else { continue };
            *looks = looks.checked_sub(1)?;
            if module.name() == processor.name() {
                return Some(entry.name());
            }
            if passes_on(&module) {
                let on = module.interfaces().filter(|bus| bus.is_master());
                let found = on.filter_map(|bus| self.port_behind(bus.tag.text("BUSNAME"), processor, steps, looks)).next();
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}

/// The first and the last address of a range.
fn range(core: &str, tag: &super::Tag<'_>, place: &Text<'_>) -> Result<(u64, u64), DesignError> {
    let side =
        |key: &'static str| tag.get(key).and_then(number).ok_or_else(|| DesignError::at(place, DesignRule::NotANumber(key), core, 0));
    let (first, last) = (side("BASEVALUE")?, side("HIGHVALUE")?);
    if last < first {
        return Err(DesignError::at(place, DesignRule::Window { last }, core, first));
    }
    Ok((first, last))
}

/// The bits of data of a port of the processor: its bus says it, and a parameter.
fn port_width(processor: &Module<'_>, port: &PsPort) -> Result<u32, DesignError> {
    let said = processor.number(port.width).and_then(|bits| u32::try_from(bits).ok());
    let Some(bus) = processor.interfaces().find(|bus| bus.name() == port.interface) else {
        return match said {
            Some(bits) if !port.widths.contains(&bits) => {
                Err(DesignError::at(&processor.text, DesignRule::Width, port.interface, bits.into()))
            }
            said => Ok(said.unwrap_or(0)),
        };
    };
    let bits = width(&bus)?.or(said).unwrap_or(0);
    let fail = |rule| Err(DesignError::at(&bus.place, rule, port.interface, bits.into()));
    match said {
        Some(elsewhere) if elsewhere != bits => fail(DesignRule::Disagrees { elsewhere: elsewhere.into() }),
        _ if bits > 0 && !port.widths.contains(&bits) => fail(DesignRule::Width),
        _ => Ok(bits),
    }
}

/// The bits of data of a bus, which the file says twice: as an attribute and as a parameter.
fn width(bus: &Interface<'_>) -> Result<Option<u32>, DesignError> {
    let fail = |rule, bits: u32| Err(DesignError::at(&bus.place, rule, bus.name(), bits.into()));
    let attribute = bus.tag.get("DATAWIDTH").and_then(number).and_then(|bits| u32::try_from(bits).ok());
    match (attribute, number_of(bus, "DATA_WIDTH")) {
        (Some(bits), Some(elsewhere)) if bits != elsewhere => fail(DesignRule::Disagrees { elsewhere: elsewhere.into() }, bits),
        (None, None) => Ok(None),
        (bits, elsewhere) => match bits.or(elsewhere).unwrap_or(0) {
            bits if bits.is_power_of_two() && (32..=1024).contains(&bits) => Ok(Some(bits)),
            bits => fail(DesignRule::Width, bits),
        },
    }
}

fn number_of(bus: &Interface<'_>, parameter: &str) -> Option<u32> {
    bus.parameter(parameter).and_then(number).and_then(|number| u32::try_from(number).ok())
}

/// HLS' `AxCACHE`: `"0011"` in quotes, which are `&quot;` in the file.
fn binary(text: &str) -> Option<u64> {
    let digits = text.trim_matches(|letter: char| !letter.is_ascii_digit());
    u64::from_str_radix(digits, 2).ok()
}

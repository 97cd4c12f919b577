//! A Vivado block design, from its hardware hand-off: `<design>.hwh`, the XML file beside a
//! bitstream, which PYNQ reads too.
//!
//! | question | answer |
//! |---|---|
//! | which cores there are | [`Design::cores`]: instances with registers, or with a master |
//! | where a core's registers are | [`Core::windows`], and each register by its name: [`Core::registers`] |
//! | which port it reaches memory by | [`Core::masters`]: through interconnects, with the width, and whether it snoops |
//! | which interrupt is its | [`Core::interrupts`]: through `xlconcat`, to the processor or to an `axi_intc` |
//! | which clock it has | [`Core::clocks`]: which FCLK, also through a `clk_wiz` |
//! | how it was configured | [`Core::parameter`]; for its driver: `Core::settings` |
//!
//! It supports Zynq-7000 and Zynq UltraScale+, including RFSoC. A design for another processor has
//! cores with parameters and registers, but no addresses, ports or interrupts.
//!
//! The readers need no heap. [`Design::read`] reads each tag once, and records where each instance
//! is, by its name. A query reads the tags of the instances on its path, each byte of the file at
//! most 16 times ([`DesignRule::Tangled`]). A truncated or inconsistent file, or one from another
//! tool, is refused, with the line.
//!
//! ```
//! use contigo::design::Design;
//! let text = br#"<EDKSYSTEM VIVADOVERSION="2022.1"><SYSTEMINFO ARCH="zynq" DEVICE="7z020" NAME="mine"/><MODULES>
//!   <MODULE FULLNAME="/gain" INSTANCE="gain" VLNV="me:user:gain:1.0"/>
//!   <MODULE FULLNAME="/ps" INSTANCE="ps" VLNV="xilinx.com:ip:processing_system7:5.5"><MEMORYMAP>
//!     <MEMRANGE BASEVALUE="0x43C00000" HIGHVALUE="0x43C0FFFF" INSTANCE="gain" MASTERBUSINTERFACE="M_AXI_GP0"
//!       MEMTYPE="REGISTER" SLAVEBUSINTERFACE="S_AXI"/></MEMORYMAP></MODULE>
//! </MODULES></EDKSYSTEM>"#;
//! let design = Design::read(text)?;
//! let gain = design.core("gain")?;
//! assert_eq!((gain.ip(), gain.windows()?[0].address), ("gain", 0x43C0_0000));
//! let cut = Design::read(&text[..400]).unwrap_err();
//! assert_eq!(cut.to_string(), "line 4, byte 264: the file ends before </EDKSYSTEM>: copy it once more");
//! # Ok::<(), contigo::design::DesignError>(())
//! ```
//!
//! # References
//! The files that Vivado 2017.1 to 2024.1 write. UG585, "PL Interrupts" (table 7-4) and "PS-PL
//! Interfaces"; UG1085, "System Interrupts" and "PS-PL AXI Interfaces"; PG082 and PG201, the
//! processing systems' parameters.
//!
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

mod budget;
mod clocks;
mod cores;
mod error;
mod interrupts;
pub mod kernel;
mod masters;
mod module;
mod nets;
mod registers;
mod soc;
mod tag;
#[cfg(test)]
mod tests;
mod text;

pub use self::clocks::Clock;
pub use self::cores::{Core, Window, parameter_number};
pub use self::error::{DesignError, DesignRule};
pub use self::interrupts::{Interrupt, Trigger, Wired};
pub use self::masters::{Master, Reaches, Snoops};
pub use self::registers::Register;
pub use self::soc::Soc;
pub(crate) use self::tag::{NoTag, Tag, next as next_tag};
#[cfg(test)]
pub(crate) use self::text::visits;
pub(crate) use self::text::{Text, number};
pub use contigo_core::types::name::Name;
pub use contigo_core::types::near::{MAX_NEAR, Near};

use self::module::{Module, Place};
use heapless::Vec;

/// The longest file. Vivado writes a few MiB for the largest design.
pub const MAX_BYTES: usize = 32 << 20;

/// The most instances of a design.
pub(crate) const MAX_INSTANCES: usize = 512;

/// **A block design**: the instances of a `.hwh`, which it borrows.
#[derive(Clone, Debug)]
pub struct Design<'a> {
    text: Text<'a>,
    modules: Vec<Place<'a>, MAX_INSTANCES>,
    /// Their indices in `modules`, sorted by name.
    by_name: Vec<u16, MAX_INSTANCES>,
    /// The processor in it.
    pub soc: Soc,
    /// The processing system, among the modules.
    processor: Option<usize>,
    /// Its name.
    pub name: &'a str,
    /// The version of Vivado that wrote it.
    pub tool: &'a str,
    /// The chip.
    pub device: &'a str,
}

impl<'a> Design<'a> {
    /// The design in `source`, the bytes of a `.hwh`.
    ///
    /// # Errors
    /// [`DesignError`]: it is not a hand-off, is truncated, or has two instances of one name; with
    /// the line.
    pub fn read(source: &'a [u8]) -> Result<Self, DesignError> {
        let mut text = Text::new(source);
        if source.len() > MAX_BYTES {
            return Err(DesignError::at(&text, DesignRule::TooLong, "", source.len() as u64));
        }
        let mut design = Self {
            text,
            modules: Vec::new(),
            by_name: Vec::new(),
            soc: Soc::Other,
            processor: None,
            name: "",
            tool: "",
            device: "",
        };
        let root =
            next_tag(&mut text).ok().flatten().filter(|tag| tag.name == "EDKSYSTEM" && !tag.ends);
        let Some(root) = root else {
            return Err(DesignError::here(&text, DesignRule::NotAHandOff));
        };
        design.tool = root.text("VIVADOVERSION");
        let mut open = None;
        loop {
            let mut here = text;
            let Some(tag) =
                next_tag(&mut text).map_err(|NoTag(place, what)| unfinished(&place, what))?
            else {
                here.skip(usize::MAX);
                return Err(DesignError::here(&here, DesignRule::Truncated));
            };
            match (tag.name, tag.ends) {
                ("EDKSYSTEM", true) if open.is_none() => break,
                ("SYSTEMINFO", false) => {
                    (design.name, design.device) = (tag.text("NAME"), tag.text("DEVICE"))
                }
                ("MODULE", false) => {
                    if open.is_some() {
                        let rule = DesignRule::Expected("the end of MODULE");
                        return Err(DesignError::at(&here, rule, tag.text("INSTANCE"), 0));
                    }
                    // The place of `<MODULE` itself, for reading it again.
                    here.until(|byte| byte == b'<');
                    if tag.alone {
                        design.add(&here, text.at())?;
                    } else {
                        open = Some(here);
                    }
                }
                ("MODULE", true) => match open.take() {
                    Some(start) => design.add(&start, text.at())?,
                    None => {
                        let rule = DesignRule::Expected("a MODULE that begins");
                        return Err(DesignError::here(&here, rule));
                    }
                },
                _ => {}
            }
        }
        // Every Zynq-7000 is a 7z: `7z020`, `xc7z010`.
        let no_zynq = design.soc == Soc::Zynq7000
            && !design.device.is_empty()
            && !design.device.contains("7z");
        if no_zynq {
            let place = Text::new(source);
            return Err(DesignError::at(&place, DesignRule::OtherChip, design.device, 0));
        }
        design.add_ranges()?;
        Ok(design)
    }

    /// Records where the processor's ranges of each instance are. A range of no instance leads out
    /// of the block design, and stands for what is there.
    fn add_ranges(&mut self) -> Result<(), DesignError> {
        let Some(processor) = self.processor() else { return Ok(()) };
        let mut text = processor.text;
        loop {
            let start = text;
            let Some(tag) = next_tag(&mut text).ok().flatten() else { return Ok(()) };
            let Some(name) =
                tag.get("INSTANCE").filter(|name| tag.name == "MEMRANGE" && !name.is_empty())
            else {
                continue;
            };
            let index = match self.find(name) {
                Ok(index) => index,
                Err(_) => {
                    let mut start = start;
                    start.until(|byte| byte == b'<');
                    self.add(&start, text.at())?;
                    self.modules.len() - 1
                }
            };
            if let Some(place) = self.modules.get_mut(index) {
                let first = if place.ranges.1 == 0 { start.at() } else { place.ranges.0 };
                place.ranges = (first, text.at());
            }
        }
    }

    /// Adds the module from `start` to byte `end`.
    fn add(&mut self, start: &Text<'a>, end: u32) -> Result<(), DesignError> {
        let module = Module::at(self.text, start.at(), end);
        let fail = |rule| DesignError::at(start, rule, module.name(), 0);
        let Err(rank) = self.find(module.name()) else { return Err(fail(DesignRule::SameName)) };
        if let Some(soc) = Soc::of(module.ip()) {
            if self.processor.is_some() {
                return Err(fail(DesignRule::SecondProcessor));
            }
            (self.soc, self.processor) = (soc, Some(self.modules.len()));
        }
        let most = MAX_INSTANCES as u64;
        let full = || DesignError::here(start, DesignRule::TooMany { what: "instances", most });
        let index = u16::try_from(self.modules.len()).map_err(|_| full())?;
        let place = Place { from: start.at(), to: end, name: module.name(), ranges: (0, 0) };
        self.modules.push(place).map_err(|_| full())?;
        self.by_name.insert(rank, index).map_err(|_| full())
    }

    /// The index of an instance, or its insertion index in `by_name`.
    fn find(&self, name: &str) -> Result<usize, usize> {
        let called =
            |index: &u16| self.modules.get(usize::from(*index)).map_or("", |place| place.name);
        let rank = self.by_name.binary_search_by(|index| called(index).cmp(name))?;
        Ok(self.by_name.get(rank).map_or(0, |index| usize::from(*index)))
    }

    /// Every instance, also those without registers, in the file's order. They are followed by the
    /// interfaces to registers outside of the block design ([`Core::is_outside`]).
    pub fn instances(&self) -> impl Iterator<Item = Core<'_, 'a>> {
        (0..self.modules.len()).filter_map(|index| self.core_at(index))
    }

    /// The instances that a program drives: those with registers that the processor sees, or with a
    /// memory master.
    pub fn cores(&self) -> impl Iterator<Item = Core<'_, 'a>> {
        self.instances().filter(|core| {
            !core.is_processor() && (core.has_window() || (core.has_master() && !core.is_a_bus()))
        })
    }

    /// The instance called `name`: in a hierarchy with `_` as the file has it, or with `/`.
    ///
    /// # Errors
    /// [`DesignRule::NoSuchCore`], with similar names of cores.
    pub fn core(&self, name: &str) -> Result<Core<'_, 'a>, DesignError> {
        let by_path = || self.instances().find(|core| core.path() == name);
        let found = self.index_of(name).and_then(|index| self.core_at(index)).or_else(by_path);
        let none = || {
            let near = Near::of(name, self.cores().map(|core| core.path()));
            let (rule, cores) = (DesignRule::NoSuchCore { near }, self.cores().count() as u64);
            DesignError::at(&self.text, rule, name, cores)
        };
        found.ok_or_else(none)
    }

    fn core_at(&self, index: usize) -> Option<Core<'_, 'a>> {
        Some(Core { design: self, module: self.module_at(index)?, index })
    }

    fn module_at(&self, index: usize) -> Option<Module<'a>> {
        let place = self.modules.get(index)?;
        Some(Module::at(self.text, place.from, place.to))
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        self.find(name).ok()
    }

    fn processor(&self) -> Option<Module<'a>> {
        self.module_at(self.processor?)
    }

    const fn processor_index(&self) -> Option<usize> {
        self.processor
    }

    /// Whether the processor sees registers of the instance `index`.
    fn has_ranges(&self, index: usize) -> bool {
        self.modules.get(index).is_some_and(|place| place.ranges.1 > 0)
    }

    /// The processor's ranges that include those of the instance `index`.
    fn ranges(&self, index: usize) -> impl Iterator<Item = (Tag<'a>, Text<'a>)> + use<'a> {
        module::ranges(self.text, self.modules.get(index).map_or((0, 0), |place| place.ranges))
    }
}

/// A tag without an end before the file's was truncated.
fn unfinished(place: &Text<'_>, what: &'static str) -> DesignError {
    let truncated = what.starts_with('`');
    let rule = if truncated { DesignRule::Truncated } else { DesignRule::Expected(what) };
    DesignError::here(place, rule)
}

//! One instance of a design.

use super::budget::ONE_PASS;
use super::kernel::Protocol;
use super::module::Module;
use super::text::number;
use super::{Design, DesignError, DesignRule};
use heapless::Vec;

/// The most register windows of a core, as of a contigo device node.
pub(crate) const MAX_WINDOWS: usize = 6;

/// An instance of a [`Design`].
#[derive(Clone, Copy, Debug)]
pub struct Core<'d, 'a> {
    pub(super) design: &'d Design<'a>,
    pub(super) module: Module<'a>,
    /// Its index among the design's instances.
    pub(super) index: usize,
}

/// A window of registers, as the processor sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window<'a> {
    /// The core's interface: `S_AXI_LITE`.
    pub interface: &'a str,
    /// Where it begins.
    pub address: u64,
    /// How many bytes it has.
    pub len_bytes: u64,
}

impl<'a> Core<'_, 'a> {
    /// The processor of its design.
    #[must_use]
    pub const fn soc(&self) -> super::Soc {
        self.design.soc
    }

    /// Its name, in a hierarchy with `_`: `video_axi_vdma`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.module.name()
    }

    /// Its name in the hierarchy: `video/axi_vdma`.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.module.path().trim_start_matches('/')
    }

    /// Its kind and maker, as Vivado writes them: `xilinx.com:ip:axi_dma:7.1`. Empty for a part of
    /// the design with its own file.
    #[must_use]
    pub fn vlnv(&self) -> &'a str {
        self.module.attribute("VLNV")
    }

    /// Whether it stands for registers outside the block design. It is then an interface to them,
    /// of which the file has only the name and the address ranges.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.module.is_outside()
    }

    /// Its kind: `axi_dma`.
    #[must_use]
    pub fn ip(&self) -> &'a str {
        self.module.ip()
    }

    /// Whether Vitis HLS made it. The driver `ap_ctrl` then drives it, if it has registers that
    /// start it.
    #[must_use]
    pub fn is_hls(&self) -> bool {
        self.module.vlnv(1) == "hls"
    }

    /// How a register starts it, as a kernel of HLS; `None` if it has no `ap_start`.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        let chain = self.has_field("AP_CONTINUE");
        self.has_field("AP_START").then_some(if chain { Protocol::Chain } else { Protocol::Hs })
    }

    fn has_field(&self, name: &str) -> bool {
        self.module.each("FIELD", ONE_PASS).any(|(tag, _)| tag.get("NAME") == Some(name))
    }

    pub(super) fn is_processor(&self) -> bool {
        self.design.processor_index() == Some(self.index)
    }

    /// Whether it forwards others' accesses: an interconnect, a converter, a register slice.
    pub(super) fn is_a_bus(&self) -> bool {
        passes_on(&self.module)
    }

    pub(super) fn has_window(&self) -> bool {
        self.design.has_ranges(self.index)
    }

    pub(super) fn has_master(&self) -> bool {
        self.module.interfaces(ONE_PASS).any(|bus| bus.is_master())
    }

    /// The error for this core breaking `rule`.
    pub fn broken(&self, rule: DesignRule) -> DesignError {
        DesignError::at(&self.module.text, rule, self.name(), 0)
    }

    /// The text of a block design parameter: `C_SG_LENGTH_WIDTH`.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        self.module.parameter(name, ONE_PASS)
    }

    /// All parameters, in the file's order.
    pub fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.module.parameters(ONE_PASS)
    }

    /// The processor's view of its registers, in the file's order. A range that several of the
    /// processor's masters see at one address is one window.
    ///
    /// # Errors
    /// [`DesignError`]: an invalid address, or more than six windows; with the line.
    pub fn windows(&self) -> Result<Vec<Window<'a>, MAX_WINDOWS>, DesignError> {
        let mut windows = Vec::new();
        for (tag, place) in self.ranges() {
            let fail = |rule, found| DesignError::at(&place, rule, self.name(), found);
            let side = |key: &'static str| {
                tag.get(key).and_then(number).ok_or_else(|| fail(DesignRule::NotANumber(key), 0))
            };
            let (address, last) = (side("BASEVALUE")?, side("HIGHVALUE")?);
            let len_bytes = last.checked_sub(address).and_then(|bytes| bytes.checked_add(1));
            let len_bytes = len_bytes.filter(|bytes| bytes % 4 == 0 && address % 4 == 0);
            let len_bytes = len_bytes.ok_or_else(|| fail(DesignRule::Window { last }, address))?;
            let window = Window { interface: tag.text("SLAVEBUSINTERFACE"), address, len_bytes };
            if !windows.iter().any(|known: &Window<'_>| known.address == address) {
                let most = MAX_WINDOWS as u64;
                windows.push(window).map_err(|_| {
                    fail(DesignRule::TooMany { what: "windows of registers", most }, 0)
                })?;
            }
        }
        Ok(windows)
    }

    /// The processor's address ranges of this core.
    fn ranges(&self) -> impl Iterator<Item = (super::Tag<'a>, super::Text<'a>)> {
        let name = self.name();
        self.design.ranges(self.index).filter(move |(tag, _)| tag.get("INSTANCE") == Some(name))
    }
}

/// A parameter's value as a number: `14`, `0x1`, `1e+08`, `64.000`, or Vivado's `TRUE` and `FALSE`.
/// `None` if it is not one.
#[must_use]
pub fn parameter_number(value: &str) -> Option<u64> {
    let text = value.trim_ascii();
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(1),
        _ if text.eq_ignore_ascii_case("false") => Some(0),
        _ => number(text),
    }
}

/// Whether this instance forwards accesses.
pub(super) fn passes_on(module: &Module<'_>) -> bool {
    let bus = module.attribute("MODCLASS") == "BUS" || module.attribute("IPTYPE") == "BUS";
    bus || matches!(
        module.ip(),
        "dfx_axi_shutdown_manager"
            | "axi_protocol_checker"
            | "axi_firewall"
            | "axi_mmu"
            | "ila"
            | "system_ila"
    )
}
